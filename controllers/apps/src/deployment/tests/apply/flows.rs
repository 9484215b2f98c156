//! Whole rollouts, with the replica set controller and kubelets.

use std::time::Duration;

use kcm_sandbox_apiserver::{DEPLOYMENTS, PODS, REPLICA_SETS};
use serde_json::{Value, json};

use super::with_image;
use crate::deployment::tests::cluster::Cluster;
use crate::deployment::tests::fixtures::{deployment, key};

fn rows(rows: &[(&str, i64)]) -> Vec<(String, i64)> {
    rows.iter().map(|(image, size)| ((*image).to_owned(), *size)).collect()
}

fn revision(object: &Value) -> &str {
    object["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_created_rolled_out_and_rolled_back_by_its_template() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(4));
    cluster.run_until_complete().await;
    assert_eq!(cluster.progress(), "NewReplicaSetAvailable");

    cluster.patch(&with_image("image:2"));
    cluster
        .run_until("it has rolled", || {
            let total: i64 = cluster.sizes().iter().map(|(_, size)| size).sum();
            assert!(total <= 5, "never more than the surge allows: {total}");
            let serving = cluster.serving();
            assert!(serving >= 3, "never fewer than may be unavailable: {serving}");
            cluster.sizes() == rows(&[("image:1", 0), ("image:2", 4)]) && serving == 4
        })
        .await;
    cluster.run_until_complete().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 0), ("image:2", 4)]));
    assert_eq!(revision(&cluster.deployment()), "2");

    cluster.patch(&with_image("image:1"));
    cluster.run_until_complete().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 4), ("image:2", 0)]));
    let sets = cluster.sets();
    assert_eq!(sets.iter().map(revision).collect::<Vec<_>>(), ["2", "3"], "no third replica set");
    assert_eq!(sets[1]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(revision(&cluster.deployment()), "3");
    assert_eq!(cluster.requests("POST").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_moves_no_faster_than_pods_become_available() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(10).rolling(3, 2));
    cluster.run_until_complete().await;
    cluster.patch(&with_image("broken:1"));
    cluster.run_until("it is stuck", || cluster.sizes() == rows(&[("broken:1", 5), ("image:1", 8)])).await;
    for _ in 0..20 {
        cluster.settle().await;
        cluster.run_pods();
    }
    assert_eq!(cluster.sizes(), rows(&[("broken:1", 5), ("image:1", 8)]));

    // A third template: its replica set starts with 0, and is scaled up by what the other two are scaled down.
    cluster.sandbox().clear_requests();
    cluster.patch(&with_image("image:3"));
    cluster.run_until("the third is scaled up", || cluster.sizes().contains(&("image:3".to_owned(), 5))).await;
    let sizes = cluster.bodies("POST").iter().map(|set| set["spec"]["replicas"].clone()).collect::<Vec<_>>();
    assert_eq!(sizes, [0]);
    cluster.run_until_complete().await;
    assert_eq!(cluster.sizes(), rows(&[("broken:1", 0), ("image:1", 0), ("image:3", 10)]));
}

#[tokio::test(start_paused = true)]
async fn recreation_starts_when_the_last_old_pod_is_deleted() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).recreate());
    cluster.run_until_complete().await;
    cluster.patch(&with_image("image:2"));
    let terminating = || cluster.pods().iter().filter(|pod| pod["metadata"].get("deletionTimestamp").is_some()).count();
    cluster.eventually("old pods terminate", |_| terminating() == 2).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 0)]), "they still run");

    let [first, last] = cluster.pod_keys().try_into().unwrap();
    cluster.sandbox().delete_now(&PODS, &first).unwrap();
    cluster.settle().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 0)]), "one still runs");
    cluster.sandbox().delete_now(&PODS, &last).unwrap();
    cluster.settle().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 0), ("image:2", 2)]));
    cluster.run_until_complete().await;
    assert_eq!(cluster.progress(), "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_recreation_does_not_wait_for_pods_of_a_terminating_orphan() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).recreate());
    cluster.run_until_complete().await;
    let [orphan] = cluster.sets().try_into().unwrap();
    let orphan = key(orphan["metadata"]["name"].as_str().unwrap());
    cluster.sandbox().delete_now(&DEPLOYMENTS, &key("web")).unwrap();
    let held = json!({ "metadata": { "ownerReferences": [], "finalizers": ["example.com/hold"] } });
    cluster.sandbox().patch(&REPLICA_SETS, &orphan, &held).unwrap();
    cluster.sandbox().delete(&REPLICA_SETS, &orphan).unwrap();
    cluster.settle().await;
    assert_eq!(cluster.serving(), 2, "its pods still run");

    cluster.create(&deployment("web").replicas(2).recreate());
    cluster.settle().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 2), ("image:1", 2)]), "the orphan is not adopted");
    cluster.run_until_complete().await;
    assert_eq!(cluster.progress(), "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn recreation_starts_when_the_last_old_pod_has_finished_though_finished_ones_are_held() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).recreate());
    cluster.run_until_complete().await;
    for pod in cluster.pod_keys() {
        let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
        cluster.sandbox().patch(&PODS, &pod, &held).unwrap();
    }
    cluster.patch(&with_image("image:2"));
    cluster.settle().await;
    for pod in cluster.pod_keys() {
        assert_eq!(cluster.sizes(), rows(&[("image:1", 0)]), "one still runs");
        cluster.sandbox().set_pod_phase(&pod, "Succeeded").unwrap();
        cluster.settle().await;
    }
    assert_eq!(cluster.sizes(), rows(&[("image:1", 0), ("image:2", 2)]));
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_scaled_in_proportion_and_its_rollout_continues_when_resumed() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(10).rolling(3, 2));
    cluster.run_until_complete().await;
    cluster.patch(&with_image("broken:1"));
    cluster.run_until("it is stuck", || cluster.sizes() == rows(&[("broken:1", 5), ("image:1", 8)])).await;

    cluster.patch(&json!({ "spec": { "paused": true, "replicas": 20 } }));
    cluster.eventually("it is paused", |_| cluster.progress() == "DeploymentPaused").await;
    cluster.settle().await;
    assert_eq!(cluster.sizes(), rows(&[("broken:1", 9), ("image:1", 14)]));
    cluster.patch(&with_image("image:3"));
    cluster.settle().await;
    assert_eq!(cluster.sizes().len(), 2, "no replica set is created while paused");
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(cluster.progress(), "DeploymentPaused", "a pause stops the progress deadline");

    cluster.patch(&json!({ "spec": { "paused": false } }));
    cluster.run_until_complete().await;
    assert_eq!(cluster.sizes(), rows(&[("broken:1", 0), ("image:1", 0), ("image:3", 20)]));
}

#[tokio::test(start_paused = true)]
async fn a_rollout_without_progress_fails_a_second_after_its_deadline_and_recovers() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).with("/spec", "progressDeadlineSeconds", json!(60)));
    cluster.run_until_complete().await;
    cluster.patch(&with_image("broken:1"));
    cluster.settle().await;
    let since: jiff::Timestamp = cluster.condition("Progressing")["lastUpdateTime"].as_str().unwrap().parse().unwrap();
    cluster.eventually("it has failed", |_| cluster.progress() == "ProgressDeadlineExceeded").await;
    let waited = cluster.sandbox().now().duration_since(since).as_secs();
    assert!((61..=62).contains(&waited), "after {waited} s");
    assert_eq!(cluster.condition("Progressing")["status"], "False");

    cluster.patch(&with_image("image:3"));
    cluster.run_until_complete().await;
    assert_eq!(cluster.progress(), "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_requested_rollback_restores_template_and_annotations() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).annotations(json!({ "kubernetes.io/change-cause": "create" })));
    cluster.run_until_complete().await;
    let mut change = with_image("image:2");
    change["metadata"] = json!({ "annotations": { "kubernetes.io/change-cause": "edit" } });
    cluster.patch(&change);
    cluster.run_until_complete().await;

    cluster.sandbox().clear_requests();
    let before = cluster.patch(&json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": "0" } } }));
    cluster.eventually("it is rolled back", |_| !cluster.requests("PUT").is_empty()).await;
    let first = cluster.requests("PUT").remove(0);
    assert!(first.path.ends_with("/deployments/web"), "the deployment itself: {}", first.path);
    let mut expected = before;
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    expected["metadata"]["annotations"] =
        json!({ "kubernetes.io/change-cause": "create", "deployment.kubernetes.io/revision": "2" });
    expected["spec"]["template"]["spec"]["containers"][0]["image"] = json!("image:1");
    assert_eq!(serde_json::from_str::<Value>(&first.body).unwrap(), expected);

    cluster.run_until_complete().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 2), ("image:2", 0)]));
    let messages = cluster.event_messages();
    assert!(messages.contains(&"Rolled back deployment \"web\" to revision 1".to_owned()), "{messages:?}");
    let causes: Vec<_> =
        cluster.sets().iter().map(|set| set["metadata"]["annotations"]["kubernetes.io/change-cause"].clone()).collect();
    assert_eq!(causes, ["edit", "create"]);

    cluster.patch(&json!({ "metadata": { "annotations": { "deprecated.deployment.rollback.to": "9" } } }));
    cluster.settle().await;
    assert!(cluster.event_messages().contains(&"Unable to find the revision to rollback to.".to_owned()));
    assert_eq!(cluster.deployment()["metadata"]["annotations"].get("deprecated.deployment.rollback.to"), None);
}

#[tokio::test(start_paused = true)]
async fn old_replica_sets_are_kept_up_to_the_limit() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").with("/spec", "revisionHistoryLimit", json!(1)));
    for image in ["image:1", "image:2", "image:3", "image:4"] {
        cluster.patch(&with_image(image));
        cluster.run_until_complete().await;
    }
    assert_eq!(cluster.sizes(), rows(&[("image:3", 0), ("image:4", 1)]));
    let deletions = cluster.requests("DELETE");
    assert!(deletions.iter().all(|request| request.body.contains("resourceVersion")), "{deletions:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_a_change() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(3));
    cluster.run_until_complete().await;
    cluster.patch(&with_image("image:2"));
    cluster.run_until_complete().await;
    let writes = || cluster.sandbox().requests().iter().filter(|request| request.method != "GET").count();
    let before = writes();
    tokio::time::sleep(Duration::from_hours(30)).await;
    assert_eq!(writes(), before, "two resyncs have passed");
}

#[tokio::test(start_paused = true)]
async fn of_a_deployment_that_is_being_deleted_only_the_status_is_updated() {
    let cluster = Cluster::start_both(|_| {}).await;
    cluster.create(&deployment("web").replicas(2).with("/metadata", "finalizers", json!(["example.com/hold"])));
    cluster.run_until_complete().await;
    cluster.sandbox().delete(&DEPLOYMENTS, &key("web")).unwrap();
    cluster.sandbox().patch(&DEPLOYMENTS, &key("web"), &with_image("image:2")).unwrap();
    cluster.settle().await;
    assert_eq!(cluster.sizes(), rows(&[("image:1", 2)]));
    let generation = cluster.deployment()["metadata"]["generation"].clone();
    assert_eq!(cluster.status()["observedGeneration"], generation);
    assert_eq!(cluster.status().get("updatedReplicas"), None, "none has the new template");
}
