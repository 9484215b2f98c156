//! The rules of StatefulSets for every history.

use kcm_framework::api::views::{ControllerRevision, PersistentVolumeClaim, StatefulSet};
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_simulation::{Change, History, Invariant, Objects};
use kcm_testing::sandbox::{PODS, Verb};
use serde_json::{Value, json};

use crate::tests::cluster::{NAMESPACE, key};
use crate::tests::invariants::{
    Held, Story, check, controlled, find, holds, holds_at_rest, is_active, is_ready, is_terminating, items, name,
    number, of, seen_owner, text, uid, writes_of,
};

const LOOP: &str = "statefulset";
const REVISION: &str = "/metadata/labels/controller-revision-hash";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[
    creates_only_ordinals_of_the_set,
    creates_in_order,
    scales_down_from_the_highest,
    updates_only_above_the_partition,
    creates_claims_first,
    never_deletes_claims,
    keeps_revisions_in_use,
    has_its_ordinals_at_rest,
];

fn ordinal(pod: &Value) -> Option<i64> {
    name(pod).rsplit_once('-')?.1.parse().ok()
}

fn range(set: &Value) -> std::ops::Range<i64> {
    let start = number(set, "/spec/ordinals/start");
    start..start + number(set, "/spec/replicas")
}

fn is_parallel(set: &Value) -> bool {
    text(set, "/spec/podManagementPolicy") == "Parallel"
}

/// Calls `look` for each write of a pod, with the pod before or after it and the set that the reconcile has seen.
fn writes_of_pods(history: &History, mut look: impl FnMut(usize, &Change, &Objects, (&Value, &Value)) -> Held) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let pod = change.after.as_deref().or(change.before.as_deref()).filter(|_| change.resource == PODS);
        let Some(pod) = pod else { return Ok(()) };
        let Some(set) = seen_owner(history, at, &StatefulSet::RESOURCE, pod) else { return Ok(()) };
        look(at, change, objects, (pod, &set))
    })
}

fn deletes(change: &Change) -> bool {
    change.verb == Verb::Delete && change.before.as_deref().is_some_and(is_active)
}

/// D4.1: a pod is created only for an ordinal of the set.
fn creates_only_ordinals_of_the_set(history: &History) -> Held {
    writes_of_pods(history, |at, change, _, (pod, set)| {
        let is_in_range = ordinal(pod).is_some_and(|ordinal| range(set).contains(&ordinal));
        holds(!change.creates() || is_in_range, "D4.1", "a pod is created for no ordinal of the set", at, change)
    })
}

/// D4.2: in order, a pod is created only if all lower ordinals are ready, or were when the reconcile began.
fn creates_in_order(history: &History) -> Held {
    writes_of_pods(history, |at, change, objects, (pod, set)| {
        let Some(own) = ordinal(pod).filter(|_| change.creates() && !is_parallel(set)) else { return Ok(()) };
        let is_there =
            |lower: i64| controlled(objects, &PODS, uid(set)).any(|pod| ordinal(pod) == Some(lower) && is_ready(pod));
        let was_there = |lower: i64| {
            let seen = history.seen_by(at, &PODS, &key(&format!("{}-{lower}", name(set))));
            seen.is_some_and(|pod| is_ready(&pod))
        };
        let are_there = (range(set).start..own).all(|lower| is_there(lower) || was_there(lower));
        holds(are_there, "D4.2", "a lower ordinal is not ready", at, change)
    })
}

/// D4.3: in order, a scale-down deletes the highest ordinal.
fn scales_down_from_the_highest(history: &History) -> Held {
    writes_of_pods(history, |at, change, objects, (pod, set)| {
        let is_surplus = ordinal(pod).is_some_and(|ordinal| !range(set).contains(&ordinal));
        if !deletes(change) || is_parallel(set) || !is_surplus {
            return Ok(());
        }
        let highest = controlled(objects, &PODS, uid(set)).filter_map(ordinal).max();
        holds(ordinal(pod) == highest, "D4.3", "a pod is deleted that is not the highest", at, change)
    })
}

/// D4.4: an update deletes only pods of another revision, at or above the partition.
fn updates_only_above_the_partition(history: &History) -> Held {
    writes_of_pods(history, |at, change, objects, (pod, set)| {
        let own = ordinal(pod).unwrap_or(-1);
        if !deletes(change) || !range(set).contains(&own) {
            return Ok(());
        }
        // The reconcile that creates a revision updates to it before a status names it.
        let revisions = controlled(objects, &ControllerRevision::RESOURCE, uid(set));
        let newest = revisions.max_by_key(|revision| number(revision, "/revision")).map(name);
        let is_old = text(pod, REVISION) != newest.unwrap_or(text(set, "/status/updateRevision"));
        let is_above = own >= number(set, "/spec/updateStrategy/rollingUpdate/partition");
        holds(is_old && is_above, "D4.4", "a pod is deleted that need not be updated", at, change)
    })
}

/// D4.6: all claims of a pod exist before it is created, and none is terminating.
fn creates_claims_first(history: &History) -> Held {
    writes_of_pods(history, |at, change, objects, (pod, set)| {
        if !change.creates() {
            return Ok(());
        }
        let exists = |template: &Value| {
            let claim = ObjectKey::namespaced(NAMESPACE, format!("{}-{}", name(template), name(pod)));
            find(objects, &PersistentVolumeClaim::RESOURCE, &claim).is_some_and(|claim| !is_terminating(claim))
        };
        let all = items(set, "/spec/volumeClaimTemplates").iter().all(exists);
        holds(all, "D4.6", "a claim does not exist before its pod", at, change)
    })
}

/// D4.7: claims are never deleted.
fn never_deletes_claims(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, _| {
        let is_deletion = change.resource == PersistentVolumeClaim::RESOURCE && change.verb == Verb::Delete;
        holds(!is_deletion, "D4.7", "a claim is deleted", at, change)
    })
}

/// D4.8: a revision is deleted only if neither the status nor a pod has it.
fn keeps_revisions_in_use(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let is_deletion = change.resource == ControllerRevision::RESOURCE && change.verb == Verb::Delete;
        let Some(revision) = change.before.as_deref().filter(|_| is_deletion) else { return Ok(()) };
        let Some(set) = seen_owner(history, at, &StatefulSet::RESOURCE, revision) else { return Ok(()) };
        let of_status = ["/status/currentRevision", "/status/updateRevision"].map(|field| text(&set, field));
        let mut of_pods = controlled(objects, &PODS, uid(&set)).map(|pod| text(pod, REVISION));
        let is_used = of_status.contains(&name(revision)) || of_pods.any(|of_pod| of_pod == name(revision));
        holds(!is_used, "D4.8", "a revision in use is deleted", at, change)
    })
}

/// D4.10: at rest, the pods have the ordinals of the set.
fn has_its_ordinals_at_rest(history: &History) -> Held {
    let end = history.end();
    for set in of(&end, &StatefulSet::RESOURCE).filter(|set| !is_terminating(set)) {
        let mut ordinals: Vec<i64> = controlled(&end, &PODS, uid(set)).filter_map(ordinal).collect();
        ordinals.sort_unstable();
        holds_at_rest(ordinals == range(set).collect::<Vec<_>>(), "D4.10", "the set has other ordinals", set)?;
    }
    Ok(())
}

fn set(spec: &Value) -> Value {
    let mut set = json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": { "replicas": 2 },
        "status": { "currentRevision": "web-1", "updateRevision": "web-2" },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        set["spec"][field] = value.clone();
    }
    set
}

fn owned(name: &str) -> Value {
    json!({
        "name": name, "namespace": NAMESPACE, "uid": format!("u-{name}"),
        "ownerReferences": [{ "name": "web", "uid": "u-web", "controller": true }],
    })
}

fn pod(name: &str, revision: &str, is_ready: bool) -> Value {
    let mut metadata = owned(name);
    metadata["labels"] = json!({ "controller-revision-hash": revision });
    let ready = if is_ready { "True" } else { "False" };
    json!({
        "metadata": metadata,
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

fn story(spec: &Value, pods: impl IntoIterator<Item = Value>) -> Story {
    Story::of([(StatefulSet::RESOURCE, set(spec))].into_iter().chain(pods.into_iter().map(|pod| (PODS, pod))))
}

#[test]
fn pods_are_created_in_the_order_of_their_ordinals() {
    let created = |name: &str, first_is_ready: bool| {
        story(&json!({}), [pod("web-0", "web-2", first_is_ready)]).create(LOOP, &PODS, pod(name, "web-2", false))
    };
    check("D4.1", creates_only_ordinals_of_the_set, created("web-1", true), created("web-2", true));
    check("D4.2", creates_in_order, created("web-1", true), created("web-1", false));
}

#[test]
fn pods_are_deleted_from_the_highest_ordinal_and_above_the_partition() {
    let pods = || ["web-0", "web-1", "web-2", "web-3"].map(|name| pod(name, "web-1", true));
    let spec = json!({ "updateStrategy": { "rollingUpdate": { "partition": 1 } } });
    let deleted = |name: &str| story(&spec, pods()).delete(LOOP, &PODS, name);
    check("D4.3", scales_down_from_the_highest, deleted("web-3"), deleted("web-2"));
    check("D4.4", updates_only_above_the_partition, deleted("web-1"), deleted("web-0"));
    let updated = story(&spec, [pod("web-1", "web-2", true)]).delete(LOOP, &PODS, "web-1");
    check("D4.4", updates_only_above_the_partition, deleted("web-1"), updated);
}

#[test]
fn claims_come_first_and_stay() {
    let claims = PersistentVolumeClaim::RESOURCE;
    let spec = json!({ "volumeClaimTemplates": [{ "metadata": { "name": "data" } }] });
    let claimed = || story(&spec, []).create(LOOP, &claims, json!({ "metadata": owned("data-web-0") }));
    let create = |story: Story| story.create(LOOP, &PODS, pod("web-0", "web-2", false));
    check("D4.6", creates_claims_first, create(claimed()), create(story(&spec, [])));
    check("D4.7", never_deletes_claims, claimed(), claimed().delete(LOOP, &claims, "data-web-0"));
}

#[test]
fn revisions_in_use_stay() {
    let revisions = ControllerRevision::RESOURCE;
    let deleted = |revision: &str| {
        let story = story(&json!({}), [pod("web-0", "web-3", true)]);
        story.create("user", &revisions, json!({ "metadata": owned(revision) })).delete(LOOP, &revisions, revision)
    };
    check("D4.8", keeps_revisions_in_use, deleted("web-4"), deleted("web-3"));
    check("D4.8", keeps_revisions_in_use, deleted("web-4"), deleted("web-1"));
}

#[test]
fn at_rest_the_ordinals_are_those_of_the_set() {
    let pods = |names: &[&str]| story(&json!({}), names.iter().map(|name| pod(name, "web-2", true)));
    check("D4.10", has_its_ordinals_at_rest, pods(&["web-0", "web-1"]), pods(&["web-0", "web-2"]));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
