//! Keys that changes enqueue.

use std::sync::Arc;

use kcm_framework::api::views::{Node, Pod};
use kcm_framework::api::{ObjectKey, View as _};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{health_reader, node_view, node_with};
use crate::node_lifecycle::event_mapping::{keys_for_node, keys_for_pod, lost_node};
use crate::tests::key;

#[test]
fn s17_a_node_is_enqueued_by_what_decides_and_not_by_heartbeats() {
    let node = |status: &str| node_with(&[("Ready", status)], &json!([]));
    let with = |mut node: Value, at: &str, field: &str, value: Value| {
        node.pointer_mut(at).expect("the fixture has it")[field] = value;
        node
    };
    let updated = |old: Value, new: Value| Change::Updated { old: node_view(&old), new: node_view(&new) };
    let ready = || node("True");
    for (name, change, is_enqueued) in [
        ("added", Change::Added(node_view(&ready())), true),
        (
            "a heartbeat",
            updated(ready(), with(ready(), "/status/conditions/0", "lastHeartbeatTime", json!("2026-01-02T00:00:00Z"))),
            false,
        ),
        ("a condition", updated(ready(), node("False")), true),
        (
            "a taint",
            updated(ready(), with(ready(), "/spec", "taints", json!([{ "key": "a", "effect": "NoExecute" }]))),
            true,
        ),
        ("a cordon", updated(ready(), with(ready(), "/spec", "unschedulable", json!(true))), true),
        ("a label", updated(ready(), with(ready(), "/metadata", "labels", json!({ "a": "b" }))), true),
        ("recreated", updated(ready(), with(ready(), "/metadata", "uid", json!("v"))), true),
        ("deleted", Change::Deleted { last: node_view(&ready()), final_state_known: true }, false),
    ] {
        assert_eq!(keys_for_node(&change, health_reader()), is_enqueued.then(|| key("n")), "{name}");
    }
}

#[test]
fn t23_the_pods_of_a_lost_node_are_enqueued() {
    let node = |status: &str| node_view(&node_with(&[("Ready", status)], &json!([])));
    let updated = |old: Arc<Node>, new: Arc<Node>| Change::Updated { old, new };
    for (name, change, is_enqueued) in [
        ("becomes unknown", updated(node("True"), node("Unknown")), true),
        ("was unknown", updated(node("Unknown"), node("Unknown")), false),
        ("is not ready", updated(node("True"), node("False")), false),
        ("after a restart", Change::Added(node("Unknown")), true),
        ("added and healthy", Change::Added(node("True")), false),
        ("deleted", Change::Deleted { last: node("Unknown"), final_state_known: true }, false),
    ] {
        assert_eq!(lost_node(&change, health_reader()), is_enqueued.then_some("n"), "{name}");
    }
}

#[test]
fn a_ready_pod_that_comes_to_a_lost_node_is_enqueued() {
    let pod = |node: &str, ready: &str| {
        let pod = json!({
            "metadata": { "namespace": "shop", "name": "a" },
            "spec": { "nodeName": node },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        });
        Arc::new(Pod::decode(&pod.to_string()).unwrap())
    };
    let updated = |old: Arc<Pod>, new: Arc<Pod>| Change::Updated { old, new };
    for (name, change, is_enqueued) in [
        ("added", Change::Added(pod("lost", "True")), true),
        ("added, not ready", Change::Added(pod("lost", "False")), false),
        ("added to a healthy node", Change::Added(pod("healthy", "True")), false),
        ("assigned", updated(pod("", "True"), pod("lost", "True")), true),
        ("updated", updated(pod("lost", "False"), pod("lost", "True")), false),
        ("deleted", Change::Deleted { last: pod("lost", "True"), final_state_known: true }, false),
    ] {
        let keys = keys_for_pod(&change, |node| node == "lost");
        assert_eq!(keys, is_enqueued.then(|| ObjectKey::namespaced("shop", "a")), "{name}");
    }
}
