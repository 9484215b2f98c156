//! Creation, scaling, rollouts, claims, adoption and history.

use std::time::Duration;

use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use super::apply::{CLAIMS, Cluster, REVISIONS, SETS, has, patch, roll, run_pods, scale, web};
use super::fixtures::{merge, with_claims};
use crate::shared::revisions::{RevisionData, revision_hash};
use crate::tests::cluster::{NAMESPACE, key};

fn raw(value: &Value) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

const TWO: [(&str, &str); 2] = [("web-0", "image:1"), ("web-1", "image:1")];

#[tokio::test(start_paused = true)]
async fn creates_a_revision_then_each_claim_before_its_pod_in_order() {
    let cluster = Cluster::start(|_| {}).await;
    let set = cluster.create(web(2, with_claims("Retain", "Retain")));
    cluster.eventually("the first pod is there", |_| cluster.pods().len() == 1).await;
    cluster.settle().await;
    assert_eq!(cluster.pods().len(), 1, "the second one waits");
    has(&cluster, &TWO).await;

    let data = RevisionData::of(Some(&raw(&set["spec"]["template"]))).unwrap();
    let name = format!("web-{}", revision_hash(&data, Some(0)));
    let expected = [
        format!("ControllerRevision {name}"),
        "PersistentVolumeClaim data-web-0".to_owned(),
        "Pod web-0".to_owned(),
        "PersistentVolumeClaim data-web-1".to_owned(),
        "Pod web-1".to_owned(),
    ];
    assert_eq!(cluster.created(), expected);
    let body = cluster.requests("POST").remove(0).body;
    assert!(body.contains(data.as_str()), "byte for byte: {body}");
    let revision = cluster.object(&REVISIONS, &name);
    assert_eq!(
        (&revision["revision"], &revision["metadata"]["ownerReferences"][0]["uid"]),
        (&json!(1), &set["metadata"]["uid"])
    );
    assert_eq!(revision["metadata"]["labels"]["app"], "web");

    let status = cluster.set()["status"].clone();
    for (field, value) in [
        ("currentRevision", json!(name)),
        ("updateRevision", json!(name)),
        ("currentReplicas", json!(2)),
        ("updatedReplicas", json!(2)),
        ("collisionCount", json!(0)),
    ] {
        assert_eq!(status[field], value, "{field} of {status}");
    }
    for message in [
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
    ] {
        let event = ("Normal".to_owned(), "SuccessfulCreate".to_owned(), message.to_owned());
        assert!(cluster.events().contains(&event), "{:?}", cluster.events());
    }
    assert!(cluster.requests("PATCH").is_empty());
    let before = cluster.sandbox().version();
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(cluster.sandbox().version(), before, "at rest nothing is written");
}

#[tokio::test(start_paused = true)]
async fn a_template_with_characters_that_go_escapes_makes_one_revision() {
    let cluster = Cluster::start(|_| {}).await;
    let command = json!(["sh", "-c", "true < /dev/null > /dev/null && true \u{2028}"]);
    let containers = json!([{ "name": "main", "image": "image:1", "command": command }]);
    cluster.create(web(1, json!({ "spec": { "template": { "spec": { "containers": containers } } } })));
    has(&cluster, &TWO[..1]).await;
    scale(&cluster, 2);
    has(&cluster, &TWO).await;
    assert_eq!(cluster.list(&REVISIONS).len(), 1);
    assert!(cluster.created()[0].starts_with("ControllerRevision ") && cluster.created().len() == 3);
}

#[tokio::test(start_paused = true)]
async fn parallel_pods_are_created_and_deleted_without_waiting() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(5, json!({ "spec": { "podManagementPolicy": "Parallel" } })));
    cluster.eventually("all pods are there", |_| cluster.pods().len() == 5).await;
    scale(&cluster, 0);
    cluster.eventually("all pods are gone", |_| cluster.pods().is_empty()).await;
    let mut deleted = cluster.deleted();
    deleted.sort_unstable();
    assert_eq!(deleted, ["web-0", "web-1", "web-2", "web-3", "web-4"]);
    for body in cluster.bodies("DELETE") {
        assert!(body["preconditions"]["uid"].is_string(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn scales_down_from_the_highest_ordinal_and_up_again() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(3, json!({})));
    has(&cluster, &[TWO[0], TWO[1], ("web-2", "image:1")]).await;
    scale(&cluster, 1);
    has(&cluster, &TWO[..1]).await;
    assert_eq!(cluster.deleted(), ["web-2", "web-1"]);
    scale(&cluster, 2);
    has(&cluster, &TWO).await;
    let event = (
        "Normal".to_owned(),
        "SuccessfulDelete".to_owned(),
        "Delete Pod web-2 in StatefulSet web successful".to_owned(),
    );
    assert!(cluster.events().contains(&event));
}

#[tokio::test(start_paused = true)]
async fn rolls_down_to_the_partition_then_all_and_back_to_the_first_revision() {
    let cluster = Cluster::start(|_| {}).await;
    let partition =
        |partition: i32| json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": partition } } } });
    cluster.create(web(3, json!({})));
    has(&cluster, &[TWO[0], TWO[1], ("web-2", "image:1")]).await;
    let first = cluster.set()["status"]["updateRevision"].clone();

    patch(&cluster, &partition(2));
    roll(&cluster, "image:2");
    has(&cluster, &[TWO[0], TWO[1], ("web-2", "image:2")]).await;
    let status = cluster.set()["status"].clone();
    assert_eq!(
        (&status["currentRevision"], &status["currentReplicas"], &status["updatedReplicas"]),
        (&first, &json!(2), &json!(1))
    );
    assert_ne!(status["updateRevision"], first);

    // A pod below the partition comes back from the current revision.
    cluster.sandbox().delete_now(&PODS, &key("web-0")).unwrap();
    has(&cluster, &[TWO[0], TWO[1], ("web-2", "image:2")]).await;

    patch(&cluster, &partition(0));
    has(&cluster, &[("web-0", "image:2"), ("web-1", "image:2"), ("web-2", "image:2")]).await;
    cluster
        .eventually("the rollout is complete", |_| {
            cluster.set()["status"]["currentRevision"] == status["updateRevision"]
        })
        .await;
    assert_eq!(cluster.deleted(), ["web-2", "web-1", "web-0"]);

    roll(&cluster, "image:1");
    has(&cluster, &[TWO[0], TWO[1], ("web-2", "image:1")]).await;
    cluster.eventually("it is rolled back", |_| cluster.set()["status"]["currentRevision"] == first).await;
    let mut revisions: Vec<_> = cluster.list(&REVISIONS).iter().map(|revision| revision["revision"].clone()).collect();
    revisions.sort_unstable_by_key(Value::as_i64);
    assert_eq!(revisions, [json!(2), json!(3)], "no new revision: the first is renumbered");
    assert_eq!(cluster.object(&REVISIONS, first.as_str().unwrap())["revision"], 3);
}

#[tokio::test(start_paused = true)]
async fn on_delete_leaves_pods_until_a_person_deletes_them() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(2, json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } })));
    has(&cluster, &TWO).await;
    roll(&cluster, "image:2");
    cluster.advance(Duration::from_mins(1)).await;
    has(&cluster, &TWO).await;
    cluster.sandbox().delete_now(&PODS, &key("web-1")).unwrap();
    has(&cluster, &[TWO[0], ("web-1", "image:2")]).await;
    assert!(cluster.deleted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_on_delete_rollout_is_complete_when_a_person_has_deleted_all_pods() {
    let cluster = Cluster::start(|_| {}).await;
    let on_delete = json!({ "spec": {
        "updateStrategy": { "type": "OnDelete", "rollingUpdate": null }, "revisionHistoryLimit": 0,
    } });
    cluster.create(web(2, on_delete));
    has(&cluster, &TWO).await;
    roll(&cluster, "image:2");
    for pod in ["web-0", "web-1"] {
        cluster.settle().await;
        cluster.sandbox().delete_now(&PODS, &key(pod)).unwrap();
    }
    has(&cluster, &[("web-0", "image:2"), ("web-1", "image:2")]).await;
    let status = cluster.set()["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&json!(2), &json!(2)));
    cluster.eventually("the earlier revision is deleted", |_| cluster.list(&REVISIONS).len() == 1).await;
    assert_eq!(cluster.list(&REVISIONS)[0]["metadata"]["name"], status["updateRevision"]);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_survive_scaling_and_a_rollout() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(1, json!({})));
    has(&cluster, &TWO[..1]).await;
    let since = "2026-01-02T11:00:00Z";
    let condition =
        json!({ "type": "Mine", "status": "True", "lastTransitionTime": since, "reason": "R", "message": "m" });
    let mut set = cluster.set();
    set["status"]["conditions"] = json!([condition]);
    cluster.sandbox().update_status(&SETS, set).unwrap();
    scale(&cluster, 2);
    has(&cluster, &TWO).await;
    roll(&cluster, "image:2");
    has(&cluster, &[("web-0", "image:2"), ("web-1", "image:2")]).await;
    assert_eq!(cluster.set()["status"]["conditions"], json!([condition]));
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_ended_are_made_again() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(2, json!({})));
    has(&cluster, &TWO).await;
    for phase in ["Failed", "Succeeded"] {
        let before = cluster.object(&PODS, "web-0")["metadata"]["uid"].clone();
        cluster.sandbox().set_pod_phase(&key("web-0"), phase).unwrap();
        cluster
            .eventually("another pod is there", |sandbox| {
                sandbox.get(&PODS, &key("web-0")).is_some_and(|pod| pod["metadata"]["uid"] != before)
            })
            .await;
        has(&cluster, &TWO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_pod_waits_until_the_one_before_is_available() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(2, json!({ "spec": { "minReadySeconds": 30 } })));
    cluster.eventually("the first pod is there", |_| cluster.pods().len() == 1).await;
    run_pods(cluster.sandbox());
    cluster.advance(Duration::from_secs(28)).await;
    assert_eq!(cluster.pods().len(), 1);
    assert_eq!(cluster.set()["status"]["readyReplicas"], 1);
    cluster.advance(Duration::from_secs(4)).await;
    assert_eq!(cluster.pods().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn adopts_orphans_of_its_names_and_releases_what_it_does_not_select() {
    let orphan = |name: &str, labels: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "namespace": NAMESPACE, "name": name, "labels": labels },
            "spec": { "containers": [{ "name": "main", "image": "image:1" }] },
        })
    };
    let (orphan_0, stranger) = (orphan("web-0", json!({ "app": "web" })), orphan("stranger", json!({ "app": "web" })));
    let cluster = Cluster::start(move |sandbox| {
        sandbox.create(&PODS, orphan_0).unwrap();
        sandbox.create(&PODS, stranger).unwrap();
    })
    .await;
    let set = cluster.create(web(1, json!({})));
    let owner = |name: &str| cluster.object(&PODS, name)["metadata"]["ownerReferences"][0]["uid"].clone();
    cluster.eventually("the pod is adopted", |_| owner("web-0") == set["metadata"]["uid"]).await;
    run_pods(cluster.sandbox());
    let label = |label: &str| cluster.object(&PODS, "web-0")["metadata"]["labels"][label].clone();
    cluster.eventually("it has its identity", |_| label("statefulset.kubernetes.io/pod-name") == "web-0").await;
    assert_eq!(label("apps.kubernetes.io/pod-index"), "0");
    assert!(owner("stranger").is_null(), "its name is not that of a member");
    let event = (
        "Normal".to_owned(),
        "SuccessfulUpdate".to_owned(),
        "Update Pod web-0 in StatefulSet web successful".to_owned(),
    );
    cluster.eventually("the update is recorded", |_| cluster.events().contains(&event)).await;

    let relabelled = json!({ "metadata": { "labels": { "app": "mine" } } });
    // It is of no revision, so the rollout replaces it first.
    cluster
        .eventually("it is replaced", |sandbox| {
            run_pods(sandbox);
            cluster.set()["status"]["updatedReplicas"] == 1 && cluster.set()["status"]["readyReplicas"] == 1
        })
        .await;
    cluster.sandbox().patch(&PODS, &key("web-0"), &relabelled).unwrap();
    cluster.eventually("it is released", |_| owner("web-0").is_null()).await;
}

#[tokio::test(start_paused = true)]
async fn surplus_pods_own_their_claims_before_they_are_deleted() {
    let cluster = Cluster::start(|_| {}).await;
    let set = cluster.create(web(2, with_claims("Delete", "Delete")));
    has(&cluster, &TWO).await;
    let owner = |claim: &str| cluster.object(&CLAIMS, claim)["metadata"]["ownerReferences"][0].clone();
    for claim in ["data-web-0", "data-web-1"] {
        assert_eq!((&owner(claim)["kind"], &owner(claim)["uid"]), (&json!("StatefulSet"), &set["metadata"]["uid"]));
    }
    assert!(cluster.bodies("PUT").iter().all(|body| body["kind"] != "PersistentVolumeClaim"), "they are created so");
    let pod = cluster.object(&PODS, "web-1")["metadata"]["uid"].clone();
    scale(&cluster, 1);
    has(&cluster, &TWO[..1]).await;
    assert_eq!((&owner("data-web-1")["kind"], &owner("data-web-1")["uid"]), (&json!("Pod"), &pod));
    assert_eq!(owner("data-web-0")["kind"], "StatefulSet");

    // Nothing deletes the claim here, so the pod that comes back waits for its end.
    scale(&cluster, 2);
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(cluster.pods().len(), 1, "the claim is stale");
    cluster.sandbox().delete_now(&CLAIMS, &key("data-web-1")).unwrap();
    let unprotected = json!({ "metadata": { "finalizers": null } });
    drop(cluster.sandbox().patch(&CLAIMS, &key("data-web-1"), &unprotected));
    has(&cluster, &TWO).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_retention_policy_changes_the_owners_of_all_claims() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(2, with_claims("Retain", "Retain")));
    has(&cluster, &TWO).await;
    let owners = || -> Vec<usize> {
        let claims = cluster.list(&CLAIMS);
        claims.iter().map(|claim| claim["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len)).collect()
    };
    assert_eq!(owners(), [0, 0]);
    let policy =
        |deleted: &str| json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenDeleted": deleted } } });
    patch(&cluster, &policy("Delete"));
    cluster.eventually("the stateful set owns the claims", |_| owners() == [1, 1]).await;
    patch(&cluster, &policy("Retain"));
    cluster.eventually("nothing owns the claims", |_| owners() == [0, 0]).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_stays_terminating_holds_its_pod_back_and_an_event_tells() {
    let held = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "namespace": NAMESPACE, "name": "data-web-0", "labels": { "app": "web" }, "finalizers": ["example.com/held"],
        },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let cluster = Cluster::start(move |sandbox| {
        sandbox.create(&CLAIMS, held).unwrap();
        sandbox.delete(&CLAIMS, &key("data-web-0")).unwrap();
    })
    .await;
    cluster.create(web(1, with_claims("Retain", "Retain")));
    cluster.advance(Duration::from_mins(1)).await;
    assert!(cluster.pods().is_empty());
    let message = "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted";
    let event = ("Warning".to_owned(), "FailedCreate".to_owned(), message.to_owned());
    assert!(cluster.events().contains(&event), "{:?}", cluster.events());
    cluster.sandbox().patch(&CLAIMS, &key("data-web-0"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    let at = cluster.sandbox().now();
    has(&cluster, &TWO[..1]).await;
    assert!(cluster.sandbox().now().duration_since(at).as_secs() < 2, "its end enqueues the stateful set");
}

#[tokio::test(start_paused = true)]
async fn history_beyond_the_limit_goes_and_live_revisions_stay() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(web(1, json!({ "spec": { "revisionHistoryLimit": 1 } })));
    for image in ["image:1", "image:2", "image:3", "image:4"] {
        roll(&cluster, image);
        has(&cluster, &[("web-0", image)]).await;
    }
    cluster.eventually("two are left", |_| cluster.list(&REVISIONS).len() == 2).await;
    let numbers: Vec<_> =
        cluster.list(&REVISIONS).iter().map(|revision| revision["revision"].as_i64().unwrap()).collect();
    assert_eq!(numbers.iter().sum::<i64>(), 7, "the third and the fourth: {numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_other_data_has_is_counted_as_a_collision() {
    // The name that the revision has with a collision count of 0.
    let probe = Cluster::start(|_| {}).await;
    probe.create(web(1, json!({})));
    has(&probe, &TWO[..1]).await;
    let mut taken = probe.list(&REVISIONS).remove(0);
    drop(probe);
    let name = taken["metadata"]["name"].as_str().unwrap().to_owned();
    taken["data"] = json!({ "other": true });
    taken["metadata"] = json!({ "namespace": NAMESPACE, "name": name });

    let cluster = Cluster::start(move |sandbox| drop(sandbox.create(&REVISIONS, taken).unwrap())).await;
    cluster.create(web(1, json!({})));
    has(&cluster, &TWO[..1]).await;
    let status = cluster.set()["status"].clone();
    assert_eq!(status["collisionCount"], 1);
    assert_ne!(status["updateRevision"], name);
}

#[tokio::test(start_paused = true)]
async fn an_orphaned_revision_with_the_template_is_adopted_and_used() {
    let probe = Cluster::start(|_| {}).await;
    probe.create(web(1, json!({})));
    has(&probe, &TWO[..1]).await;
    let mut orphan = probe.list(&REVISIONS).remove(0);
    drop(probe);
    let labels = orphan["metadata"]["labels"].clone();
    let name = orphan["metadata"]["name"].as_str().unwrap().to_owned();
    orphan["metadata"] = json!({ "namespace": NAMESPACE, "name": name, "labels": labels });
    orphan["revision"] = json!(7);

    let cluster = Cluster::start(move |sandbox| drop(sandbox.create(&REVISIONS, orphan).unwrap())).await;
    let set = cluster.create(web(1, json!({})));
    has(&cluster, &TWO[..1]).await;
    let revisions = cluster.list(&REVISIONS);
    assert_eq!((revisions.len(), &revisions[0]["revision"]), (1, &json!(7)));
    assert_eq!(revisions[0]["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_view_does_not_read_survives_a_status_update() {
    let cluster = Cluster::start(|_| {}).await;
    let mut changes = json!({ "metadata": { "annotations": { "example.com/note": "kept" } } });
    merge(&mut changes, with_claims("Retain", "Retain"));
    let set = cluster.create(web(1, changes));
    has(&cluster, &TWO[..1]).await;
    let puts: Vec<_> = cluster.bodies("PUT");
    assert!(!puts.is_empty());
    for put in puts {
        assert_eq!((&put["spec"], &put["metadata"]["annotations"]), (&set["spec"], &set["metadata"]["annotations"]));
    }
    let revision = cluster.list(&REVISIONS).remove(0);
    assert_eq!(revision["metadata"]["annotations"]["example.com/note"], "kept");
}
