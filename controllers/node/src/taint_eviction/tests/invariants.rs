//! The rules of evictions by taints for every history.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_simulation::rules::{Held, Story, check, holds, items, text, writes_of};
use kcm_simulation::{Change, History, Invariant};
use kcm_testing::sandbox::{NODES, PODS, Verb};
use serde_json::{Value, json};

use crate::tests::scenarios::{NAMESPACE, taints};

const LOOP: &str = "noexec_taint_pod";
/// Time for which a live read of a node is shared.
const SHARED: Duration = Duration::from_secs(1);

/// The rules, for scenarios.
pub(super) const RULES: &[Invariant] = &[evicts_only_what_is_due, marks_before_the_deletion];

/// Returns `true` if a pod tolerates a taint for ever, or the number of seconds for which it does.
fn tolerated(pod: &Value, taint: &Value) -> Option<u64> {
    let matching = items(pod, "/spec/tolerations").iter().find(|toleration| toleration["key"] == taint["key"])?;
    Some(matching["tolerationSeconds"].as_u64().unwrap_or(u64::MAX))
}

/// D24.3: a pod is evicted only if its node had a taint when it was last read, for as long as the pod tolerates it.
fn evicts_only_what_is_due(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, _| {
        let Some(pod) = change.before.as_deref().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        let node = ObjectKey::cluster_scoped(text(pod, "/spec/nodeName"));
        let seen = change.seen.as_ref().and_then(|seen| seen.version(&NODES)).unwrap_or(change.version - 1);
        let seen_at =
            history.changes.iter().take_while(|one| one.version <= seen).last().map_or(Duration::ZERO, |one| one.at);
        // The states of the node that a read may have shown since the reconcile began.
        let states = history.changes[..at].iter().filter(|one| one.resource == NODES && one.key == node);
        let mut states: Vec<(Duration, Option<&Value>)> = states.map(|one| (one.at, one.after.as_deref())).collect();
        let first = history.start.get(&NODES).and_then(|nodes| nodes.get(&node));
        states.insert(0, (Duration::ZERO, first.map(|node| &**node)));
        let recent = states
            .iter()
            .enumerate()
            .filter(|(index, _)| states.get(index + 1).is_none_or(|(until, _)| *until + SHARED >= seen_at));
        let is_due = |(index, (_, node)): (usize, &(Duration, Option<&Value>))| {
            taints(node.unwrap_or(&Value::Null)).iter().filter(|taint| taint["effect"] == "NoExecute").any(|taint| {
                let before = states[..=index].iter().rev();
                let has = |node: Option<&Value>| node.is_some_and(|node| taints(node).contains(taint));
                let since = before.take_while(|(_, node)| has(*node)).last().map_or(Duration::ZERO, |(at, _)| *at);
                let seconds = tolerated(pod, taint).unwrap_or(0);
                change.at >= since.saturating_add(Duration::from_secs(seconds))
            })
        };
        let mut due = recent.filter(|state| is_due(*state));
        holds(due.next().is_some(), "D24.3", "a pod is evicted that is not due", at, change)
    })
}

/// D24.3: the condition `DisruptionTarget` says why a pod is deleted.
fn marks_before_the_deletion(history: &History) -> Held {
    let is_marked = |pod: &Value| {
        items(pod, "/status/conditions").iter().any(|one| one["type"] == "DisruptionTarget" && one["status"] == "True")
    };
    let is_deletion = |change: &Change| change.verb == Verb::Delete && change.resource == PODS;
    writes_of(history, LOOP, |at, change, _| {
        let is_right = !is_deletion(change) || change.before.as_deref().is_some_and(is_marked);
        holds(is_right, "D24.3", "a pod is deleted without its condition", at, change)
    })
}

fn pod(tolerations: &Value) -> Value {
    json!({
        "metadata": { "namespace": NAMESPACE, "name": "a", "uid": "u-a" },
        "spec": { "nodeName": "n1", "tolerations": tolerations },
        "status": { "conditions": [{ "type": "DisruptionTarget", "status": "True" }] },
    })
}

fn evicted(tolerations: &Value, seconds: u64) -> Story {
    let node = json!({ "metadata": { "name": "n1", "uid": "u-n1" } });
    let tainted = |node: &mut Value| node["spec"]["taints"] = json!([{ "key": "k", "effect": "NoExecute" }]);
    let story = Story::of([(PODS, pod(tolerations)), (NODES, node)]).edit("user", &NODES, "n1", tainted);
    story.at(Duration::from_secs(10)).delete(LOOP, &PODS, "a").at(Duration::from_secs(seconds))
}

#[test]
fn a_pod_is_evicted_when_it_is_due() {
    let none = json!([]);
    let short = json!([{ "key": "k", "operator": "Exists", "tolerationSeconds": 30 }]);
    let forever = json!([{ "key": "k", "operator": "Exists" }]);
    check("D24.3", evicts_only_what_is_due, evicted(&none, 10), evicted(&forever, 900));
    check("D24.3", evicts_only_what_is_due, evicted(&short, 40), evicted(&short, 39));
    let unmarked = {
        let mut pod = pod(&none);
        pod["status"] = json!({});
        Story::of([(PODS, pod)]).delete(LOOP, &PODS, "a")
    };
    check("D24.3", marks_before_the_deletion, evicted(&none, 10), unmarked);
}

#[test]
fn a_taint_that_was_removed_before_does_not_count() {
    let healed = |seconds: u64| {
        let node =
            json!({ "metadata": { "name": "n1" }, "spec": { "taints": [{ "key": "k", "effect": "NoExecute" }] } });
        let story = Story::of([(PODS, pod(&json!([]))), (NODES, node)]);
        let story = story.edit("user", &NODES, "n1", |node| node["spec"]["taints"] = json!([]));
        story.at(Duration::from_secs(10)).edit("user", &PODS, "a", |_| ()).at(Duration::from_secs(seconds))
    };
    let evicted = |story: Story| story.delete(LOOP, &PODS, "a").at(Duration::from_secs(20));
    check("D24.3", evicts_only_what_is_due, evicted(healed(11)), evicted(healed(12)));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
