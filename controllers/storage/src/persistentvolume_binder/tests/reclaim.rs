//! Released volumes on an API server in the process.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::PODS;
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::fixtures::{
    CLAIMS, IDENTITY, VOLUMES, create_claim, create_volume, environment, start, state_of_claim, state_of_volume,
    volume_key,
};
use super::life::{delete_claim, events};
use crate::tests::faults::passing_faults;

fn pod_key() -> ObjectKey {
    ObjectKey::namespaced("default", "recycler-for-v")
}

fn recycling() -> TestEnvironment {
    environment()
}

async fn watching(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, VOLUMES, PODS]).await;
}

/// A volume is bound, released, emptied by a Pod, and available again.
async fn recycled(cluster: &TestCluster) {
    watching(cluster).await;
    create_claim(cluster.sandbox(), "c 1Gi");
    create_volume(cluster.sandbox(), "v 1Gi path=/tmp/v policy=Recycle");
    cluster.eventually("it is bound", |sandbox| state_of_claim(sandbox, "c").contains("phase=Bound")).await;
    delete_claim(cluster.sandbox(), "c");
    cluster.eventually("a pod empties it", |sandbox| sandbox.get(&PODS, &pod_key()).is_some()).await;
    cluster
        .consistently("it waits for the pod", Duration::from_mins(1), |sandbox| {
            state_of_volume(sandbox, "v").contains("phase=Released")
        })
        .await;
    // The kubelet may have finished a Pod that was created again after a kill.
    cluster
        .eventually("it is available", |sandbox| {
            let is_running = |pod: Value| pod["status"]["phase"] != "Succeeded";
            if sandbox.get(&PODS, &pod_key()).is_some_and(is_running) {
                sandbox.set_pod_phase(&pod_key(), "Succeeded").unwrap();
            }
            state_of_volume(sandbox, "v") == "v phase=Available"
        })
        .await;
    cluster.eventually("the pod is deleted", |sandbox| sandbox.get(&PODS, &pod_key()).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn pvb_45_and_pl_5_a_volume_is_emptied_by_a_pod_and_available_again() {
    let cluster = recycling().start().await;
    recycled(&cluster).await;
    assert_eq!(events(&cluster, "VolumeRecycled"), 1);
    create_claim(cluster.sandbox(), "d 1Gi");
    cluster.eventually("it is bound again", |sandbox| state_of_claim(sandbox, "d").contains("volume=v")).await;
}

#[tokio::test(start_paused = true)]
async fn a_recycling_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(recycling, recycled).await;
    assert!(writes >= 9, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_recycling_ends_the_same_with_lost_responses_and_errors() {
    for resource in [VOLUMES, PODS] {
        for fault in passing_faults() {
            let cluster = recycling().start().await;
            cluster.sandbox().faults().inject(fault.resource(resource.clone()));
            recycled(&cluster).await;
        }
    }
}

/// Creates a volume whose claim does not exist any more.
fn released(text: &'static str) -> TestEnvironment {
    recycling().prepare(move |sandbox| create_volume(sandbox, text))
}

#[tokio::test(start_paused = true)]
async fn pvb_46_a_pod_that_fails_fails_the_volume_and_is_created_again() {
    let cluster = released("v 1Gi path=/tmp/v policy=Recycle claim=c other phase=Released").start().await;
    watching(&cluster).await;
    cluster.eventually("a pod empties it", |sandbox| sandbox.get(&PODS, &pod_key()).is_some()).await;
    let failed = json!({ "status": { "phase": "Failed", "message": "out of luck" } });
    cluster.sandbox().patch_status(&PODS, &pod_key(), &failed).unwrap();
    cluster.eventually("it has failed", |sandbox| state_of_volume(sandbox, "v").contains("phase=Failed")).await;
    let message = &cluster.sandbox().get(&VOLUMES, &volume_key("v")).unwrap()["status"]["message"];
    assert_eq!(message, "Recycle failed: failed to recycle volume: out of luck");
    assert_eq!(events(&cluster, "VolumeFailedRecycle"), 1);
    cluster
        .eventually("another pod empties it", |sandbox| {
            sandbox.get(&PODS, &pod_key()).is_some_and(|pod| pod["status"]["phase"] != "Failed")
        })
        .await;
    cluster.sandbox().set_pod_phase(&pod_key(), "Succeeded").unwrap();
    let available = "v claim=c phase=Available";
    cluster.eventually("it is available", |sandbox| state_of_volume(sandbox, "v") == available).await;
}

#[tokio::test(start_paused = true)]
async fn pl_6_a_pod_of_somebody_else_is_deleted_and_proves_nothing() {
    let cluster = released("v 1Gi path=/tmp/v policy=Recycle claim=c other phase=Released")
        .prepare(|sandbox| {
            let containers = json!([{ "name": "main", "image": "example/main:1" }]);
            let metadata = json!({ "namespace": "default", "name": "recycler-for-v" });
            sandbox.create(&PODS, json!({ "metadata": metadata, "spec": { "containers": containers } })).unwrap();
            sandbox.set_pod_phase(&pod_key(), "Succeeded").unwrap();
        })
        .start()
        .await;
    watching(&cluster).await;
    cluster
        .eventually("a pod of the volume empties it", |sandbox| {
            sandbox.get(&PODS, &pod_key()).is_some_and(|pod| pod["metadata"]["ownerReferences"].is_array())
        })
        .await;
    assert!(state_of_volume(cluster.sandbox(), "v").contains("phase=Failed"));
    assert_eq!(events(&cluster, "old recycler pod found, will retry later"), 1);
}

#[tokio::test(start_paused = true)]
async fn pvb_45_a_volume_that_a_pod_still_uses_is_not_emptied() {
    let cluster = released("v 1Gi path=/tmp/v policy=Recycle claim=c other phase=Released")
        .prepare(|sandbox| {
            let containers = json!([{ "name": "main", "image": "example/main:1" }]);
            let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
            let spec = json!({ "containers": containers, "volumes": volumes });
            sandbox.create(&PODS, json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": spec })).unwrap();
        })
        .start()
        .await;
    watching(&cluster).await;
    cluster
        .consistently("no pod empties it", Duration::from_mins(1), |sandbox| sandbox.get(&PODS, &pod_key()).is_none())
        .await;
    assert_eq!(events(&cluster, "Volume is used by pods: shop/web"), 1);
    cluster.sandbox().delete_now(&PODS, &ObjectKey::namespaced("shop", "web")).unwrap();
    cluster.eventually("a pod empties it", |sandbox| sandbox.get(&PODS, &pod_key()).is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn b_9_a_released_volume_whose_claim_is_alive_is_neither_deleted_nor_emptied() {
    for policy in ["Delete", "Recycle"] {
        let cluster = recycling().start().await;
        watching(&cluster).await;
        cluster.sandbox().faults().hold_watches(&CLAIMS);
        create_claim(cluster.sandbox(), "c 1Gi");
        let text = format!("v 1Gi path=/tmp/kcm-binder-alive policy={policy} claim=c uid phase=Released");
        create_volume(cluster.sandbox(), &text);
        cluster.advance(Duration::from_mins(2)).await;
        assert!(state_of_volume(cluster.sandbox(), "v").contains("claim=c uid"), "{policy}");
        assert!(cluster.sandbox().get(&PODS, &pod_key()).is_none());
    }
}

/// A volume is deleted with its directory.
async fn deleted(cluster: &TestCluster) {
    watching(cluster).await;
    create_claim(cluster.sandbox(), "c 1Gi");
    create_volume(cluster.sandbox(), "v 1Gi path=/tmp/kcm-binder-absent/v policy=Delete by=kubernetes.io/host-path");
    cluster.eventually("it is bound", |sandbox| state_of_claim(sandbox, "c").contains("phase=Bound")).await;
    delete_claim(cluster.sandbox(), "c");
    cluster
        .eventually("it is deleted", |sandbox| {
            // The finalizer of another controller.
            let volume = sandbox.get(&VOLUMES, &volume_key("v"));
            volume.is_none_or(|volume| {
                !volume["metadata"]["deletionTimestamp"].is_null()
                    && volume["metadata"]["finalizers"] == json!(["kubernetes.io/pv-protection"])
            })
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn pvb_44_and_b_7_a_volume_is_deleted_by_uid_after_its_directory() {
    let cluster = recycling().start().await;
    deleted(&cluster).await;
    let deletions = cluster.bodies_of(IDENTITY, "DELETE");
    assert_eq!(deletions.len(), 1);
    assert!(deletions[0]["preconditions"]["uid"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(recycling, deleted).await;
    assert!(writes >= 7, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = recycling().start().await;
        cluster.sandbox().faults().inject(fault.resource(VOLUMES));
        deleted(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pvb_41_to_47_a_volume_that_cannot_be_reclaimed_says_why() {
    let rows = [
        ("v 1Gi path=/var/tmp/x policy=Delete claim=c other", "host_path deleter only supports /tmp/.+"),
        ("v 1Gi nfs policy=Delete claim=c other", "no deletable volume plugin matched"),
        ("v 1Gi policy=Recycle claim=c other", "No recycler plugin found for the volume!"),
    ];
    for (text, message) in rows {
        let cluster = start(released(text)).await;
        cluster.advance(Duration::from_mins(1)).await;
        let volume = cluster.sandbox().get(&VOLUMES, &volume_key("v")).unwrap();
        assert_eq!(volume["status"]["phase"], "Failed", "{text}");
        assert!(volume["status"]["message"].as_str().unwrap().contains(message), "{volume}");
        assert_eq!(events(&cluster, message), 1, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retained_volume_costs_nothing_at_rest() {
    let cluster = start(released("v 1Gi policy=Retain claim=c other phase=Released")).await;
    cluster.settle().await;
    let before = cluster.requests_of(IDENTITY).len();
    cluster.advance(Duration::from_mins(10)).await;
    let requests = cluster.requests_of(IDENTITY).split_off(before);
    assert!(requests.iter().all(|request| request.query.contains("watch=")), "{requests:?}");
}
