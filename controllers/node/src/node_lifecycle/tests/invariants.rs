//! The rules of the node lifecycle controller for every history.

use std::time::Duration;

use kcm_simulation::rules::{Held, Story, check, holds, holds_at_rest, items, of, text, writes_of};
use kcm_simulation::{Change, History, Invariant};
use kcm_testing::sandbox::{LEASES, NODES};
use serde_json::{Value, json};

use crate::shared::UNREACHABLE;
use crate::tests::scenarios::{last, taints};

/// The grace period by default.
const GRACE: Duration = Duration::from_secs(50);
/// Time between two evictions in a zone with the rate by default.
const BETWEEN: Duration = Duration::from_secs(10);

/// The rules, for scenarios.
pub(super) const RULES: &[Invariant] =
    &[marks_only_silent_nodes, keeps_the_rate, keeps_the_taints_of_others, taints_by_conditions_at_rest];

fn readiness(node: &Value) -> &str {
    let mut conditions = items(node, "/status/conditions").iter();
    conditions.find(|one| one["type"] == "Ready").map_or("", |one| text(one, "/status"))
}

fn evicts(node: &Value) -> bool {
    taints(node).iter().any(|taint| taint["key"] == UNREACHABLE && taint["effect"] == "NoExecute")
}

/// D24.1: a node becomes unknown only if its lease, and its status, have been silent for the grace period.
fn marks_only_silent_nodes(history: &History) -> Held {
    writes_of(history, "node_health", |at, change, _| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        if change.resource != NODES || readiness(before) == "Unknown" || readiness(after) != "Unknown" {
            return Ok(());
        }
        let is_sign = |other: &Change| {
            let is_lease = other.resource == LEASES && other.key.name() == change.key.name();
            let is_node = other.resource == NODES && other.key == change.key && readiness_changes(other);
            is_lease || is_node
        };
        let is_silent = change.at >= last(history, at, is_sign) + GRACE;
        holds(is_silent, "D24.1", "a node becomes unknown that is not silent", at, change)
    })
}

/// Returns `true` if the kubelet has written the status, or the node was created.
fn readiness_changes(change: &Change) -> bool {
    let conditions = |object: &Value| object.pointer("/status/conditions").cloned();
    change.creates() || change.before.as_deref().and_then(conditions) != change.after.as_deref().and_then(conditions)
}

/// D24.6: nodes of a zone are tainted at the rate of evictions, from the first node that becomes unknown. A process that
/// starts begins anew, and a write may come later than its grant.
fn keeps_the_rate(history: &History) -> Held {
    let becomes = |change: &Change, is: fn(&Value) -> bool| {
        change.after.as_deref().is_some_and(is) && !change.before.as_deref().is_some_and(is)
    };
    let is_unknown: fn(&Value) -> bool = |node| readiness(node) == "Unknown";
    let first = history.changes.iter().find(|change| becomes(change, is_unknown)).map_or(Duration::ZERO, |it| it.at);
    let mut count = 0;
    writes_of(history, "node_lifecycle_controller", |at, change, _| {
        if history.kills > 0 || !becomes(change, evicts) {
            return Ok(());
        }
        let is_right = change.at >= first + BETWEEN * count;
        count += 1;
        holds(is_right, "D24.6", "nodes are tainted faster than the rate", at, change)
    })
}

/// D1.7: taints of other clients stay.
fn keeps_the_taints_of_others(history: &History) -> Held {
    writes_of(history, "node_lifecycle_controller", |at, change, _| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let is_own = |taint: &Value| text(taint, "/key").starts_with("node.kubernetes.io/");
        let others = |node| -> Vec<Value> { taints(node).iter().filter(|taint| !is_own(taint)).cloned().collect() };
        holds(others(before) == others(after), "D1.7", "a taint of another is changed", at, change)
    })
}

/// D24.4: at rest, a node has the taints of its condition.
fn taints_by_conditions_at_rest(history: &History) -> Held {
    let end = history.end();
    for node in of(&end, &NODES) {
        let of_lost = taints(node).iter().filter(|taint| taint["key"] == UNREACHABLE).count();
        let expected = if readiness(node) == "Unknown" { 2 } else { 0 };
        holds_at_rest(of_lost == expected, "D24.4", "a node lacks the taints of its condition", node)?;
    }
    Ok(())
}

fn node(of: &str, ready: &str, effects: &[&str]) -> Value {
    let taint = |effect: &&str| json!({ "key": UNREACHABLE, "effect": effect });
    json!({
        "metadata": { "name": of, "uid": format!("u-{of}") },
        "spec": { "taints": effects.iter().map(taint).collect::<Vec<_>>() },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

fn story(nodes: impl IntoIterator<Item = Value>) -> Story {
    Story::of(nodes.into_iter().map(|node| (NODES, node)))
}

fn at(story: Story, seconds: u64) -> Story {
    story.at(Duration::from_secs(seconds))
}

#[test]
fn a_node_is_marked_after_its_grace_period() {
    let marked = |renewed: u64| {
        let lease = json!({ "metadata": { "namespace": "kube-node-lease", "name": "n1", "uid": "u-lease" } });
        let renewed = at(story([node("n1", "True", &[])]).create("user", &LEASES, lease), renewed);
        let unknown = |node: &mut Value| node["status"]["conditions"][0]["status"] = "Unknown".into();
        at(renewed.edit("node_health", &NODES, "n1", unknown), 60)
    };
    check("D24.1", marks_only_silent_nodes, marked(10), marked(11));
}

#[test]
fn nodes_are_tainted_at_the_rate_and_by_their_conditions() {
    let both = ["NoSchedule", "NoExecute"];
    let tainted = |seconds: u64| {
        let begun = story([node("n1", "True", &[]), node("n2", "Unknown", &[])]);
        let unknown = |node: &mut Value| node["status"]["conditions"][0]["status"] = "Unknown".into();
        let begun = at(begun.edit("node_health", &NODES, "n1", unknown), 60);
        let taint = |story: Story, of: &str, seconds| {
            let tainted = |object: &mut Value| object["spec"] = node(of, "", &both)["spec"].clone();
            at(story.edit("node_lifecycle_controller", &NODES, of, tainted), seconds)
        };
        taint(taint(begun, "n1", 60), "n2", seconds)
    };
    check("D24.6", keeps_the_rate, tainted(70), tainted(65));
    check("D24.4", taints_by_conditions_at_rest, tainted(70), story([node("n1", "True", &both)]));
    let cleared = |key: &str| {
        let mut of_user = node("n1", "True", &["NoSchedule"]);
        of_user["spec"]["taints"][0]["key"] = key.into();
        story([of_user]).edit("node_lifecycle_controller", &NODES, "n1", |node| node["spec"]["taints"] = json!([]))
    };
    check("D1.7", keeps_the_taints_of_others, cleared(UNREACHABLE), cleared("example.com/of"));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
