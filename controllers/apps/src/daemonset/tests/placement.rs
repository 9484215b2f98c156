//! Placement, by the cases of upstream's `TestNodeShouldRunDaemonPod` and its neighbours.

use serde_json::{Value, json};

use super::fixtures::{DEFAULTS, DaemonSetBuilder, NodeBuilder, daemon_set, node};
use crate::daemonset::gates::Gates;
use crate::daemonset::placement::Placement;

/// Whether the node should run the daemon, and whether a pod that is there may stay.
fn check(set: &DaemonSetBuilder, node: &NodeBuilder, gates: Gates) -> (bool, bool) {
    let (set, node) = (set.build(), node.build());
    let placement = Placement::of(&set, &node, gates);
    (placement.should_run(), placement.may_stay())
}

const RUN: (bool, bool) = (true, true);
const KEEP: (bool, bool) = (false, true);
const LEAVE: (bool, bool) = (false, false);

fn affinity(terms: &Value) -> Value {
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } })
}

#[test]
fn a_node_is_chosen_by_name_selector_and_affinity() {
    let ssd = node("n1").labels(json!({ "disk": "ssd" }));
    let expression =
        |values: Value| json!([{ "matchExpressions": [{ "key": "disk", "operator": "In", "values": values }] }]);
    for (name, set, expected) in [
        ("nothing is required", daemon_set("agent"), RUN),
        ("its name", daemon_set("agent").pod_spec("nodeName", json!("n1")), RUN),
        ("another name", daemon_set("agent").pod_spec("nodeName", json!("n2")), LEAVE),
        ("its label", daemon_set("agent").pod_spec("nodeSelector", json!({ "disk": "ssd" })), RUN),
        ("another label", daemon_set("agent").pod_spec("nodeSelector", json!({ "disk": "hdd" })), LEAVE),
        (
            "its name and another label",
            daemon_set("agent").pod_spec("nodeName", json!("n1")).pod_spec("nodeSelector", json!({ "disk": "hdd" })),
            LEAVE,
        ),
        ("its affinity", daemon_set("agent").pod_spec("affinity", affinity(&expression(json!(["ssd"])))), RUN),
        ("another affinity", daemon_set("agent").pod_spec("affinity", affinity(&expression(json!(["hdd"])))), LEAVE),
        (
            "a preferred affinity does not count",
            daemon_set("agent").pod_spec(
                "affinity",
                json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                    { "weight": 1, "preference": expression(json!(["hdd"]))[0] },
                ] } }),
            ),
            RUN,
        ),
        (
            "a field",
            daemon_set("agent").pod_spec(
                "affinity",
                affinity(&json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n2"] }] }])),
            ),
            LEAVE,
        ),
    ] {
        assert_eq!(check(&set, &ssd, DEFAULTS), expected, "{name}");
    }
}

#[test]
fn taints_keep_pods_off_or_evict_them_unless_they_are_tolerated() {
    let tolerating = daemon_set("agent").pod_spec("tolerations", json!([{ "key": "gpu", "operator": "Exists" }]));
    let host_network = daemon_set("agent").pod_spec("hostNetwork", json!(true));
    for (name, set, key, effect, expected) in [
        ("NoSchedule", daemon_set("agent"), "gpu", "NoSchedule", KEEP),
        ("NoExecute", daemon_set("agent"), "gpu", "NoExecute", LEAVE),
        ("PreferNoSchedule", daemon_set("agent"), "gpu", "PreferNoSchedule", RUN),
        ("tolerated NoSchedule", tolerating.clone(), "gpu", "NoSchedule", RUN),
        ("tolerated NoExecute", tolerating, "gpu", "NoExecute", RUN),
        ("not ready", daemon_set("agent"), "node.kubernetes.io/not-ready", "NoExecute", RUN),
        ("not ready of another effect", daemon_set("agent"), "node.kubernetes.io/not-ready", "NoSchedule", KEEP),
        ("unreachable", daemon_set("agent"), "node.kubernetes.io/unreachable", "NoExecute", RUN),
        ("unschedulable", daemon_set("agent"), "node.kubernetes.io/unschedulable", "NoSchedule", RUN),
        ("disk pressure", daemon_set("agent"), "node.kubernetes.io/disk-pressure", "NoSchedule", RUN),
        ("memory pressure", daemon_set("agent"), "node.kubernetes.io/memory-pressure", "NoSchedule", RUN),
        ("pid pressure", daemon_set("agent"), "node.kubernetes.io/pid-pressure", "NoSchedule", RUN),
        ("no network", daemon_set("agent"), "node.kubernetes.io/network-unavailable", "NoSchedule", KEEP),
        ("no network, and none is needed", host_network, "node.kubernetes.io/network-unavailable", "NoSchedule", RUN),
    ] {
        assert_eq!(check(&set, &node("n1").taint(key, effect), DEFAULTS), expected, "{name}");
    }
}

#[test]
fn an_evicting_taint_counts_before_one_that_does_not_evict() {
    let taints = json!([{ "key": "a", "effect": "NoSchedule" }, { "key": "b", "effect": "NoExecute" }]);
    assert_eq!(check(&daemon_set("agent"), &node("n1").with("/spec", "taints", taints), DEFAULTS), LEAVE);
}

#[test]
fn comparison_operators_need_their_gate() {
    let tolerations = json!([{ "key": "sla", "operator": "Gt", "value": "900", "effect": "NoSchedule" }]);
    let set = daemon_set("agent").pod_spec("tolerations", tolerations);
    let node = node("n1").with("/spec", "taints", json!([{ "key": "sla", "value": "950", "effect": "NoSchedule" }]));
    assert_eq!(check(&set, &node, DEFAULTS), KEEP);
    assert_eq!(check(&set, &node, Gates::read(|gate| gate.name == "TaintTolerationComparisonOperators")), RUN);
}
