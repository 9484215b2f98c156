//! The rules of ReplicaSets and ReplicationControllers, which own as many pods as they want.

use std::collections::BTreeSet;

use kcm_framework::api::Resource;
use kcm_simulation::History;
use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use super::{
    Held, Story, check, controlled, count, holds, holds_at_rest, is_active, is_controlled_by, is_terminating, number,
    of, seen_owner, uid, writes_of,
};
use crate::tests::cluster::NAMESPACE;

/// A pod is created only if fewer are active than the set wants, as its reconcile saw it, and no pod for a set that is
/// terminating: `D2.1` and `D2.4`.
pub(crate) fn creates_no_more_than_wanted(history: &History, name: &str, sets: &Resource) -> Held {
    writes_of(history, name, |at, change, objects| {
        let Some(pod) = change.after.as_deref().filter(|_| change.creates() && change.resource == PODS) else {
            return Ok(());
        };
        let Some(set) = seen_owner(history, at, sets, pod) else {
            return holds(false, "D2.1", "a pod is created for a set that the reconcile has not seen", at, change);
        };
        holds(!is_terminating(&set), "D2.4", "a pod is created for a terminating set", at, change)?;
        let active = count(controlled(objects, &PODS, uid(&set)).filter(|pod| is_active(pod)));
        holds(active < number(&set, "/spec/replicas"), "D2.1", "a pod too many is created", at, change)
    })
}

/// A pod is deleted only if more were ever active than the set wants, not counting those that the loop has deleted
/// before: `D2.2`. The reconcile may not have seen that others have died.
pub(crate) fn deletes_only_surplus_pods(history: &History, name: &str, sets: &Resource) -> Held {
    let mut deleted = BTreeSet::new();
    let mut known = BTreeSet::new();
    history.each(|at, change, objects| {
        for pod in of(objects, &PODS).filter(|pod| is_active(pod)) {
            known.insert(uid(pod).to_owned());
        }
        let ends = change.after.as_deref().is_none_or(is_terminating);
        let before = change.before.as_deref().filter(|before| is_active(before));
        let Some(pod) = before.filter(|_| ends && change.resource == PODS && change.author.is_loop(name)) else {
            return Ok(());
        };
        let Some(set) = seen_owner(history, at, sets, pod) else { return Ok(()) };
        let owned = |uid_of_pod: &&String| {
            let of_pod = |object: &Value| uid(object) == **uid_of_pod && is_controlled_by(object, uid(&set));
            history.changes[..=at].iter().any(|change| {
                change.before.as_deref().is_some_and(of_pod) || change.after.as_deref().is_some_and(of_pod)
            }) || of(&history.start, &PODS).any(of_pod)
        };
        let candidates = count(known.difference(&deleted).filter(owned));
        holds(candidates > number(&set, "/spec/replicas"), "D2.2", "a pod that is wanted is deleted", at, change)?;
        deleted.insert(uid(pod).to_owned());
        Ok(())
    })
}

/// At rest as many pods are active as wanted, and the status says so: `D2.5`.
pub(crate) fn has_as_many_as_wanted_at_rest(history: &History, sets: &Resource) -> Held {
    let end = history.end();
    for set in of(&end, sets).filter(|set| !is_terminating(set)) {
        let active = count(controlled(&end, &PODS, uid(set)).filter(|pod| is_active(pod)));
        holds_at_rest(
            active == number(set, "/spec/replicas"),
            "D2.5",
            "the number of pods is not the wanted one",
            set,
        )?;
        holds_at_rest(active == number(set, "/status/replicas"), "D2.5", "the status has another number of pods", set)?;
    }
    Ok(())
}

fn set(replicas: i64) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": { "replicas": replicas },
        "status": { "replicas": 1 },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("u-{name}"),
            "ownerReferences": [{ "name": "web", "uid": "u-web", "controller": true }],
        },
        "status": { "phase": "Running" },
    })
}

/// Histories that the rules of a loop of that name accept and refuse, for the tests of its controller.
pub(crate) fn check_rules(name: &str, sets: &Resource, rules: [kcm_simulation::Invariant; 3]) {
    let [creates, deletes, rest] = rules;
    let with = |replicas: i64| Story::of([(sets.clone(), set(replicas)), (PODS, pod("a"))]);
    let adds = |replicas: i64| with(replicas).create(name, &PODS, pod("b"));
    check("D2.1", creates, adds(2), adds(1));
    // The reconcile saw a set that wanted more.
    let lowered = || with(2).edit("user", sets, "web", |set| set["spec"]["replicas"] = 1.into());
    check("D2.1", creates, lowered().create(name, &PODS, pod("b")).seeing_the_start(), {
        lowered().create(name, &PODS, pod("b"))
    });
    let terminating = |set: &mut Value| set["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
    check("D2.4", creates, adds(2), with(2).edit("user", sets, "web", terminating).create(name, &PODS, pod("b")));
    let surplus = || Story::of([(sets.clone(), set(1)), (PODS, pod("a")), (PODS, pod("b"))]);
    check("D2.2", deletes, surplus().delete(name, &PODS, "a"), {
        surplus().delete(name, &PODS, "a").delete(name, &PODS, "b")
    });
    // Another pod has died, which the cache need not show.
    let died = || surplus().delete("user", &PODS, "b");
    check("D2.2", deletes, died().delete(name, &PODS, "a"), with(1).delete(name, &PODS, "a"));
    check("D2.5", rest, with(1), with(2));
}
