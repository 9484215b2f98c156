//! How the binary ends on a signal.

#![cfg(feature = "builtin")]

use std::time::Duration;

use crate::support::program::{Folder, Process};
use crate::support::server::Server;
use kcm_sandbox_apiserver::{Fault, InjectedFault, PODS, REPLICA_SETS, Sandbox, Verb};
use serde_json::json;

/// A manager that is creating a pod: `fault` decides the fate of the request.
struct Busy {
    manager: Process,
    server: Server,
    _folder: Folder,
}

async fn busy(fault: Fault) -> Busy {
    busy_with(fault, &[]).await
}

async fn busy_with(fault: Fault, arguments: &[&str]) -> Busy {
    let sandbox = Sandbox::default();
    let create = sandbox.faults().inject(fault);
    sandbox
        .create(
            &REPLICA_SETS,
            json!({
                "metadata": { "name": "web", "namespace": "default" },
                "spec": {
                    "replicas": 1,
                    "selector": { "matchLabels": { "app": "web" } },
                    "template": {
                        "metadata": { "labels": { "app": "web" } },
                        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
                    },
                },
            }),
        )
        .expect("the replica set must be valid");
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let arguments = [&["--leader-elect=false", &kubeconfig], arguments].concat();
    let manager = Process::start(env!("CARGO_BIN_EXE_kube-controller-manager"), &arguments);
    hit(&create).await;
    Busy { manager, server, _folder: folder }
}

async fn hit(fault: &InjectedFault) {
    let hit = async {
        while fault.hits() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), hit).await.expect("it must get so far");
}

#[tokio::test]
async fn the_first_signal_lets_running_reconciles_finish() {
    let slow = Fault::on(Verb::Create).resource(PODS).delay(Duration::from_secs(2));
    let Busy { mut manager, server, _folder } = busy(slow).await;
    manager.terminate();
    manager.says("Waiting for running reconciles to finish; a second signal ends the process at once").await;
    assert!(manager.is_running());
    assert!(server.sandbox.list(&PODS, None).is_empty(), "the signal comes while the pod is being made");
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    assert!(!ended.stderr.contains("did not end in time"), "{}", ended.stderr);
    assert_eq!(server.sandbox.list(&PODS, None).len(), 1);
    let status = &server.sandbox.list(&REPLICA_SETS, None)[0]["status"];
    assert_eq!(status["observedGeneration"], 1, "the reconcile goes on to its end");
}

#[tokio::test]
async fn a_reconcile_that_outlasts_the_shutdown_timeout_is_given_up() {
    let stalled = Fault::on(Verb::Create).resource(PODS).stall();
    let Busy { mut manager, server, _folder } = busy_with(stalled, &["--controller-shutdown-timeout=1s"]).await;
    let begun = tokio::time::Instant::now();
    manager.terminate();
    manager.says("\"Stage did not end in time; its tasks are aborted\" stage=\"Loops\"").await;
    assert_eq!(manager.ended().await.code, Some(0));
    // The default is ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(server.sandbox.list(&PODS, None).is_empty());
}

#[tokio::test]
async fn the_second_signal_ends_at_once() {
    let Busy { mut manager, server, _folder } = busy(Fault::on(Verb::Create).resource(PODS).stall()).await;
    manager.terminate();
    manager.says("Waiting for running reconciles to finish").await;
    let begun = tokio::time::Instant::now();
    manager.terminate();
    manager.says("Aborting running reconciles").await;
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    // A drain would have lasted up to ten seconds.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(server.sandbox.list(&PODS, None).is_empty());
}

#[tokio::test]
async fn a_signal_while_it_waits_for_the_api_server_ends_it() {
    let server = Server::start_with(Sandbox::default(), |_| Some((503, "not yet"))).await;
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let program = env!("CARGO_BIN_EXE_kube-controller-manager");
    let mut manager = Process::start(program, &["--leader-elect=false", "--v=4", &kubeconfig]);
    manager.says("Waiting for the API server").await;
    let begun = tokio::time::Instant::now();
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_signal_while_an_exec_plugin_hangs_ends_it_and_the_plugin() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let id = folder.path("id");
    let plugin = folder.file("plugin", &format!("echo $$ > {}\nexec /bin/sleep 600\n", id.display()));
    let user = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /bin/sh, args: [{plugin:?}]}}}}"
    );
    let kubeconfig = folder.kubeconfig_of(&format!("{{server: {:?}}}", server.address), &user);
    let manager = Process::start(env!("CARGO_BIN_EXE_kube-controller-manager"), &[&kubeconfig]);
    let started = async {
        loop {
            let id = std::fs::read_to_string(&id).unwrap_or_default();
            if id.ends_with('\n') {
                return id.trim_end().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let id = tokio::time::timeout(Duration::from_mins(1), started).await.expect("the plugin must start");
    let begun = tokio::time::Instant::now();
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let ended = async {
        // It has ended, or is a zombie that nothing waits for.
        while std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), ended).await.expect("the plugin must end too");
}
