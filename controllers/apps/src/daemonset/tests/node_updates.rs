//! The daemon sets that a node concerns, by the cases of upstream's `TestUpdateNode` and `TestShouldIgnoreNodeUpdate`.

use kcm_framework::informers::Change;
use serde_json::json;

use super::fixtures::{DEFAULTS, NodeBuilder, daemon_set, node};
use crate::daemonset::event_mapping::key_for_node;
use crate::daemonset::node_updates::concerns;
use crate::daemonset::placement::Placement;

#[test]
fn only_labels_and_taints_of_a_node_concern_daemon_sets() {
    let enqueues = |old: &NodeBuilder, new: &NodeBuilder| {
        key_for_node(&Change::Updated { old: old.build(), new: new.build() }).is_some()
    };
    let plain = node("n1");
    assert!(!enqueues(
        &plain,
        &plain.clone().with("", "status", json!({ "conditions": [{ "type": "Ready", "status": "True" }] }))
    ));
    assert!(!enqueues(&plain, &plain.clone().with("/spec", "unschedulable", json!(true))), "the taint follows");
    assert!(enqueues(&plain, &plain.clone().labels(json!({ "disk": "ssd" }))));
    assert!(enqueues(&plain, &plain.clone().taint("gpu", "NoSchedule")));
    assert!(enqueues(&plain.clone().taint("gpu", "NoSchedule"), &plain.clone().taint("gpu", "NoExecute")));
    for change in [Change::Added(plain.build()), Change::Deleted { last: plain.build(), final_state_known: true }] {
        assert_eq!(key_for_node(&change).map(|key| key.name().to_owned()).as_deref(), Some("n1"));
    }
}

#[test]
fn a_node_concerns_a_set_whose_pods_on_it_may_change() {
    let (runs, keeps, leaves) = (node("n1"), node("n1").taint("a", "NoSchedule"), node("n1").taint("a", "NoExecute"));
    for (name, node, has_pod, misscheduled, expected) in [
        ("a pod is missing", Some(&runs), false, 0, true),
        ("the pod is there", Some(&runs), true, 0, false),
        ("the pod may be misscheduled no more", Some(&runs), true, 1, true),
        ("no pod is created", Some(&keeps), false, 1, false),
        ("the pod stays", Some(&keeps), true, 0, false),
        ("the pod goes", Some(&leaves), true, 0, true),
        ("there is no pod to go", Some(&leaves), false, 0, false),
        ("the node is gone with its pod", None, true, 0, true),
        ("the node is gone", None, false, 0, false),
    ] {
        let set = daemon_set("agent").status(json!({ "numberMisscheduled": misscheduled })).build();
        let node = node.map(NodeBuilder::build);
        let placement = node.as_ref().map(|node| Placement::of(&set, node, DEFAULTS));
        assert_eq!(concerns(&set, placement, has_pod), expected, "{name}");
    }
}
