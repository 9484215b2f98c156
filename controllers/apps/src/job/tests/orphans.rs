//! Orphans: Pods that lose the finalizer because no Job counts them, and Pods that keep it.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::direct::{DeleteOptions, DirectClient, Propagation};
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use serde_json::json;

use super::kubelet::{Cluster, JOBS, Kubelet, finalizers, finish, is_finished, new_job, status};
use crate::tests::cluster::key;

const SECOND: Duration = Duration::from_secs(1);

/// A cluster with a Job whose three Pods run, and the keys of the Pods.
async fn running() -> (Cluster, Vec<ObjectKey>) {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(3, 3));
    cluster.eventually("three pods run", |sandbox| status(sandbox)["active"] == 3).await;
    cluster.settle().await;
    let pods = cluster.pod_keys();
    (cluster, pods)
}

/// Deletes the Job, and leaves its Pods: no garbage collector runs here.
fn delete_job(sandbox: &Sandbox) {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    DirectClient::new(sandbox).delete(&JOBS, &key("sum"), &options).expect("the job must be there");
}

/// Stores a status of a type that the view does not have, as a future version of the API might.
fn make_undecodable(sandbox: &Sandbox) {
    let ready = json!({ "status": { "ready": "many" } });
    DirectClient::new(sandbox).merge(&JOBS, &key("sum"), Some("status"), &ready).expect("the job must be there");
}

fn make_decodable(sandbox: &Sandbox) {
    let ready = json!({ "status": { "ready": 0 } });
    DirectClient::new(sandbox).merge(&JOBS, &key("sum"), Some("status"), &ready).expect("the job must be there");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_patched_keeps_no_other_from_losing_the_finalizer() {
    // Whichever of the Pods is the first.
    for refused in 0..3 {
        let (cluster, pods) = running().await;
        let invalid = Fault::on(Verb::Patch).resource(PODS).name(pods[refused].name());
        let invalid =
            cluster.sandbox().faults().inject(invalid.fail(Status::new(422, "Invalid", "a policy refuses it")));
        delete_job(cluster.sandbox());
        cluster.settle().await;
        assert_eq!(finalizers(cluster.sandbox()), 1, "pod {refused} is refused");
        assert!(invalid.hits() > 0);
        invalid.remove();
        cluster.eventually("it has lost it too", |sandbox| finalizers(sandbox) == 0).await;
        drop(cluster.take_errors());
    }
}

/// kubernetes/kubernetes 1.36 logged the failure, and the Pod kept its finalizer for ever.
#[tokio::test(start_paused = true)]
async fn an_orphan_whose_patch_fails_is_patched_again_with_back_off() {
    let (cluster, pods) = running().await;
    let on_first = || Fault::on(Verb::Patch).resource(PODS).name(pods[0].name()).times(1);
    let faults = cluster.sandbox().faults();
    let broken = faults.inject(on_first().skip(1).fail(Status::new(500, "InternalError", "it is broken")));
    let forbidden = faults.inject(on_first().fail(Status::forbidden(&PODS, pods[0].name(), "not now")));
    delete_job(cluster.sandbox());
    cluster.settle().await;
    assert_eq!((finalizers(cluster.sandbox()), forbidden.hits()), (1, 1), "the others lose it in the first round");
    cluster.advance(70 * SECOND).await;
    assert_eq!((finalizers(cluster.sandbox()), broken.hits()), (0, 1));
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_cannot_be_decoded_keep_the_finalizer_and_are_counted_when_it_can() {
    let (cluster, pods) = running().await;
    make_undecodable(cluster.sandbox());
    cluster.advance(10 * SECOND).await;
    assert_eq!(finalizers(cluster.sandbox()), 3, "pods that run");
    finish(cluster.sandbox(), pods[0].name(), true);
    cluster.advance(60 * SECOND).await;
    assert_eq!(finalizers(cluster.sandbox()), 3, "a pod that has succeeded");
    make_decodable(cluster.sandbox());
    let kubelet = Kubelet::succeeding().after(1, 0);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    kubelet.assert_all_counted(cluster.sandbox());
    assert_eq!((kubelet.outcomes(), cluster.pods().len()), ((3, 0), 3), "no pod runs a second time");
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_deleted_while_it_cannot_be_decoded_lose_the_finalizer() {
    for is_killed in [false, true] {
        let (cluster, pods) = running().await;
        make_undecodable(cluster.sandbox());
        if is_killed {
            cluster.kill();
            cluster.watches(&[PODS, JOBS]).await;
        }
        // Its finalizer keeps the Pod, and its deletion is the last change of it.
        cluster.sandbox().delete_now(&PODS, &pods[0]).expect("the pod must be there");
        cluster.advance(60 * SECOND).await;
        assert_eq!(finalizers(cluster.sandbox()), 3);
        delete_job(cluster.sandbox());
        cluster.advance(31 * SECOND).await;
        assert_eq!(finalizers(cluster.sandbox()), 0, "killed: {is_killed}");
        drop(cluster.take_errors());
    }
}
