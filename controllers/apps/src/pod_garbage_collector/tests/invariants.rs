//! The rules of the pod garbage collector for every history.

use kcm_framework::api::ObjectKey;
use kcm_simulation::{History, Invariant};
use kcm_testing::sandbox::{NODES, PODS, Verb};
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::invariants::{Held, Story, check, find, has_ended, holds, is_terminating, items, text, writes_of};

const LOOP: &str = "pod_garbage_collector";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[deletes_only_for_its_reasons, fails_pods_first];

/// D9.1: a pod is deleted only if it has ended, if its node does not exist, if it terminates unscheduled, or if it
/// terminates on a node that is out of service.
fn deletes_only_for_its_reasons(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(pod) = change.before.as_deref().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        let node = text(pod, "/spec/nodeName");
        let found = find(objects, &NODES, &ObjectKey::cluster_scoped(node));
        let is_out =
            found.is_some_and(|node| items(node, "/spec/taints").iter().any(|taint| taint["key"] == OUT_OF_SERVICE));
        let is_lost = !node.is_empty() && found.is_none();
        let is_right = has_ended(pod) || is_lost || is_terminating(pod) && (node.is_empty() || is_out);
        holds(is_right, "D9.1", "a pod is deleted without a reason", at, change)
    })
}

/// D9.2: a pod that has not ended is failed before it is deleted.
fn fails_pods_first(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, _| {
        let Some(pod) = change.before.as_deref().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        // An unscheduled pod has no kubelet that would have set a phase.
        let is_scheduled = !text(pod, "/spec/nodeName").is_empty();
        holds(!is_scheduled || has_ended(pod), "D9.2", "a pod is deleted before it is failed", at, change)
    })
}

fn pod(node: &str, phase: &str) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": { "nodeName": node },
        "status": { "phase": phase },
    })
}

fn deleted(pod: Value) -> Story {
    let node = json!({ "metadata": { "name": "one" } });
    Story::of([(NODES, node), (PODS, pod)]).delete(LOOP, &PODS, "web")
}

#[test]
fn pods_are_deleted_for_a_reason_and_failed_first() {
    check("D9.1", deletes_only_for_its_reasons, deleted(pod("gone", "Running")), deleted(pod("one", "Running")));
    let mut terminating = pod("", "Pending");
    terminating["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
    check("D9.1", deletes_only_for_its_reasons, deleted(terminating), deleted(pod("", "Pending")));
    check("D9.2", fails_pods_first, deleted(pod("gone", "Failed")), deleted(pod("gone", "Running")));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
