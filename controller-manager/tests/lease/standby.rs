//! Replicas that wait for the lease: what they ask the API server for, and what they keep.

use kcm_sandbox_apiserver::{PODS, REPLICA_SETS, Sandbox};

use crate::support::program::Folder;
use crate::support::server::Server;
use crate::{create, main_lease, spec, start, until};

/// Over a socket of its own, so that its requests are known.
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
    let renewed = || spec(&sandbox, &main_lease())["renewTime"].clone();
    for _ in 0..6 {
        let before = renewed();
        until("the lease is renewed", || renewed() != before).await;
    }
    standby.terminate();
    assert_eq!(standby.ended().await.code, Some(0));
    let asked = second.requests();
    let watches = asked.iter().filter(|request| *request == "GET /api/v1/pods").count();
    assert!(watches > 0, "its caches are filled");
    let writes: Vec<_> = asked.iter().filter(|request| !request.starts_with("GET ")).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(asked.len() <= first.requests().len(), "{asked:#?}");
    leader.terminate();
    assert_eq!(leader.ended().await.code, Some(0));
    assert!(
        first.requests().iter().any(|request| request.starts_with("POST ")),
        "those of the leader are recorded too"
    );
}
