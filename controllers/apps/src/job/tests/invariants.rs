//! The rules of Jobs for every history.

use std::collections::BTreeSet;

use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::Job;
use kcm_simulation::{Change, History, Invariant, Objects};
use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::invariants::{
    Held, Story, check, controlled, controller, count, has_condition, holds, holds_at_rest, is_active, is_terminating,
    items, number, of, seen_owner, text, uid, writes_of,
};

const LOOP: &str = "job";
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[
    finalizers_leave_only_after_the_record,
    each_pod_is_counted_once,
    indexes_are_run_once_at_a_time,
    keeps_the_parallelism,
    creates_nothing_for_a_job_that_ends,
    ends_in_order,
    frees_orphans_at_rest,
];

fn is_tracked(pod: &Value) -> bool {
    items(pod, "/metadata/finalizers").iter().any(|finalizer| finalizer == TRACKING)
}

fn is_indexed(job: &Value) -> bool {
    text(job, "/spec/completionMode") == "Indexed"
}

/// The first and last index of each range of completed indexes.
fn completed_ranges(job: &Value) -> impl Iterator<Item = (i64, i64)> {
    text(job, "/status/completedIndexes").split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    })
}

fn is_completed(job: &Value, index: &str) -> bool {
    let of = |(first, last): (i64, i64)| index.parse().is_ok_and(|index: i64| (first..=last).contains(&index));
    completed_ranges(job).any(of)
}

fn has_ended(job: &Value) -> bool {
    has_condition(job, "Complete") || has_condition(job, "Failed")
}

fn is_ending(job: &Value) -> bool {
    has_ended(job) || has_condition(job, "FailureTarget") || has_condition(job, "SuccessCriteriaMet")
}

/// The uids of pods that a status has not counted yet.
fn uncounted(job: &Value) -> BTreeSet<&str> {
    let lists = ["succeeded", "failed"].map(|list| items(job, &format!("/status/uncountedTerminatedPods/{list}")));
    lists.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Number of pods that were counted by their uids. Completed indexes are counted by themselves.
fn counted(job: &Value) -> i64 {
    let succeeded = if is_indexed(job) { 0 } else { number(job, "/status/succeeded") };
    succeeded + number(job, "/status/failed")
}

/// Calls `look` for each pod that the loop creates, with the job that the reconcile has seen.
fn created_pods(history: &History, mut look: impl FnMut(usize, &Change, &Objects, (&Value, &Value)) -> Held) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let pod = change.after.as_deref().filter(|_| change.creates() && change.resource == PODS);
        let Some(pod) = pod else { return Ok(()) };
        let Some(job) = seen_owner(history, at, &Job::RESOURCE, pod) else { return Ok(()) };
        look(at, change, objects, (pod, &job))
    })
}

/// Calls `look` for each write of a job, with the job before and after it.
fn statuses(history: &History, mut look: impl FnMut(usize, &Change, &Objects, (&Value, &Value)) -> Held) -> Held {
    writes_of(history, LOOP, |at, change, objects| match (&change.before, &change.after) {
        (Some(before), Some(after)) if change.resource == Job::RESOURCE => look(at, change, objects, (before, after)),
        _ => Ok(()),
    })
}

/// D6.2: a pod loses its finalizer only if its uid was recorded, or the job does not need it any more.
fn finalizers_leave_only_after_the_record(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(before) = change.before.as_deref().filter(|pod| change.resource == PODS && is_tracked(pod)) else {
            return Ok(());
        };
        if change.after.as_deref().is_some_and(is_tracked) {
            return Ok(());
        }
        let owner = controller(before).and_then(|owner| owner["uid"].as_str()).unwrap_or_default();
        let job = of(objects, &Job::RESOURCE).find(|job| uid(job) == owner);
        let is_free = job.is_none_or(|job| is_terminating(job) || has_ended(job));
        let was_recorded = history.changes[..at]
            .iter()
            .filter_map(|change| change.after.as_deref())
            .any(|object| uid(object) == owner && uncounted(object).contains(uid(before)));
        // The completed index of a pod is its record.
        let was_before = job.is_some_and(|job| {
            let is_completed = is_indexed(job) && is_completed(job, text(before, INDEX));
            uncounted(job).contains(uid(before)) || is_completed
        });
        holds(is_free || was_recorded || was_before, "D6.2", "a pod is released before it is recorded", at, change)
    })
}

/// D6.1 and D6.3: a uid leaves the uncounted ones only in the write that counts it, once its pod has no finalizer.
fn each_pod_is_counted_once(history: &History) -> Held {
    statuses(history, |at, change, objects, (before, after)| {
        let left: BTreeSet<_> = uncounted(before).difference(&uncounted(after)).copied().collect();
        let grown = counted(after) - counted(before);
        let are_counted = grown == count(left.iter());
        // The first status of a job may count pods that have no finalizer, and so never were uncounted.
        holds(are_counted || left.is_empty() && grown == 0, "D6.1", "pods are not counted once", at, change)?;
        let completed: i64 = completed_ranges(after).map(|(first, last)| last - first + 1).sum();
        let are_equal = !is_indexed(after) || number(after, "/status/succeeded") == completed;
        holds(are_equal, "D6.1", "the completed indexes are not counted once", at, change)?;
        let mut held = of(objects, &PODS).filter(|pod| left.contains(uid(pod)) && is_tracked(pod));
        holds(held.next().is_none(), "D6.3", "a pod is counted that still has its finalizer", at, change)
    })
}

/// D6.4: an index has one active pod, lies within the completions, and is not completed.
fn indexes_are_run_once_at_a_time(history: &History) -> Held {
    created_pods(history, |at, change, objects, (pod, job)| {
        if !is_indexed(job) {
            return Ok(());
        }
        let index = text(pod, INDEX);
        let is_within = index.parse().is_ok_and(|index: i64| (0..number(job, "/spec/completions")).contains(&index));
        let completed = is_completed(job, index);
        let mut twins =
            controlled(objects, &PODS, uid(job)).filter(|other| is_active(other) && text(other, INDEX) == index);
        let is_right = is_within && !completed && twins.next().is_none();
        holds(is_right, "D6.4", "an index is run that may not be", at, change)
    })
}

/// D6.5: a pod is created only if fewer are active than the parallelism and what is left to complete.
fn keeps_the_parallelism(history: &History) -> Held {
    created_pods(history, |at, change, objects, (_, job)| {
        let active = count(controlled(objects, &PODS, uid(job)).filter(|pod| is_active(pod)));
        let left = job.pointer("/spec/completions").and_then(Value::as_i64);
        let left = left.map_or(i64::MAX, |completions| completions - number(job, "/status/succeeded"));
        let most = number(job, "/spec/parallelism").min(left);
        holds(active < most, "D6.5", "more pods are active than may be", at, change)
    })
}

/// D6.6 and D6.9: a job that is suspended, terminating, ending or beyond its back-off limit creates no pod.
fn creates_nothing_for_a_job_that_ends(history: &History) -> Held {
    created_pods(history, |at, change, _, (_, job)| {
        let may_run = job["spec"]["suspend"] != true && !is_terminating(job) && !is_ending(job);
        holds(may_run, "D6.6", "a pod is created for a job that runs no more", at, change)?;
        let limit = job.pointer("/spec/backoffLimit").and_then(Value::as_i64).unwrap_or(6);
        let is_within = number(job, "/status/failed") <= limit;
        holds(is_within, "D6.9", "a pod is created beyond the back-off limit", at, change)
    })
}

/// D6.7: a job ends only without active and uncounted pods, after its interim condition, and stays ended.
fn ends_in_order(history: &History) -> Held {
    statuses(history, |at, change, objects, (before, after)| {
        holds(!has_ended(before) || has_ended(after), "D6.7", "an end is taken back", at, change)?;
        if has_ended(before) || !has_ended(after) {
            return Ok(());
        }
        let has_interim = is_ending(before);
        let active = controlled(objects, &PODS, uid(after)).filter(|pod| is_active(pod));
        let is_done = uncounted(after).is_empty() && count(active) == 0;
        holds(has_interim && is_done, "D6.7", "a job ends before its pods", at, change)
    })
}

/// D6.10: at rest, a pod without a job has no finalizer.
fn frees_orphans_at_rest(history: &History) -> Held {
    let end = history.end();
    for pod in of(&end, &PODS).filter(|pod| is_tracked(pod)) {
        let owner = controller(pod).and_then(|owner| owner["uid"].as_str()).unwrap_or_default();
        let has_job = of(&end, &Job::RESOURCE).any(|job| uid(job) == owner);
        holds_at_rest(has_job, "D6.10", "a pod without a job keeps its finalizer", pod)?;
    }
    Ok(())
}

fn job(spec: &Value, status: &Value) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": spec,
        "status": status,
    })
}

fn pod(name: &str, phase: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("u-{name}"), "finalizers": [TRACKING],
            "annotations": { "batch.kubernetes.io/job-completion-index": name.rsplit('-').next() },
            "ownerReferences": [{ "name": "web", "uid": "u-web", "controller": true }],
        },
        "status": { "phase": phase },
    })
}

fn story(job: Value, pods: impl IntoIterator<Item = Value>) -> Story {
    Story::of([(Job::RESOURCE, job)].into_iter().chain(pods.into_iter().map(|pod| (PODS, pod))))
}

fn released(story: Story) -> Story {
    story.edit(LOOP, &PODS, "web-0", |pod| pod["metadata"]["finalizers"] = json!([]))
}

fn status(story: Story, status: Value) -> Story {
    story.edit(LOOP, &Job::RESOURCE, "web", |job| job["status"] = status)
}

#[test]
fn a_pod_is_recorded_then_released_then_counted() {
    let spec = json!({ "parallelism": 1, "completions": 1 });
    let begun = || story(job(&spec, &json!({})), [pod("web-0", "Succeeded")]);
    let record = || json!({ "uncountedTerminatedPods": { "succeeded": ["u-web-0"] } });
    let recorded = || status(begun(), record());
    check("D6.2", finalizers_leave_only_after_the_record, released(recorded()), released(begun()));
    let counted = |story| status(story, json!({ "succeeded": 1 }));
    check("D6.1", each_pod_is_counted_once, counted(released(recorded())), status(released(recorded()), json!({})));
    check("D6.1", each_pod_is_counted_once, counted(released(recorded())), {
        status(released(recorded()), json!({ "succeeded": 2 }))
    });
    check("D6.3", each_pod_is_counted_once, counted(released(recorded())), counted(recorded()));
}

#[test]
fn a_completed_index_records_its_pod() {
    let spec = json!({ "completionMode": "Indexed", "parallelism": 1, "completions": 4 });
    let begun = || story(job(&spec, &json!({})), [pod("web-0", "Succeeded")]);
    let completed =
        |indexes: &str, succeeded: i64| status(begun(), json!({ "completedIndexes": indexes, "succeeded": succeeded }));
    check("D6.2", finalizers_leave_only_after_the_record, released(completed("0-1", 2)), released(completed("1-3", 3)));
    check("D6.1", each_pod_is_counted_once, completed("0,2-3", 3), completed("0,2-3", 2));
}

#[test]
fn indexes_are_run_within_the_completions_and_not_twice() {
    let spec = json!({ "completionMode": "Indexed", "parallelism": 9, "completions": 4 });
    let created = |name: &str| {
        let indexed = job(&spec, &json!({ "completedIndexes": "0-1" }));
        story(indexed, [pod("web-a-2", "Running")]).create(LOOP, &PODS, pod(name, "Pending"))
    };
    for refused in ["web-b-0", "web-b-1", "web-b-2", "web-b-4"] {
        check("D6.4", indexes_are_run_once_at_a_time, created("web-b-3"), created(refused));
    }
}

#[test]
fn pods_are_created_within_the_bounds_of_the_job() {
    let created = |spec: Value, status: Value| {
        story(job(&spec, &status), [pod("web-0", "Running")]).create(LOOP, &PODS, pod("web-1", "Pending"))
    };
    let wanted = || created(json!({ "parallelism": 2, "completions": 3 }), json!({ "succeeded": 1 }));
    check("D6.5", keeps_the_parallelism, wanted(), created(json!({ "parallelism": 1, "completions": 3 }), json!({})));
    check("D6.5", keeps_the_parallelism, wanted(), {
        created(json!({ "parallelism": 2, "completions": 3 }), json!({ "succeeded": 2 }))
    });
    check("D6.6", creates_nothing_for_a_job_that_ends, wanted(), created(json!({ "suspend": true }), json!({})));
    let failing = json!({ "conditions": [{ "type": "FailureTarget", "status": "True" }] });
    check("D6.6", creates_nothing_for_a_job_that_ends, wanted(), created(json!({}), failing));
    check("D6.9", creates_nothing_for_a_job_that_ends, wanted(), {
        created(json!({ "backoffLimit": 1 }), json!({ "failed": 2 }))
    });
}

#[test]
fn a_job_ends_after_its_pods_and_stays_ended() {
    let conditions = |types: &[&str]| {
        let all: Vec<_> = types.iter().map(|type_| json!({ "type": type_, "status": "True" })).collect();
        json!({ "conditions": all })
    };
    let ended = |from: &[&str], phase: &str| {
        let begun = story(job(&json!({}), &conditions(from)), [pod("web-0", phase)]);
        status(begun, conditions(&["SuccessCriteriaMet", "Complete"]))
    };
    check(
        "D6.7",
        ends_in_order,
        ended(&["SuccessCriteriaMet"], "Succeeded"),
        ended(&["SuccessCriteriaMet"], "Running"),
    );
    check("D6.7", ends_in_order, ended(&["SuccessCriteriaMet"], "Succeeded"), ended(&[], "Succeeded"));
    let back = status(ended(&["SuccessCriteriaMet"], "Succeeded"), conditions(&["SuccessCriteriaMet"]));
    check("D6.7", ends_in_order, ended(&["SuccessCriteriaMet"], "Succeeded"), back);
}

#[test]
fn at_rest_no_orphan_is_held() {
    let begun = || story(job(&json!({}), &json!({})), [pod("web-0", "Succeeded")]);
    check("D6.10", frees_orphans_at_rest, begun(), begun().delete("user", &Job::RESOURCE, "web"));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
