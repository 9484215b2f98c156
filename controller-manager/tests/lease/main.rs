//! Leader election of the binary: its lease, its exit codes, its standbys, and the controllers that migrate.

#![cfg(feature = "builtin")]

mod migration;
mod standby;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use kcm_sandbox_apiserver::{
    EVENTS, Fault, LEASES, NAMESPACES, ObjectKey, PODS, REPLICA_SETS, Resource, Sandbox, Status, Verb,
};
use serde_json::{Value, json};
use support::program::{Ended, Folder, Process, run};
use support::server::Server;

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

/// Short, and long enough for a busy machine.
const PERIODS: [&str; 3] =
    ["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s", "--leader-elect-retry-period=500ms"];

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-system", name)
}

fn main_lease() -> ObjectKey {
    key("kube-controller-manager")
}

fn start(server: &Server, folder: &Folder, arguments: &[&str]) -> Process {
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    Process::start(MANAGER, &[&PERIODS, arguments, &[&kubeconfig]].concat())
}

fn spec(sandbox: &Sandbox, lease: &ObjectKey) -> Value {
    sandbox.get(&LEASES, lease).map(|lease| lease["spec"].clone()).unwrap_or_default()
}

/// Returns the warnings, except about controllers that `--controllers` leaves out.
fn unexpected(ended: &Ended) -> Vec<&str> {
    ended.warnings().into_iter().filter(|warning| !warning.contains("\"Controller is disabled\"")).collect()
}

/// Waits until `holds` returns `true`.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_mins(1), waiting).await.is_ok(), "it never came true that {what}");
}

/// Gives the lease to another holder, for `seconds`.
fn give_away(sandbox: &Sandbox, lease: &ObjectKey, seconds: u32) {
    let spec = json!({ "spec": { "holderIdentity": "another", "leaseDurationSeconds": seconds } });
    sandbox.patch(&LEASES, lease, &spec).expect("the patch is valid");
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
    })
}

fn create(sandbox: &Sandbox, resource: &Resource, name: &str, replicas: u32) {
    let object = json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "web" } }, "template": template() },
    });
    sandbox.create(resource, object).expect("the object must be valid");
}

#[tokio::test]
async fn a_lost_lease_ends_the_process_with_code_3() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &[]);
    manager.says("\"Started controller\"").await;
    manager.expect_error("Leader election lost");
    give_away(&server.sandbox, &main_lease(), 15);
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(3));
    assert_eq!(
        ended.errors(),
        ["leader election lost: the lease was not renewed in time, or another process holds it"]
    );
    assert_eq!(spec(&server.sandbox, &main_lease())["holderIdentity"], "another", "what another holds is not released");
}

#[tokio::test]
async fn a_process_that_may_not_exit_steps_down_and_leads_again() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &["--exit-on-lost-lease=false"]);
    manager.says("\"Started controller\"").await;
    give_away(&server.sandbox, &main_lease(), 1);
    manager.says("Leader election lost; stopping the controllers and competing again").await;
    manager.says("\"Started controller\"").await;
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
    let spec = spec(&server.sandbox, &main_lease());
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseTransitions"]),
        (&"".into(), &1.into()),
        "it is released at the end"
    );
}

/// The settings of authentication are read after the port is served, so that the process may lead by then.
#[tokio::test]
async fn a_port_that_fails_while_leading_releases_the_lease() {
    const SETTINGS: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    const FORBIDDEN: &str =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}"#;
    let server = Server::start_with(Sandbox::default(), |path| (path == SETTINGS).then_some((403, FORBIDDEN))).await;
    server.hold(SETTINGS);
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let authentication = kubeconfig.replacen("--kubeconfig", "--authentication-kubeconfig", 1);
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = format!("--secure-port={}", port.expect("a port is free").port());
    let mut manager = start(&server, &folder, &["--bind-address=127.0.0.1", &port, &authentication]);
    manager.says("\"Started controller\"").await;
    manager.expect_error("Stopping the controllers");
    server.release();
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(2), "{:?}", ended.errors());
    assert_eq!(spec(&server.sandbox, &main_lease())["holderIdentity"], "", "it is released");
}

/// Events are sent for some seconds more.
#[tokio::test]
async fn the_lease_is_released_as_soon_as_the_loops_have_stopped() {
    let sandbox = Sandbox::default();
    let events = sandbox.faults().inject(Fault::on(Verb::Create).resource(EVENTS).stall());
    create(&sandbox, &REPLICA_SETS, "web", 1);
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &["--controllers=replicaset"]);
    until("an event is sent", || !server.sandbox.list(&PODS, None).is_empty() && events.hits() > 1).await;
    manager.terminate();
    until("the lease is released", || spec(&server.sandbox, &main_lease())["holderIdentity"] == "").await;
    assert!(manager.is_running(), "it waits for the answer to its event");
    assert_eq!(manager.ended().await.code, Some(0));
}

/// A successor creates the other pods.
#[tokio::test]
async fn a_long_reconcile_sends_no_more_writes_when_the_leader_is_asked_to_stop() {
    let sandbox = Sandbox::default();
    // Slow start: 1, 2, 4, 8 and 5 pods at a time, which would take 15 s.
    let slow = sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).delay(Duration::from_secs(3)));
    create(&sandbox, &REPLICA_SETS, "web", 20);
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &["--controllers=replicaset"]);
    until("a pod is being created", || slow.hits() == 1).await;
    manager.terminate();
    manager.says("Running reconciles send no more writes, so that another replica can continue them").await;
    assert_eq!(manager.ended().await.code, Some(0));
    assert_eq!(server.sandbox.list(&PODS, None).len(), 1, "what was sent is waited for");
    let released = spec(&server.sandbox, &main_lease());
    assert_eq!((&released["holderIdentity"], &released["leaseTransitions"]), (&"".into(), &0.into()));
    let events = server.sandbox.list(&EVENTS, Some("default"));
    let warnings: Vec<_> = events.iter().filter(|event| event["type"] == "Warning").collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    let status = &server.sandbox.list(&REPLICA_SETS, None)[0]["status"];
    assert_eq!(status.get("conditions"), None, "{status}");
}

#[tokio::test]
async fn with_upstream_s_gate_off_the_lease_is_not_released() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let gate = "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=false";
    let mut manager = start(&server, &folder, &[gate, "--controllers=replicaset"]);
    manager.says("\"Started controller\"").await;
    let holder = spec(&server.sandbox, &main_lease())["holderIdentity"].clone();
    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!((ended.code, unexpected(&ended)), (Some(0), vec![]));
    assert_eq!(spec(&server.sandbox, &main_lease())["holderIdentity"], holder);
}

#[test]
fn coordinated_leader_election_is_refused() {
    for gates in ["CoordinatedLeaderElection=true", "AllBeta=true"] {
        let flag = format!("--feature-gates={gates}");
        let ended = run(MANAGER, &[&flag, "--controllers=replicaset"]);
        assert_eq!(
            ended.refusals(),
            ["--feature-gates: the API server cannot choose the leader among processes of this program: \
              leave the feature gate CoordinatedLeaderElection off"],
            "{gates}"
        );
    }
    assert_eq!(run(MANAGER, &["--feature-gates=CoordinatedLeaderElection=true", "--leader-elect=false"]).code, Some(1));
}

/// A process that led while the API server cannot be used would keep one from acting that can use it.
#[tokio::test]
async fn an_api_server_that_cannot_be_used_yet_is_probed_before_the_lease_is_taken() {
    for warm in ["--leader-elect-warm-standby=true", "--leader-elect-warm-standby=false"] {
        let overloaded = |path: &str| (path == "/apis" || path == "/api").then_some((403, "as the test wants it"));
        let server = Server::start_with(Sandbox::default(), overloaded).await;
        let ended = start(&server, &Folder::new(), &[warm]).ended().await;
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert_eq!(spec(&server.sandbox, &main_lease()), Value::Null, "{warm}");
    }
}

/// Requests of controllers that wait for their rate limit do not hold up a renewal.
#[tokio::test]
async fn a_full_bucket_does_not_lose_the_lease() {
    let sandbox = Sandbox::default();
    create(&sandbox, &REPLICA_SETS, "web", 500);
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let limits = ["--kube-api-qps=4", "--kube-api-burst=4", "--controllers=replicaset"];
    let mut manager = start(&server, &folder, &limits);
    manager.says("\"Started controller\"").await;
    let renewed = || spec(&server.sandbox, &main_lease())["renewTime"].clone();
    for _ in 0..16 {
        let before = renewed();
        until("the lease is renewed", || renewed() != before).await;
    }
    assert!(server.sandbox.list(&PODS, None).len() < 500, "the bucket is full all the time");
    assert!(manager.is_running());
    assert_eq!(spec(&server.sandbox, &main_lease())["leaseTransitions"], 0);
}

/// As the scheduler of a fair API server limits everything but leader election, which it knows by the User-Agent.
#[tokio::test]
async fn an_api_server_that_throttles_all_but_the_lease_does_not_lose_it() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &["--controllers=replicaset"]);
    manager.says("\"Started controller\"").await;
    let slow = Fault::on(Verb::Create).resource(PODS).fail(Status::too_many_requests(1));
    let fault = server.sandbox.faults().inject(slow);
    create(&server.sandbox, &REPLICA_SETS, "web", 100);
    let renewed = || spec(&server.sandbox, &main_lease())["renewTime"].clone();
    for _ in 0..8 {
        let before = renewed();
        until("the lease is renewed", || renewed() != before).await;
    }
    assert!(fault.hits() > 0);
    fault.remove();
    until("the pods are made", || server.sandbox.list(&PODS, None).len() == 100).await;
    assert_eq!(spec(&server.sandbox, &main_lease())["leaseTransitions"], 0);
}

/// A namespace that is deleted has everything read again that is served.
#[tokio::test]
async fn discovery_that_takes_longer_than_the_lease_does_not_lose_it() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &["--controllers=namespace"]);
    manager.says("\"Started controller\"").await;
    let namespace = json!({ "metadata": { "name": "a", "finalizers": [] }, "spec": { "finalizers": ["kubernetes"] } });
    server.sandbox.create(&NAMESPACES, namespace).expect("the namespace is valid");
    server.hold("/api");
    let asked = server.requests().len();
    server.sandbox.delete(&NAMESPACES, &ObjectKey::cluster_scoped("a")).expect("the namespace exists");
    let since = || server.requests().split_off(asked);
    until("discovery is read", || since().iter().any(|request| request == "GET /api")).await;
    let renewed = || spec(&server.sandbox, &main_lease())["renewTime"].clone();
    for _ in 0..16 {
        let before = renewed();
        until("the lease is renewed", || renewed() != before).await;
    }
    assert!(!since().iter().any(|request| request == "GET /apis"), "it is not answered yet");
    assert!(manager.is_running());
    assert_eq!(spec(&server.sandbox, &main_lease())["leaseTransitions"], 0);
    server.release();
    until("discovery goes on", || since().iter().any(|request| request == "GET /apis")).await;
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}
