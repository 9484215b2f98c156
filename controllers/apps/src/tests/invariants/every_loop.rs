//! The rules of every loop of the applications.

use std::collections::BTreeSet;

use kcm_framework::api::views::{DaemonSet, Job, StatefulSet};
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_simulation::{Author, Change, History, Invariant, Objects, Seen};
use kcm_testing::sandbox::{DEPLOYMENTS, PODS, REPLICA_SETS, Verb};
use serde_json::{Value, json};

use kcm_simulation::rules::{
    deletions_carry_the_uid, metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else,
};

use super::{Held, Story, check, controller, holds, is_terminating, items, of, text, uid};
use crate::tests::cluster::NAMESPACE;

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Loops that change objects of other controllers, because that is their purpose.
const OF_ALL_OBJECTS: &[&str] =
    &["pod_garbage_collector", "job_orphan_pod", "ttl_jobs_to_delete", "stale_pod_disruption"];

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[
    observed_generation_never_falls,
    deletions_carry_the_uid,
    adoption_is_by_a_live_owner_that_selects,
    only_the_own_reference_is_removed,
    objects_of_others_are_left_alone,
    finalizers_of_others_are_kept,
    metadata_of_users_is_kept,
    statuses_change_nothing_else,
];

/// The writes of all loops.
fn by_loops(history: &History, mut look: impl FnMut(usize, &Change, &Objects, (&str, &str)) -> Held) -> Held {
    history.each(|at, change, objects| match &change.author {
        Author::Loop { name, key, .. } => look(at, change, objects, (name, key)),
        Author::Cluster | Author::User => Ok(()),
    })
}

/// D1.4: an object is adopted only by an owner that exists, is not terminating and selects it by the labels that its
/// reconcile saw, and if it has no controller and is not terminating itself.
pub(crate) fn adoption_is_by_a_live_owner_that_selects(history: &History) -> Held {
    by_loops(history, |at, change, objects, _| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let Some(owner) = controller(after).filter(|owner| controller(before) != Some(*owner)) else { return Ok(()) };
        let resources = [REPLICA_SETS, DEPLOYMENTS, StatefulSet::RESOURCE, DaemonSet::RESOURCE, Job::RESOURCE];
        let found = resources.iter().flat_map(|resource| of(objects, resource)).find(|one| owner["uid"] == uid(one));
        // Nothing covers a deletion between the live read of the owner and the adoption.
        let owner_key = ObjectKey::namespaced(change.key.namespace().unwrap_or_default(), text(owner, "/name"));
        let live = change.seen.as_ref().and_then(Seen::live_version).into_iter();
        let read = live.flat_map(|version| resources.iter().map(move |resource| (version, resource)));
        let read: Vec<_> =
            read.filter_map(|(version, resource)| history.at_version(resource, &owner_key, version)).collect();
        let found = found.or_else(|| read.iter().map(|one| &**one).find(|one| owner["uid"] == uid(one)));
        let seen = history.seen_by(at, &change.resource, &change.key);
        let selects = |found: &Value| {
            let labels = &seen.as_deref().unwrap_or(before)["metadata"]["labels"];
            let wanted = found.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
            wanted.is_none_or(|wanted| wanted.iter().all(|(name, value)| labels.get(name) == Some(value)))
        };
        let is_right = controller(before).is_none()
            && !is_terminating(before)
            && found.is_some_and(|found| !is_terminating(found) && selects(found));
        holds(is_right, "D1.4", "an object is adopted that may not be", at, change)
    })
}

/// D1.5: a loop removes from the owner references only the object of its key.
pub(crate) fn only_the_own_reference_is_removed(history: &History) -> Held {
    by_loops(history, |at, change, _, (_, key)| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let uids = |object| -> BTreeSet<String> {
            items(object, "/metadata/ownerReferences").iter().map(|owner| owner["uid"].to_string()).collect()
        };
        let kept = uids(after);
        let removed = items(before, "/metadata/ownerReferences").iter();
        let mut removed = removed.filter(|owner| !kept.contains(&owner["uid"].to_string()));
        let own = key.rsplit('/').next().unwrap_or_default();
        // Claims of a StatefulSet name its Pods.
        let is_own_pod = |owner: &Value| owner["kind"] == "Pod" && text(owner, "/name").starts_with(&format!("{own}-"));
        let is_own = |owner: &Value| owner["name"] == own || is_own_pod(owner);
        holds(removed.all(is_own), "D1.5", "the reference of another owner is removed", at, change)
    })
}

/// D1.6: a loop changes no object of another controller.
pub(crate) fn objects_of_others_are_left_alone(history: &History) -> Held {
    by_loops(history, |at, change, _, (name, key)| {
        let Some(owner) = change.before.as_deref().and_then(controller) else { return Ok(()) };
        let is_own = key.rsplit('/').next() == owner["name"].as_str() || change.key.to_string() == *key;
        let is_right = is_own || OF_ALL_OBJECTS.contains(&name);
        holds(is_right, "D1.6", "an object of another controller is changed", at, change)
    })
}

/// D1.7: a loop removes no finalizer but its own.
pub(crate) fn finalizers_of_others_are_kept(history: &History) -> Held {
    by_loops(history, |at, change, _, (name, _)| {
        let Some(before) = &change.before else { return Ok(()) };
        // A deletion removes an object without finalizers. Any other write that removes it has removed the last one.
        if change.verb == Verb::Delete {
            return Ok(());
        }
        let kept = change.after.as_deref().map_or(&[][..], |after| items(after, "/metadata/finalizers"));
        let mut removed = items(before, "/metadata/finalizers").iter().filter(|one| !kept.contains(one));
        let may_remove = ["job", "job_orphan_pod"].contains(&name);
        holds(
            removed.all(|one| may_remove && *one == TRACKING),
            "D1.7",
            "a finalizer of another is removed",
            at,
            change,
        )
    })
}

fn set() -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web", "generation": 2 },
        "spec": { "selector": { "matchLabels": { "app": "web" } } },
        "status": { "observedGeneration": 1 },
    })
}

fn pod(owners: &Value) -> Value {
    let labels = json!({ "app": "web" });
    json!({ "metadata": {
        "name": "web-1", "namespace": NAMESPACE, "uid": "u-1", "labels": labels, "ownerReferences": owners,
        "finalizers": ["example.com/held"],
    } })
}

fn owned_by(name: &str) -> Value {
    json!([{ "kind": "ReplicaSet", "name": name, "uid": format!("u-{name}"), "controller": true }])
}

#[test]
fn adoption_needs_a_live_owner_that_selects() {
    let adopting = |set: Value| {
        let story = Story::of([(REPLICA_SETS, set), (PODS, pod(&json!([])))]);
        story.edit("replicaset", &PODS, "web-1", |pod| pod["metadata"]["ownerReferences"] = owned_by("web"))
    };
    let mut recreated = set();
    recreated["metadata"]["uid"] = "u-other".into();
    check("D1.4", adoption_is_by_a_live_owner_that_selects, adopting(set()), adopting(recreated));
    let mut terminating = set();
    terminating["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
    check("D1.4", adoption_is_by_a_live_owner_that_selects, adopting(set()), adopting(terminating));
    let mut other = set();
    other["spec"]["selector"]["matchLabels"]["app"] = "db".into();
    check("D1.4", adoption_is_by_a_live_owner_that_selects, adopting(set()), adopting(other));
}

#[test]
fn references_and_objects_of_others_are_left_alone() {
    let releasing = |of: &str| {
        let story = Story::of([(PODS, pod(&owned_by(of)))]);
        story.edit("replicaset", &PODS, "web-1", |pod| pod["metadata"]["ownerReferences"] = json!([]))
    };
    check("D1.5", only_the_own_reference_is_removed, releasing("web"), releasing("other"));
    let deleting = |of: &str| Story::of([(PODS, pod(&owned_by(of)))]).delete("replicaset", &PODS, "web-1");
    check("D1.6", objects_of_others_are_left_alone, deleting("web"), deleting("other"));
}

#[test]
fn only_the_loops_of_jobs_remove_their_finalizer() {
    let removing = |author: &str, finalizer: &str| {
        let mut held = pod(&owned_by("web"));
        held["metadata"]["finalizers"] = json!([finalizer]);
        let story = Story::of([(PODS, held)]);
        story.edit(author, &PODS, "web-1", |pod| pod["metadata"]["finalizers"] = json!([]))
    };
    check("D1.7", finalizers_of_others_are_kept, removing("job", TRACKING), removing("replicaset", TRACKING));
    check("D1.7", finalizers_of_others_are_kept, removing("job", TRACKING), removing("job", "example.com/held"));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
