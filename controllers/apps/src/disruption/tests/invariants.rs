//! The rules of disruption budgets for every history.

use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::PodDisruptionBudget;
use kcm_simulation::{History, Invariant};
use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::invariants::{
    Held, Story, check, find, has_condition, holds, is_terminating, items, key_of, number, text, writes_of,
};

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[
    allows_only_what_is_beyond_the_desired,
    disrupted_pods_stay_until_they_are_gone,
    takes_back_only_stale_disruptions,
];

/// D8.1: the allowed disruptions are the healthy pods beyond the desired ones, and none if no pod is expected. The status
/// carries the version on which it rests.
fn allows_only_what_is_beyond_the_desired(history: &History) -> Held {
    writes_of(history, "disruption", |at, change, _| {
        let Some(after) = change.after.as_deref().filter(|_| change.resource == PodDisruptionBudget::RESOURCE) else {
            return Ok(());
        };
        let beyond = number(after, "/status/currentHealthy") - number(after, "/status/desiredHealthy");
        let allowed = if number(after, "/status/expectedPods") == 0 { 0 } else { beyond.max(0) };
        let is_right = number(after, "/status/disruptionsAllowed") == allowed;
        holds(is_right, "D8.1", "other disruptions are allowed than the counts say", at, change)?;
        let carries = !text(&change.sent, "/metadata/resourceVersion").is_empty();
        holds(carries, "D8.1", "a status carries no version", at, change)
    })
}

/// D8.2: a disrupted pod leaves the status only once it is gone or terminating, or after two minutes.
fn disrupted_pods_stay_until_they_are_gone(history: &History) -> Held {
    writes_of(history, "disruption", |at, change, objects| {
        let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref()) else { return Ok(()) };
        let entries = |object: &Value| object.pointer("/status/disruptedPods").and_then(Value::as_object).cloned();
        let (before_entries, after_entries) = (entries(before).unwrap_or_default(), entries(after).unwrap_or_default());
        for pod in before_entries.keys().filter(|pod| !after_entries.contains_key(*pod)) {
            let mut key = before.clone();
            key["metadata"]["name"] = pod.as_str().into();
            let is_gone = find(objects, &PODS, &key_of(&key)).is_none_or(is_terminating);
            // The eviction may have been recorded at any time before.
            let is_old = change.at >= std::time::Duration::from_mins(2);
            holds(is_gone || is_old, "D8.2", "a disrupted pod is forgotten", at, change)?;
        }
        Ok(())
    })
}

/// D8.4: a disruption condition is taken back only from a pod that is not terminating, and never the condition of a kubelet.
fn takes_back_only_stale_disruptions(history: &History) -> Held {
    writes_of(history, "stale_pod_disruption", |at, change, _| {
        let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref()) else { return Ok(()) };
        let is_taken_back = has_condition(before, "DisruptionTarget") && !has_condition(after, "DisruptionTarget");
        let of_kubelet = items(before, "/status/conditions")
            .iter()
            .any(|one| one["type"] == "DisruptionTarget" && one["reason"] == "TerminationByKubelet");
        let is_right = !is_taken_back || !is_terminating(before) && !of_kubelet;
        holds(is_right, "D8.4", "a disruption is taken back that goes on", at, change)
    })
}

fn budget() -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web", "resourceVersion": "7" },
        "status": { "disruptedPods": { "web-1": "2026-01-02T12:00:00Z" } },
    })
}

fn pod(reason: &str) -> Value {
    json!({
        "metadata": { "name": "web-1", "namespace": NAMESPACE, "uid": "u-1" },
        "status": { "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": reason }] },
    })
}

#[test]
fn the_allowed_disruptions_follow_from_the_counts() {
    let with = |allowed: i64, expected: i64| {
        let story = Story::of([(PodDisruptionBudget::RESOURCE, budget())]);
        story.edit("disruption", &PodDisruptionBudget::RESOURCE, "web", |budget| {
            budget["status"] = json!({
                "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": expected, "disruptionsAllowed": allowed,
            });
        })
    };
    check("D8.1", allows_only_what_is_beyond_the_desired, with(1, 3), with(2, 3));
    check("D8.1", allows_only_what_is_beyond_the_desired, with(0, 0), with(1, 0));
    check("D8.1", allows_only_what_is_beyond_the_desired, with(1, 3), with(1, 3).sent(json!({})));
}

#[test]
fn a_disrupted_pod_is_remembered_for_two_minutes() {
    let forgotten = |pods: Option<Value>| {
        let pods = pods.map(|pod| (PODS, pod));
        let story = Story::of([(PodDisruptionBudget::RESOURCE, budget())].into_iter().chain(pods));
        story.edit("disruption", &PodDisruptionBudget::RESOURCE, "web", |budget| budget["status"] = json!({}))
    };
    check("D8.2", disrupted_pods_stay_until_they_are_gone, forgotten(None), forgotten(Some(pod(""))));
    let late = forgotten(Some(pod(""))).at(std::time::Duration::from_mins(2));
    check("D8.2", disrupted_pods_stay_until_they_are_gone, late, forgotten(Some(pod(""))));
}

#[test]
fn a_disruption_that_goes_on_is_not_taken_back() {
    let taken_back = |pod: Value| {
        Story::of([(PODS, pod)]).edit("stale_pod_disruption", &PODS, "web-1", |pod| {
            pod["status"]["conditions"][0]["status"] = "False".into();
        })
    };
    let mut terminating = pod("EvictionByEvictionAPI");
    terminating["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
    let stale = || taken_back(pod("EvictionByEvictionAPI"));
    check("D8.4", takes_back_only_stale_disruptions, stale(), taken_back(terminating));
    check("D8.4", takes_back_only_stale_disruptions, stale(), taken_back(pod("TerminationByKubelet")));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
