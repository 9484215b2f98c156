//! Replicas that wait for the lease: their requests, and their caches.

use kcm_sandbox_apiserver::{DEPLOYMENTS, ObjectKey, PODS, REPLICA_SETS, Sandbox};
use rcgen::KeyPair;
use serde_json::json;

use crate::support::program::Folder;
use crate::support::server::Server;
use crate::{create, give_away, main_lease, spec, start, until};

/// Over a socket of its own, so that its requests can be counted.
#[tokio::test]
async fn a_standby_writes_nothing_and_asks_no_more_than_the_leader() {
    let sandbox = Sandbox::default();
    let (first, second) = (Server::start(sandbox.clone()).await, Server::start(sandbox.clone()).await);
    let folders = [Folder::new(), Folder::new()];
    let mut leader = start(&first, &folders[0], &["--controllers=replicaset"]);
    leader.says("\"Started controller\"").await;
    let mut standby = start(&second, &folders[1], &["--controllers=replicaset"]);
    standby.says("Attempting to acquire leader lease").await;
    create(&sandbox, &REPLICA_SETS, "web", 20);
    until("the leader has made the pods", || sandbox.list(&PODS, None).len() == 20).await;
    six_renewals(&sandbox).await;
    standby.terminate();
    assert_eq!(standby.ended().await.code, Some(0));
    let asked = second.requests();
    let watches = asked.iter().filter(|request| *request == "GET /api/v1/pods").count();
    assert!(watches > 0, "its caches are filled");
    assert_eq!(writes_over(&second), [""; 0]);
    assert!(asked.len() <= first.requests().len(), "{asked:#?}");
    leader.terminate();
    assert_eq!(leader.ended().await.code, Some(0));
    assert!(
        first.requests().iter().any(|request| request.starts_with("POST ")),
        "those of the leader are recorded too"
    );
}

/// Number of times that `path` was read over the socket of a server.
fn gets_of(server: &Server, path: &str) -> usize {
    let get = format!("GET {path}");
    server.requests().iter().filter(|request| **request == get).count()
}

/// The requests over the socket of a server that are not reads.
fn writes_over(server: &Server) -> Vec<String> {
    server.requests().into_iter().filter(|request| !request.starts_with("GET ")).collect()
}

/// Waits until the leader has renewed its lease six times.
async fn six_renewals(sandbox: &Sandbox) {
    let renewed = || spec(sandbox, &main_lease())["renewTime"].clone();
    for _ in 0..6 {
        let before = renewed();
        until("the lease is renewed", || renewed() != before).await;
    }
}

#[tokio::test]
async fn a_standby_of_all_controllers_writes_nothing() {
    let sandbox = Sandbox::default();
    let (first, second) = (Server::start(sandbox.clone()).await, Server::start(sandbox.clone()).await);
    let folders = [Folder::new(), Folder::new()];
    let mut leader = start(&first, &folders[0], &["--controllers=replicaset"]);
    leader.says("\"Started controller\"").await;
    let key = folders[1].file("sa.key", &KeyPair::generate().expect("a key").serialize_pem());
    let key = format!("--service-account-private-key-file={key}");
    let mut standby = start(&second, &folders[1], &[&key]);
    standby.says("Attempting to acquire leader lease").await;
    until("its caches are filled", || {
        ["/api/v1/secrets", "/apis/apps/v1/deployments"].iter().all(|path| gets_of(&second, path) > 0)
    })
    .await;
    create(&sandbox, &DEPLOYMENTS, "web", 1);
    six_renewals(&sandbox).await;
    standby.terminate();
    assert_eq!(standby.ended().await.code, Some(0));
    assert_eq!(writes_over(&second), [""; 0]);
    leader.terminate();
    assert_eq!(leader.ended().await.code, Some(0));
}

#[tokio::test]
async fn a_cold_standby_reads_no_objects_but_the_lease_until_it_leads() {
    let sandbox = Sandbox::default();
    let (first, second) = (Server::start(sandbox.clone()).await, Server::start(sandbox.clone()).await);
    let folders = [Folder::new(), Folder::new()];
    let mut leader = start(&first, &folders[0], &["--controllers=replicaset"]);
    leader.says("\"Started controller\"").await;
    let cold = ["--leader-elect-warm-standby=false", "--controllers=replicaset"];
    let mut standby = start(&second, &folders[1], &cold);
    standby.says("Attempting to acquire leader lease").await;
    create(&sandbox, &REPLICA_SETS, "web", 2);
    until("the leader has made the pods", || sandbox.list(&PODS, None).len() == 2).await;
    six_renewals(&sandbox).await;
    let is_of_objects = |request: &&String| {
        let path = request.rsplit('/').next();
        !request.starts_with("GET ") || path.is_some_and(|plural| ["pods", "replicasets"].contains(&plural))
    };
    let asked = second.requests();
    let of_objects: Vec<_> = asked.iter().filter(is_of_objects).collect();
    assert!(of_objects.is_empty(), "{of_objects:?}");
    assert!(asked.iter().any(|request| request.contains("/leases")), "it competes");

    leader.terminate();
    assert_eq!(leader.ended().await.code, Some(0));
    standby.says("\"Started controller\"").await;
    sandbox
        .patch(&REPLICA_SETS, &ObjectKey::namespaced("default", "web"), &json!({ "spec": { "replicas": 3 } }))
        .expect("the patch is valid");
    until("it acts", || sandbox.list(&PODS, None).len() == 3).await;
    standby.terminate();
    assert_eq!(standby.ended().await.code, Some(0));
    assert!(second.requests().iter().any(|request| request == "POST /api/v1/namespaces/default/pods"));
}

#[tokio::test]
async fn a_process_that_steps_down_keeps_its_caches() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let mut manager = start(&server, &folder, &["--exit-on-lost-lease=false", "--controllers=replicaset"]);
    manager.says("\"Started controller\"").await;
    let lists_of = |path: &str| {
        let requests = server.sandbox.requests();
        requests.iter().filter(|it| it.path == path && it.query.contains("sendInitialEvents")).count()
    };
    let lists = || ["/api/v1/pods", "/apis/apps/v1/replicasets"].map(lists_of);
    until("its caches are filled", || lists() == [1, 1]).await;
    give_away(&server.sandbox, &main_lease(), 1);
    manager.says("Leader election lost; stopping the controllers and competing again").await;
    manager.says("\"Started controller\"").await;
    create(&server.sandbox, &REPLICA_SETS, "web", 1);
    until("it acts", || server.sandbox.list(&PODS, None).len() == 1).await;
    assert_eq!(lists(), [1, 1], "the watches went on");
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}
