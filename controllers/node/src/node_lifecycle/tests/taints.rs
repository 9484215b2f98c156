//! The taints and labels that a Node is to have.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{health_reader, node_view, node_with};
use crate::node_lifecycle::taints::{Changes, Permission, plan};

const EARLY: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-02T12:00:00Z";

fn taint(key: &str, effect: &str, added: &str) -> Value {
    json!({ "key": format!("node.kubernetes.io/{key}"), "effect": effect, "timeAdded": added })
}

fn check(conditions: &[(&str, &str)], taints: Vec<Value>, permission: Permission) -> Changes {
    let node = node_view(&node_with(conditions, &Value::from(taints)));
    let now: Timestamp = NOW.parse().unwrap();
    plan(&node, health_reader().of(&node), permission, now)
}

use Permission::{Add, Keep, Remove};

#[test]
fn s18_taints_without_eviction_follow_the_conditions() {
    let ready = ("Ready", "True");
    let schedule = |key: &str| taint(key, "NoSchedule", NOW);
    for (name, conditions, before, after) in [
        ("healthy", vec![ready], vec![], None),
        ("not ready", vec![("Ready", "False")], vec![], Some(vec![schedule("not-ready")])),
        ("unknown", vec![("Ready", "Unknown")], vec![], Some(vec![schedule("unreachable")])),
        ("never reported", vec![], vec![], None),
        (
            "pressures and network",
            vec![
                ready,
                ("MemoryPressure", "True"),
                ("DiskPressure", "True"),
                ("PIDPressure", "True"),
                ("NetworkUnavailable", "True"),
            ],
            vec![],
            Some(["memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"].map(schedule).to_vec()),
        ),
        ("a pressure that is unknown", vec![ready, ("MemoryPressure", "Unknown")], vec![], None),
        ("it is there", vec![("Ready", "False")], vec![taint("not-ready", "NoSchedule", EARLY)], None),
        (
            "another one",
            vec![("Ready", "Unknown")],
            vec![taint("not-ready", "NoSchedule", EARLY)],
            Some(vec![schedule("unreachable")]),
        ),
        ("ready again", vec![ready], vec![taint("unreachable", "NoSchedule", EARLY)], Some(vec![])),
        (
            "taints of others stay as they are",
            vec![ready],
            vec![
                json!({ "key": "a", "value": "b", "effect": "NoExecute" }),
                taint("disk-pressure", "NoSchedule", EARLY),
                taint("disk-pressure", "PreferNoSchedule", EARLY),
            ],
            Some(vec![
                json!({ "key": "a", "value": "b", "effect": "NoExecute" }),
                taint("disk-pressure", "PreferNoSchedule", EARLY),
            ]),
        ),
    ] {
        assert_eq!(check(&conditions, before, Keep).taints, after, "{name}");
    }
}

#[test]
fn s33_s41_taints_with_eviction_follow_ready_and_the_permission() {
    let (not_ready, unreachable) = ([("Ready", "False")], [("Ready", "Unknown")]);
    // The taints without eviction are there.
    let with = |key: &str, more: Vec<Value>| [vec![taint(key, "NoSchedule", EARLY)], more].concat();
    let evicts = |key: &str, added: &str| taint(key, "NoExecute", added);
    for (name, conditions, before, permission, after, begins) in [
        ("no permission yet", &not_ready, with("not-ready", vec![]), Keep, None, false),
        (
            "permission",
            &not_ready,
            with("not-ready", vec![]),
            Add,
            Some(with("not-ready", vec![evicts("not-ready", NOW)])),
            true,
        ),
        (
            "b6 the taint stays at a start",
            &unreachable,
            with("unreachable", vec![evicts("unreachable", EARLY)]),
            Keep,
            None,
            false,
        ),
        (
            "a swap keeps the time, without a permission",
            &unreachable,
            with("unreachable", vec![evicts("not-ready", EARLY)]),
            Keep,
            Some(with("unreachable", vec![evicts("unreachable", EARLY)])),
            false,
        ),
        (
            "both, of which one is right",
            &not_ready,
            with("not-ready", vec![evicts("not-ready", EARLY), evicts("unreachable", EARLY)]),
            Keep,
            Some(with("not-ready", vec![evicts("not-ready", EARLY)])),
            false,
        ),
        (
            "s38 no node is ready",
            &unreachable,
            with("unreachable", vec![evicts("unreachable", EARLY)]),
            Remove,
            Some(with("unreachable", vec![])),
            false,
        ),
        ("ready again", &[("Ready", "True")], vec![evicts("unreachable", EARLY)], Add, Some(vec![]), false),
        ("a status against the rules", &[("Ready", "Maybe")], vec![evicts("unreachable", EARLY)], Add, None, false),
    ] {
        let changes = check(conditions, before, permission);
        assert_eq!(changes.taints, after, "{name}");
        assert_eq!(changes.begins_eviction, begins, "{name}");
    }
    let never_reported = check(&[], vec![evicts("unreachable", EARLY)], Add);
    assert!(never_reported.is_empty(), "a node that never reported keeps what it has");
}

#[test]
fn a_cordoned_node_has_a_taint() {
    let mut node = node_with(&[("Ready", "True")], &json!([]));
    node["spec"]["unschedulable"] = json!(true);
    let node = node_view(&node);
    let changes = plan(&node, health_reader().of(&node), Keep, NOW.parse().unwrap());
    assert_eq!(changes.taints, Some(vec![taint("unschedulable", "NoSchedule", NOW)]));
}

#[test]
fn s21_beta_labels_repeat_those_that_replaced_them() {
    for (name, labels, expected) in [
        ("none", json!({}), json!({})),
        ("missing", json!({ "kubernetes.io/os": "linux" }), json!({ "beta.kubernetes.io/os": "linux" })),
        (
            "another value",
            json!({ "kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "amd64" }),
            json!({ "beta.kubernetes.io/arch": "arm64" }),
        ),
        ("the same", json!({ "kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux" }), json!({})),
        ("only the beta label", json!({ "beta.kubernetes.io/os": "linux" }), json!({})),
    ] {
        let mut node = node_with(&[("Ready", "True")], &json!([]));
        node["metadata"]["labels"] = labels;
        let node = node_view(&node);
        let changes = plan(&node, health_reader().of(&node), Keep, NOW.parse().unwrap());
        assert_eq!(Value::from(changes.labels), expected, "{name}");
    }
}
