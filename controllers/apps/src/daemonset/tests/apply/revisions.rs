//! Revisions: creation, rollback, collision, duplicates and the history limit.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::daemonset::template_hash::template_hash;
use crate::daemonset::tests::cluster::{Cluster, DAEMON_SETS, REVISIONS, rolls_out, status, with_image};
use crate::daemonset::tests::fixtures::{NAMESPACE, daemon_set, key};

#[tokio::test(start_paused = true)]
async fn a_revision_holds_the_template_and_belongs_to_the_set() {
    let cluster = Cluster::start(&[], |_| {}).await;
    let set = cluster.create(&daemon_set("agent").annotations(json!({ "note": "a" })));
    cluster.eventually("it is created", |_| cluster.revisions().len() == 1).await;
    let revision = cluster.revisions()[&1].clone();
    let hash = revision["metadata"]["labels"]["controller-revision-hash"].as_str().expect("it has a hash");
    let template = to_raw_value(&set["spec"]["template"]).expect("it is JSON");
    assert_eq!(template_hash(&template, None).as_deref(), Some(hash), "the hash of upstream");
    assert_eq!(revision["metadata"]["name"], format!("agent-{hash}"));
    assert_eq!(revision["metadata"]["labels"], json!({ "app": "agent", "controller-revision-hash": hash }));
    assert_eq!(revision["metadata"]["annotations"], set["metadata"]["annotations"]);
    assert_eq!(revision["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
    let mut template = set["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    assert_eq!(revision["data"], json!({ "spec": { "template": template } }));
}

#[tokio::test(start_paused = true)]
async fn a_template_that_upstream_cannot_hash_has_a_revision_with_a_hash_of_its_data() {
    let cluster = Cluster::start(&["n1"], |_| {}).await;
    let limits = json!({ "limits": { "ephemeral-storage": "100Ti" } });
    cluster.create(&daemon_set("agent").with("/spec/template/spec/containers/0", "resources", limits));
    rolls_out(&cluster, |_| {}).await;
    let hash = cluster.revisions()[&1]["metadata"]["labels"]["controller-revision-hash"].clone();
    assert!(hash.as_str().is_some_and(|hash| !hash.is_empty()), "{hash}");
}

#[tokio::test(start_paused = true)]
async fn a_rollback_gives_the_revision_the_highest_number_and_the_history_limit_holds() {
    let cluster = Cluster::start(&["n1"], |_| {}).await;
    cluster.create(&daemon_set("agent").with("/spec", "revisionHistoryLimit", json!(1)));
    rolls_out(&cluster, |_| {}).await;
    let first = cluster.revisions()[&1]["metadata"]["name"].clone();
    cluster.patch(&with_image("image:2"));
    rolls_out(&cluster, |_| {}).await;
    cluster.patch(&with_image("image:1"));
    rolls_out(&cluster, |_| {}).await;
    let revisions = cluster.revisions();
    assert_eq!(revisions.keys().copied().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(revisions[&3]["metadata"]["name"], first, "no new revision");
    cluster.patch(&with_image("image:3"));
    rolls_out(&cluster, |_| {}).await;
    assert_eq!(cluster.revisions().keys().copied().collect::<Vec<_>>(), [3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_for_another_template_is_a_collision() {
    // The same manifest has the same hash, so that a first server shows the name.
    let name = {
        let cluster = Cluster::start(&[], |_| {}).await;
        cluster.create(&daemon_set("agent"));
        cluster.eventually("it is created", |_| cluster.revisions().len() == 1).await;
        cluster.revisions()[&1]["metadata"]["name"].clone()
    };
    let taken = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "data": { "spec": { "template": {} } },
        "revision": 1,
    });
    let cluster = Cluster::start(&["n1"], move |sandbox| drop(sandbox.create(&REVISIONS, taken))).await;
    cluster.create(&daemon_set("agent"));
    rolls_out(&cluster, |_| {}).await;
    assert_eq!(status(cluster.sandbox())["collisionCount"], 1);
    assert_eq!(cluster.sandbox().list(&REVISIONS, Some(NAMESPACE)).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_two_revisions_of_one_template_the_last_stays_and_pods_get_its_hash() {
    let cluster = Cluster::start(&["n1", "n2"], |_| {}).await;
    cluster.create(&daemon_set("agent"));
    rolls_out(&cluster, |_| {}).await;
    let pods = cluster.pod_keys();
    let mut twin: Value = cluster.revisions()[&1].clone();
    twin["metadata"]["name"] = json!("agent-twin");
    twin["metadata"]["labels"]["controller-revision-hash"] = json!("twin");
    twin["revision"] = json!(2);
    let twin = crate::tests::cluster::as_sent(twin);
    cluster.sandbox().create(&REVISIONS, twin).expect("the revision must be valid");
    cluster
        .eventually("the first is deleted", |_| {
            let revisions = cluster.revisions();
            revisions.len() == 1 && revisions.contains_key(&2)
        })
        .await;
    cluster.settle().await;
    assert_eq!(cluster.pod_keys(), pods, "no pod is replaced");
    for pod in cluster.pods() {
        assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], "twin");
    }
    assert_eq!(cluster.object(&DAEMON_SETS, key("agent").name())["status"]["updatedNumberScheduled"], 2);
}
