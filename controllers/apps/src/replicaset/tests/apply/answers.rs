//! An API server that is busy, and a webhook that fails.

use std::time::Duration;

use kcm_sandbox_apiserver::{Fault, PODS, REPLICA_SETS, Status, Verb};
use serde_json::json;

use crate::replicaset::tests::cluster::Cluster;
use crate::tests::cluster::key;
use crate::tests::fixtures::replica_set;

const SECOND: Duration = Duration::from_secs(1);

fn failing_webhook() -> Fault {
    let message = "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: refused";
    Fault::on(Verb::Create).resource(PODS).fail(Status::new(500, "InternalError", message))
}

#[tokio::test(start_paused = true)]
async fn pods_are_created_within_a_second_of_the_recovery_of_a_webhook_that_failed_for_ten_seconds() {
    let cluster = Cluster::start(|_| {}).await;
    let webhook = cluster.sandbox().faults().inject(failing_webhook());
    cluster.create(&replica_set("web").replicas(3));
    cluster.advance(10 * SECOND).await;
    assert!(cluster.pods().is_empty());
    webhook.remove();
    cluster.advance(SECOND).await;
    assert_eq!(cluster.pods().len(), 3);
    cluster.settle().await;
    assert_eq!(cluster.status("web")["replicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn pods_are_deleted_at_once_while_a_webhook_refuses_new_ones() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(&replica_set("web").replicas(3));
    cluster.eventually("there are three", |_| cluster.pods().len() == 3).await;
    cluster.sandbox().faults().inject(failing_webhook());
    let scale = |replicas: i32| {
        cluster.sandbox().patch(&REPLICA_SETS, &key("web"), &json!({"spec": {"replicas": replicas}})).unwrap();
    };
    scale(5);
    cluster.advance(8 * SECOND).await;
    assert_eq!(cluster.pods().len(), 3);
    scale(1);
    cluster.settle().await;
    assert_eq!(cluster.pods().len(), 1);
}
