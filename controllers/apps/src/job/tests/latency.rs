//! How long a job takes from its last pod to its end.

use std::time::Duration;

use kcm_testing::sandbox::PODS;
use tokio::time::Instant;

use super::kubelet::{Cluster, finish, is_finished, new_job};
use crate::tests::cluster::NAMESPACE;

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_at_once_when_its_last_pod_has_succeeded() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(3, 3));
    cluster.eventually("three pods run", |sandbox| sandbox.list(&PODS, Some(NAMESPACE)).len() == 3).await;
    cluster.settle().await;
    let pods = cluster.sandbox().list(&PODS, Some(NAMESPACE));
    for pod in &pods {
        finish(cluster.sandbox(), pod["metadata"]["name"].as_str().expect("pods have names"), true);
    }
    let last = Instant::now();
    cluster.eventually("the job is complete", is_finished).await;
    let took = last.elapsed();
    assert!(took < Duration::from_millis(100), "it was collected with later changes, as those of other pods: {took:?}");
}
