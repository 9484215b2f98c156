//! The rules of DaemonSets for every history.

use kcm_framework::api::views::DaemonSet;
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_simulation::{History, Invariant};
use kcm_testing::sandbox::{NODES, PODS};
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::invariants::{
    Held, Story, check, controlled, count, find, holds, holds_at_rest, is_active, is_terminating, items, number, of,
    seen_owner, text, uid, writes_of,
};

const LOOP: &str = "daemonset";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] =
    &[has_one_pod_on_each_node, creates_only_for_nodes_that_exist, counts_its_pods_at_rest];

/// The node to which a pod is bound or pinned.
fn node(pod: &Value) -> &str {
    match text(pod, "/spec/nodeName") {
        "" => {
            let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
            items(pod, terms).first().map_or("", |term| text(term, "/matchFields/0/values/0"))
        }
        bound => bound,
    }
}

fn has_surge(set: &Value) -> bool {
    set.pointer("/spec/updateStrategy/rollingUpdate/maxSurge")
        .is_some_and(|surge| *surge != json!(0) && *surge != json!("0%"))
}

/// D5.1: a set has one active pod on each node, with a surge two of different templates.
fn has_one_pod_on_each_node(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(pod) = change.after.as_deref().filter(|_| change.creates() && change.resource == PODS) else {
            return Ok(());
        };
        let Some(set) = seen_owner(history, at, &DaemonSet::RESOURCE, pod) else { return Ok(()) };
        let hash = |pod: &Value| text(pod, "/metadata/labels/controller-revision-hash").to_owned();
        let others = controlled(objects, &PODS, uid(&set)).filter(|other| is_active(other) && node(other) == node(pod));
        let others: Vec<_> = others.map(hash).collect();
        let is_right = others.is_empty() || has_surge(&set) && others.len() == 1 && others[0] != hash(pod);
        holds(is_right, "D5.1", "a second pod is created on a node", at, change)
    })
}

/// D5.2: a pod is created only for a node that exists, and is pinned to it.
fn creates_only_for_nodes_that_exist(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(pod) = change.after.as_deref().filter(|_| change.creates() && change.resource == PODS) else {
            return Ok(());
        };
        // A node may be deleted after the reconcile has seen it.
        let existed = |name: &str| {
            let key = ObjectKey::cluster_scoped(name);
            find(objects, &NODES, &key).is_some()
                || history.changes[..at].iter().any(|change| change.resource == NODES && change.key == key)
        };
        holds(existed(node(pod)), "D5.2", "a pod is created for a node that never was", at, change)
    })
}

/// D5.6: at rest, the status counts the nodes that have a pod, and each wanted node has one.
fn counts_its_pods_at_rest(history: &History) -> Held {
    let end = history.end();
    for set in of(&end, &DaemonSet::RESOURCE).filter(|set| !is_terminating(set)) {
        let pods = count(controlled(&end, &PODS, uid(set)).filter(|pod| is_active(pod)));
        let scheduled = number(set, "/status/currentNumberScheduled") + number(set, "/status/numberMisscheduled");
        let wanted = number(set, "/status/desiredNumberScheduled");
        holds_at_rest(pods == scheduled, "D5.6", "the status counts other pods", set)?;
        holds_at_rest(
            number(set, "/status/currentNumberScheduled") == wanted,
            "D5.6",
            "a wanted node has no pod",
            set,
        )?;
    }
    Ok(())
}

fn set(surge: i64) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": { "updateStrategy": { "rollingUpdate": { "maxSurge": surge } } },
        "status": { "currentNumberScheduled": 1, "desiredNumberScheduled": 1 },
    })
}

fn pod(name: &str, node: &str, hash: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("u-{name}"),
            "labels": { "controller-revision-hash": hash },
            "ownerReferences": [{ "name": "web", "uid": "u-web", "controller": true }],
        },
        "spec": { "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "values": [node] }] }],
        } } } },
    })
}

fn story(surge: i64) -> Story {
    let node = |name: &str| (NODES, json!({ "metadata": { "name": name } }));
    Story::of([(DaemonSet::RESOURCE, set(surge)), node("one"), node("two"), (PODS, pod("a", "one", "old"))])
}

#[test]
fn a_node_has_one_pod_and_during_a_surge_one_of_each_template() {
    let created = |surge, node, hash| story(surge).create(LOOP, &PODS, pod("b", node, hash));
    check("D5.1", has_one_pod_on_each_node, created(0, "two", "new"), created(0, "one", "new"));
    check("D5.1", has_one_pod_on_each_node, created(1, "one", "new"), created(1, "one", "old"));
}

#[test]
fn pods_are_created_for_nodes_that_exist() {
    let created = |node| story(0).create(LOOP, &PODS, pod("b", node, "new"));
    check("D5.2", creates_only_for_nodes_that_exist, created("two"), created("three"));
    let deleted = story(0).delete("user", &NODES, "two").create(LOOP, &PODS, pod("b", "two", "new"));
    check("D5.2", creates_only_for_nodes_that_exist, deleted, created(""));
}

#[test]
fn at_rest_the_status_counts_the_pods() {
    check("D5.6", counts_its_pods_at_rest, story(0), story(0).create(LOOP, &PODS, pod("b", "two", "old")));
    let wanted =
        story(0).edit(LOOP, &DaemonSet::RESOURCE, "web", |set| set["status"]["desiredNumberScheduled"] = 2.into());
    check("D5.6", counts_its_pods_at_rest, story(0), wanted);
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
