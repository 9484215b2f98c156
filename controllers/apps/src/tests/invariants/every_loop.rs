//! The rules of every loop.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::{DaemonSet, Job, StatefulSet};
use kcm_simulation::{Author, Change, History, Invariant, Objects};
use kcm_testing::sandbox::{DEPLOYMENTS, PODS, REPLICA_SETS, Verb};
use serde_json::{Value, json};

use super::{Held, Story, check, controller, holds, is_terminating, items, number, of, text, uid};
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

/// D1.2: the observed generation of an object never falls.
pub(crate) fn observed_generation_never_falls(history: &History) -> Held {
    by_loops(history, |at, change, _, _| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let observed = |object| number(object, "/status/observedGeneration");
        let is_same = uid(before) == uid(after);
        holds(!is_same || observed(before) <= observed(after), "D1.2", "an observed generation falls", at, change)
    })
}

/// D1.3: a deletion carries the uid of the object.
pub(crate) fn deletions_carry_the_uid(history: &History) -> Held {
    by_loops(history, |at, change, _, _| {
        let is_deletion = change.verb == Verb::Delete;
        let carries = !text(&change.sent, "/preconditions/uid").is_empty();
        holds(!is_deletion || carries, "D1.3", "a deletion has no uid as its precondition", at, change)
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
        let is_own = |owner: &Value| key.rsplit('/').next() == owner["name"].as_str();
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

/// D1.11: labels and annotations that a user has set stay until the user removes them.
pub(crate) fn metadata_of_users_is_kept(history: &History) -> Held {
    let mut set = BTreeMap::new();
    for (at, change) in history.changes.iter().enumerate() {
        let Some(after) = &change.after else { continue };
        for field in ["/metadata/labels", "/metadata/annotations"] {
            let (was, is) = (change.before.as_deref().map(|object| map(object, field)), map(after, field));
            let known: &mut BTreeMap<String, Value> = set.entry((uid(after).to_owned(), field)).or_default();
            match change.author {
                Author::User => {
                    known.retain(|name, value| is.get(name) == Some(value));
                    let was = was.unwrap_or_default();
                    let fresh = is.into_iter().filter(|(name, value)| was.get(name) != Some(value));
                    known.extend(fresh.filter(|_| change.before.is_some()));
                }
                Author::Cluster => {}
                Author::Loop { .. } => {
                    let are_kept = known.iter().all(|(name, value)| is.get(name) == Some(value));
                    holds(are_kept, "D1.11", "a label or annotation of a user is changed", at, change)?;
                }
            }
        }
    }
    Ok(())
}

fn map(object: &Value, field: &str) -> BTreeMap<String, Value> {
    let fields = object.pointer(field).and_then(Value::as_object);
    fields.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// D1.12: a request for a status changes nothing but the status. Deployments and ReplicaSets carry annotations too.
pub(crate) fn statuses_change_nothing_else(history: &History) -> Held {
    let rest = |object: &Value| {
        let mut object = object.clone();
        object["status"] = Value::Null;
        object["metadata"]["resourceVersion"] = Value::Null;
        object["metadata"]["managedFields"] = Value::Null;
        object["metadata"]["annotations"] = Value::Null;
        object
    };
    by_loops(history, |at, change, _, _| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let is_status = change.subresource.as_deref() == Some("status");
        let is_right = !is_status || rest(before) == rest(after);
        holds(is_right, "D1.12", "a request for a status changes more than the status", at, change)
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
fn the_observed_generation_never_falls() {
    let observing = |generation: i64| {
        let story = Story::of([(REPLICA_SETS, set())]);
        story.edit("replicaset", &REPLICA_SETS, "web", |set| set["status"]["observedGeneration"] = generation.into())
    };
    check("D1.2", observed_generation_never_falls, observing(2), observing(0));
}

#[test]
fn a_deletion_without_a_uid_is_refused() {
    let deleting = || Story::of([(PODS, pod(&owned_by("web")))]).delete("replicaset", &PODS, "web-1");
    check("D1.3", deletions_carry_the_uid, deleting(), deleting().sent(json!({})));
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
fn what_users_set_is_kept() {
    let annotated = || {
        let story = Story::of([(REPLICA_SETS, set())]);
        story.edit("user", &REPLICA_SETS, "web", |set| set["metadata"]["annotations"] = json!({ "of": "user" }))
    };
    let other = |set: &mut Value| set["metadata"]["annotations"]["another"] = "mine".into();
    let lost = |set: &mut Value| set["metadata"]["annotations"] = json!({ "another": "mine" });
    check("D1.11", metadata_of_users_is_kept, annotated().edit("replicaset", &REPLICA_SETS, "web", other), {
        annotated().edit("replicaset", &REPLICA_SETS, "web", lost)
    });
}

#[test]
fn a_status_is_written_alone() {
    let writing = |edit: fn(&mut Value)| {
        let story = Story::of([(REPLICA_SETS, set())]);
        story.edit("replicaset", &REPLICA_SETS, "web", edit).at_subresource("status")
    };
    check("D1.12", statuses_change_nothing_else, writing(|set| set["status"]["replicas"] = 1.into()), {
        writing(|set| set["metadata"]["labels"] = json!({}))
    });
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
