//! Changes of the template together with changes of the size, for each policy and strategy.

use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use super::apply::{Cluster, REVISIONS, has, images, patch, run_pods, scale, web};
use super::fixtures::merge;
use crate::tests::cluster::key;

/// Sizes before and after a change.
const SIZES: [(&str, i32, i32); 3] = [("the image", 3, 3), ("the image, and up", 3, 5), ("the image, and down", 5, 3)];

fn create(cluster: &Cluster, replicas: i32, policy: &str, strategy: &Value) {
    cluster.create(web(replicas, json!({ "spec": { "podManagementPolicy": policy, "updateStrategy": strategy } })));
}

/// Changes the image and the size at once.
fn change(cluster: &Cluster, image: &str, replicas: i32) {
    let containers = json!([{ "name": "main", "image": image }]);
    patch(cluster, &json!({ "spec": { "replicas": replicas, "template": { "spec": { "containers": containers } } } }));
}

/// Waits until there are so many pods of this image, and the rollout is complete.
async fn completes(cluster: &Cluster, replicas: i32, image: &str) {
    let names: Vec<_> = (0..replicas).map(|ordinal| format!("web-{ordinal}")).collect();
    let pods: Vec<_> = names.iter().map(|name| (name.as_str(), image)).collect();
    has(cluster, &pods).await;
    let is_complete = |status: &Value| {
        status["currentRevision"] == status["updateRevision"]
            && ["updatedReplicas", "currentReplicas"]
                .iter()
                .all(|count| status[count].as_i64().unwrap_or(0) == i64::from(replicas))
    };
    cluster.eventually("it is complete", |_| is_complete(&cluster.set()["status"])).await;
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_and_its_rollback_go_together_with_scaling() {
    let rolling = json!({ "rollingUpdate": { "partition": 0 } });
    for policy in ["OrderedReady", "Parallel"] {
        for (_, before, after) in SIZES {
            let cluster = Cluster::start(|_| {}).await;
            create(&cluster, before, policy, &rolling);
            completes(&cluster, before, "image:1").await;
            let first = cluster.set()["status"]["updateRevision"].clone();
            change(&cluster, "image:2", after);
            completes(&cluster, after, "image:2").await;
            change(&cluster, "image:1", before);
            completes(&cluster, before, "image:1").await;
            assert_eq!((&cluster.set()["status"]["updateRevision"], cluster.list(&REVISIONS).len()), (&first, 2));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn on_delete_scales_and_replaces_only_pods_that_somebody_deletes() {
    let on_delete = json!({ "type": "OnDelete", "rollingUpdate": null });
    for policy in ["OrderedReady", "Parallel"] {
        for (name, before, after) in SIZES {
            let cluster = Cluster::start(|_| {}).await;
            create(&cluster, before, policy, &on_delete);
            completes(&cluster, before, "image:1").await;
            change(&cluster, "image:2", after);
            let kept = before.min(after);
            let expected = |ordinal: i32| if ordinal < kept { "image:1" } else { "image:2" };
            let pods: Vec<_> = (0..after).map(|ordinal| (format!("web-{ordinal}"), expected(ordinal))).collect();
            let pods: Vec<_> = pods.iter().map(|(name, image)| (name.as_str(), *image)).collect();
            has(&cluster, &pods).await;
            for ordinal in (0..kept).rev() {
                cluster.settle().await;
                let pod = format!("web-{ordinal}");
                cluster.sandbox().delete_now(&PODS, &key(&pod)).unwrap();
                let is_new = |(name, image): &(String, String)| *name == pod && image == "image:2";
                cluster.eventually("the pod is replaced", |sandbox| images(sandbox).iter().any(is_new)).await;
                run_pods(cluster.sandbox());
            }
            completes(&cluster, after, "image:2").await;
            assert_eq!(cluster.deleted().len(), usize::try_from(before - kept).unwrap(), "{name}, {policy}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pods_in_parallel_follow_every_size() {
    let mut changes = json!({ "spec": { "podManagementPolicy": "Parallel" } });
    merge(&mut changes, json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } }));
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(0, changes));
    for replicas in [10, 1, 10, 0, 3] {
        scale(&cluster, replicas);
        completes(&cluster, replicas, "image:1").await;
    }
}
