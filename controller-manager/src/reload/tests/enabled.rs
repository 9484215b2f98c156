//! A reload that enables a controller and changes its settings in one edit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kcm_config::Sources;
use kcm_controllers::apps::{disruption, pod_garbage_collector};
use kcm_framework::api::ObjectKey;
use kcm_framework::clock::{Clock, SimulatedClock};
use kcm_framework::{ControllerState, Extensions, Registry, Stop};
use kcm_sandbox_apiserver::{NODES, PODS, Sandbox};
use serde_json::json;
use tokio::task::JoinSet;

use super::configured;
use crate::logs::{LogOptions, tests::logs_to};
use crate::reload::{ReloadState, Reloader, SettingsSource};

const COLLECTOR: &str = pod_garbage_collector::DESCRIPTOR.name;

fn write(path: &Path, controllers: &[&str], threshold: usize) {
    let configuration = json!({
        "apiVersion": "kubecontrollermanager.config.k8s.io/v1alpha1",
        "kind": "KubeControllerManagerConfiguration",
        "generic": { "controllers": controllers },
        "podGCController": { "terminatedPodGCThreshold": threshold },
    });
    std::fs::write(path, configuration.to_string()).expect("there must be room for a file");
}

fn pod(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "nodeName": "node", "containers": [{ "name": "main", "image": "main" }] },
    })
}

/// The old threshold would delete four of five pods.
#[tokio::test(start_paused = true)]
async fn a_controller_acts_by_its_new_settings_only() {
    let folder = tempfile::tempdir().expect("there must be room for a folder");
    let path = folder.path().join("kcm.yaml");
    write(&path, &["*", "-pod-garbage-collector-controller"], 1);
    let sandbox = Sandbox::default();
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node" } });
    sandbox.create(&NODES, node).expect("the node is valid");
    for number in 0..5 {
        let name = format!("pod-{number}");
        sandbox.create(&PODS, pod(&name)).expect("the pod is valid");
        let finished = json!({ "status": { "phase": "Succeeded" } });
        let key = ObjectKey::namespaced("default", name.as_str());
        sandbox.patch_status(&PODS, &key, &finished).expect("the pod is there");
    }
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(sandbox.now()));
    // Disruption needs the same part of pods, so that the caches have it.
    let registry = Registry::of([pod_garbage_collector::DESCRIPTOR, disruption::DESCRIPTOR]);
    let registry = registry.expect("the descriptors go together");
    let flags = ["--leader-elect=false".to_owned(), format!("--config={}", path.display())];
    let sources = Sources::default().arguments(flags).reader(|path| std::fs::read(path));
    let (start, manager) = configured(&registry, &sources, &sandbox);
    let options = LogOptions::of(&start).expect("the settings go together");
    let (logs, _subscriber) = logs_to(std::io::sink(), options, Arc::clone(&clock));
    let (clients, handle) = (manager.clients().clone(), manager.handle());
    let reloads = ReloadState::new(manager.metrics());
    let source = SettingsSource { sources, registry, extensions: Extensions::default(), start };
    let mut reloader = Reloader::new(source, &logs, clients, handle.clone(), reloads.clone(), clock);
    let mut running = JoinSet::new();
    running.spawn(manager.run(Stop::default()));
    let state = || handle.controller(COLLECTOR).expect("it is registered").state;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(matches!(state(), ControllerState::Disabled(_)), "{:?}", state());

    write(&path, &["*"], 100);
    reloader.reload();
    assert_eq!(reloads.check(), Ok(()));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(state(), ControllerState::Running);
    let pods = sandbox.list(&PODS, None);
    assert_eq!(pods.len(), 5, "the threshold of the start is not in use any more");
    assert!(pods.iter().all(|pod| pod["status"]["phase"] == "Succeeded"), "{pods:?}");

    // It uses the new threshold until it is restarted.
    write(&path, &["*"], 100);
    reloader.reload();
    assert!(!handle.needs_restart("terminated-pod-gc-threshold", &reloader.in_use));
    write(&path, &["*"], 1);
    reloader.reload();
    assert!(handle.needs_restart("terminated-pod-gc-threshold", &reloader.in_use));

    // Disabled and enabled, it has the new one.
    write(&path, &["*", "-pod-garbage-collector-controller"], 1);
    reloader.reload();
    tokio::time::sleep(Duration::from_mins(1)).await;
    write(&path, &["*"], 1);
    reloader.reload();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(sandbox.list(&PODS, None).len(), 1);
}
