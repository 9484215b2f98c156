//! Time from the last pod of a job to its end, and the number of requests that it sends at the same time.

use std::time::Duration;

use kcm_testing::sandbox::{Fault, PODS, Verb};
use serde_json::json;
use tokio::time::Instant;

use super::kubelet::{Cluster, JOBS, finish, is_finished, new_job, status};
use crate::tests::cluster::{NAMESPACE, key};

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

#[tokio::test(start_paused = true)]
async fn a_suspended_job_deletes_at_most_500_pods_at_the_same_time() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(600, 600));
    cluster.eventually("600 pods run", |sandbox| status(sandbox)["active"] == 600).await;
    let unanswered = cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(PODS).stall());
    let suspended = json!({ "spec": { "suspend": true } });
    cluster.sandbox().patch(&JOBS, &key("sum"), &suspended).expect("the job must be there");
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(unanswered.hits(), 500);
}
