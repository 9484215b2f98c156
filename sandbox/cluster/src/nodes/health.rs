//! Reactions to missing kubelet heartbeats: the substitute for the node lifecycle controller. Pure.
//!
//! # Upstream
//! `pkg/controller/{nodelifecycle,tainteviction}`

use std::time::Duration;

use serde_json::{Value, json};

use super::object::{Condition, set_condition};
use crate::schedule;
use kcm_sandbox_apiserver::json;

/// Grace period for heartbeats.
pub(crate) const GRACE: Duration = Duration::from_secs(40);
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// Returns the status of a node whose heartbeats are missing.
pub(crate) fn lost_status(node: &Value, stamp: &str) -> Value {
    let mut status = json::at(node, &["status"]).cloned().unwrap_or_else(|| json!({}));
    for kind in ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"] {
        let condition = Condition {
            kind,
            is: "Unknown",
            reason: "NodeStatusUnknown",
            message: "Kubelet stopped posting node status.",
            heartbeat: None,
        };
        set_condition(&mut status, &condition, stamp);
    }
    status
}

/// Returns the node with the taints of its state; `None` if they are unchanged.
pub(crate) fn tainted(node: &Value, reachable: bool, stamp: &str) -> Option<Value> {
    let cordoned = json::at(node, &["spec", "unschedulable"]).and_then(Value::as_bool).unwrap_or(false);
    let mut taints = json::list(node, &["spec", "taints"]).to_vec();
    let before = taints.len();
    let mut changed = false;
    for (key, effect, wanted) in [
        (UNREACHABLE, NO_SCHEDULE, !reachable),
        (UNREACHABLE, NO_EXECUTE, !reachable),
        (UNSCHEDULABLE, NO_SCHEDULE, cordoned),
    ] {
        let is =
            |taint: &Value| json::text(taint, &["key"]) == Some(key) && json::text(taint, &["effect"]) == Some(effect);
        if !wanted {
            taints.retain(|taint| !is(taint));
        } else if !taints.iter().any(is) {
            taints.push(json!({ "key": key, "effect": effect, "timeAdded": stamp }));
            changed = true;
        }
    }
    changed |= taints.len() != before;
    changed.then(|| {
        let mut node = node.clone();
        json::set(&mut node, &["spec", "taints"], (!taints.is_empty()).then(|| taints.into()));
        node
    })
}

/// Returns the `NoExecute` taints of a node.
pub(crate) fn evicting_taints(node: &Value) -> Vec<Value> {
    let taints = json::list(node, &["spec", "taints"]).iter();
    taints.filter(|taint| json::text(taint, &["effect"]) == Some(NO_EXECUTE)).cloned().collect()
}

/// Returns how long a pod tolerates these taints; `None` means without limit.
pub(crate) fn patience(pod: &Value, taints: &[Value]) -> Option<Duration> {
    let tolerations = json::list(pod, &["spec", "tolerations"]);
    let mut shortest: Option<Duration> = None;
    for taint in taints.iter().map(schedule::taint) {
        let tolerates = |it: &&Value| schedule::tolerates(&schedule::toleration(it), &taint);
        let matching: Vec<&Value> = tolerations.iter().filter(tolerates).collect();
        if matching.is_empty() {
            return Some(Duration::ZERO);
        }
        for toleration in matching {
            if let Some(seconds) = json::at(toleration, &["tolerationSeconds"]).and_then(Value::as_i64) {
                let patience = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                shortest = Some(shortest.map_or(patience, |shortest| shortest.min(patience)));
            }
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(node: &Value) -> Vec<String> {
        let taints = json::list(node, &["spec", "taints"]).iter();
        taints.map(|taint| format!("{}:{}", taint["key"], taint["effect"]).replace('"', "")).collect()
    }

    #[test]
    fn taints_follow_the_state_of_the_node() {
        let node = json!({ "spec": { "taints": [{ "key": "mine", "effect": "NoSchedule" }] } });
        assert_eq!(tainted(&node, true, "1"), None);
        let lost = tainted(&node, false, "1").expect("the node is lost");
        assert_eq!(
            keys(&lost),
            [
                "mine:NoSchedule",
                "node.kubernetes.io/unreachable:NoSchedule",
                "node.kubernetes.io/unreachable:NoExecute"
            ]
        );
        assert_eq!(tainted(&lost, false, "2"), None);
        assert_eq!(keys(&tainted(&lost, true, "3").expect("the node is back")), ["mine:NoSchedule"]);
        let cordoned = json!({ "spec": { "unschedulable": true } });
        let cordoned = tainted(&cordoned, true, "1").expect("the node is cordoned");
        assert_eq!(keys(&cordoned), ["node.kubernetes.io/unschedulable:NoSchedule"]);
    }

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates_every_taint() {
        let taint = |key: &str| json!({ "key": key, "effect": NO_EXECUTE });
        let toleration =
            |key: &str, seconds: Option<i64>| json!({ "key": key, "operator": "Exists", "tolerationSeconds": seconds });
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (name, tolerations, taints, expected) in [
            ("no taint", vec![], vec![], None),
            ("not tolerated", vec![], vec![taint("a")], seconds(0)),
            ("tolerated for ever", vec![toleration("a", None)], vec![taint("a")], None),
            ("tolerated for a while", vec![toleration("a", Some(300))], vec![taint("a")], seconds(300)),
            (
                "the shortest time counts",
                vec![toleration("a", Some(300)), toleration("b", Some(5))],
                vec![taint("a"), taint("b")],
                seconds(5),
            ),
            ("one is not tolerated", vec![toleration("a", Some(300))], vec![taint("a"), taint("b")], seconds(0)),
            ("a negative time is none", vec![toleration("a", Some(-1))], vec![taint("a")], seconds(0)),
        ] {
            let pod = json!({ "spec": { "tolerations": tolerations } });
            assert_eq!(patience(&pod, &taints), expected, "{name}");
        }
    }
}
