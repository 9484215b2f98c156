//! The rules of Deployments for every history.

use kcm_simulation::{History, Invariant, Objects};
use kcm_testing::sandbox::{DEPLOYMENTS, PODS, REPLICA_SETS};
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::invariants::{
    Held, Story, check, controlled, count, has_ended, holds, holds_at_rest, is_terminating, number, of, seen_owner,
    text, uid, writes_of,
};

const LOOP: &str = "deployment";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[
    keeps_the_surge,
    keeps_what_must_be_available,
    has_one_set_for_each_template,
    recreates_when_no_old_pod_is_left,
    does_not_roll_out_while_paused,
    keeps_the_history,
    numbers_revisions_upwards,
    has_all_replicas_in_the_new_set_at_rest,
];

/// A number, or percent of `of` rounded up or down.
fn int_or_percent(value: Option<&Value>, of: i64, rounds_up: bool) -> i64 {
    let percent = |text: &str| text.strip_suffix('%')?.parse::<i64>().ok();
    match value {
        Some(Value::String(text)) => {
            percent(text).map_or(0, |percent| (percent * of + if rounds_up { 99 } else { 0 }) / 100)
        }
        Some(value) => value.as_i64().unwrap_or(0),
        None => 0,
    }
}

fn max_surge(deployment: &Value) -> i64 {
    let value = deployment.pointer("/spec/strategy/rollingUpdate/maxSurge");
    int_or_percent(value, number(deployment, "/spec/replicas"), true)
}

fn max_unavailable(deployment: &Value) -> i64 {
    let replicas = number(deployment, "/spec/replicas");
    let value = deployment.pointer("/spec/strategy/rollingUpdate/maxUnavailable");
    let most = int_or_percent(value, replicas, false);
    if most == 0 && max_surge(deployment) == 0 { 1 } else { most.min(replicas) }
}

fn template(object: &Value) -> Value {
    let mut template = object["spec"]["template"].clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH);
    }
    template
}

/// The sets of a deployment that are not terminating, without the set of that uid.
fn others<'a>(objects: &'a Objects, deployment: &'a str, without: &'a str) -> impl Iterator<Item = &'a Value> {
    controlled(objects, &REPLICA_SETS, deployment).filter(move |set| !is_terminating(set) && uid(set) != without)
}

/// Calls `look` for each write of a set, with the deployment that the reconcile has seen.
fn writes_of_sets(
    history: &History,
    mut look: impl FnMut(usize, &kcm_simulation::Change, &Objects, &Value) -> Held,
) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let set = change.after.as_deref().or(change.before.as_deref()).filter(|_| change.resource == REPLICA_SETS);
        let Some(deployment) = set.and_then(|set| seen_owner(history, at, &DEPLOYMENTS, set)) else { return Ok(()) };
        look(at, change, objects, &deployment)
    })
}

fn replicas(set: Option<&Value>) -> i64 {
    set.map_or(0, |set| number(set, "/spec/replicas"))
}

fn is_recreate(deployment: &Value) -> bool {
    text(deployment, "/spec/strategy/type") == "Recreate"
}

/// D3.1: a set is raised only if all sets together then want no more than the deployment and its surge.
fn keeps_the_surge(history: &History) -> Held {
    writes_of_sets(history, |at, change, objects, deployment| {
        let (before, after) = (replicas(change.before.as_deref()), replicas(change.after.as_deref()));
        let own = change.after.as_deref().map(uid).unwrap_or_default();
        let all = after + others(objects, uid(deployment), own).map(|set| replicas(Some(set))).sum::<i64>();
        let most =
            number(deployment, "/spec/replicas") + if is_recreate(deployment) { 0 } else { max_surge(deployment) };
        holds(after <= before || all <= most, "D3.1", "sets together want more than the surge allows", at, change)
    })
}

/// D3.2: a set is lowered only if as many pods stay available as must be, or as were.
fn keeps_what_must_be_available(history: &History) -> Held {
    writes_of_sets(history, |at, change, objects, deployment| {
        let (Some(before), Some(after)) = (change.before.as_deref(), change.after.as_deref()) else { return Ok(()) };
        if is_recreate(deployment) || replicas(Some(after)) >= replicas(Some(before)) {
            return Ok(());
        }
        let available = |set: &Value| number(set, "/status/availableReplicas").min(replicas(Some(set)));
        let elsewhere: i64 = others(objects, uid(deployment), uid(after)).map(available).sum();
        // The status of the set stays until its own controller has acted.
        let (was, will) = (elsewhere + available(before), elsewhere + available(after));
        let least = number(deployment, "/spec/replicas") - max_unavailable(deployment);
        // A scale-down of the deployment itself takes what is too many.
        holds(will >= least.min(was), "D3.2", "fewer pods stay available than must", at, change)
    })
}

/// D3.3: a deployment has one live set for each template.
fn has_one_set_for_each_template(history: &History) -> Held {
    writes_of_sets(history, |at, change, objects, deployment| {
        let Some(created) = change.after.as_deref().filter(|_| change.creates()) else { return Ok(()) };
        let mut twins = others(objects, uid(deployment), uid(created)).filter(|set| template(set) == template(created));
        holds(twins.next().is_none(), "D3.3", "a second set of a template is created", at, change)
    })
}

/// D3.4: `Recreate` creates or raises the new set only when no pod of an older set is left.
fn recreates_when_no_old_pod_is_left(history: &History) -> Held {
    writes_of_sets(history, |at, change, objects, deployment| {
        let Some(after) = change.after.as_deref().filter(|_| is_recreate(deployment)) else { return Ok(()) };
        let is_raised = replicas(Some(after)) > replicas(change.before.as_deref());
        if !is_raised || template(after) != template(deployment) {
            return Ok(());
        }
        let mut old = others(objects, uid(deployment), uid(after)).flat_map(|set| controlled(objects, &PODS, uid(set)));
        holds(old.all(has_ended), "D3.4", "new pods are wanted while old ones are left", at, change)
    })
}

/// D3.5: while a deployment is paused, no set is created and no template changes.
fn does_not_roll_out_while_paused(history: &History) -> Held {
    writes_of_sets(history, |at, change, _, deployment| {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let is_rollout = change.creates() || before.map(template) != after.map(template) && after.is_some();
        let is_paused = deployment["spec"]["paused"] == true;
        holds(!is_paused || !is_rollout, "D3.5", "a paused deployment rolls out", at, change)
    })
}

/// D3.6: a set is deleted only if it wants and has no pods, and as many older ones are kept as the limit says.
fn keeps_the_history(history: &History) -> Held {
    writes_of_sets(history, |at, change, objects, deployment| {
        let Some(set) = change.before.as_deref().filter(|_| change.verb == kcm_testing::sandbox::Verb::Delete) else {
            return Ok(());
        };
        let is_idle = replicas(Some(set)) == 0
            && number(set, "/status/replicas") == 0
            && number(set, "/metadata/generation") <= number(set, "/status/observedGeneration");
        let old = others(objects, uid(deployment), uid(set)).filter(|other| template(other) != template(deployment));
        let limit = deployment.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64).unwrap_or(10);
        holds(is_idle && count(old) >= limit, "D3.6", "a set is deleted that is kept", at, change)
    })
}

/// D3.7: a new set has a higher revision than all others.
fn numbers_revisions_upwards(history: &History) -> Held {
    let revision = |set: &Value| text(set, REVISION).parse::<i64>().unwrap_or(0);
    writes_of_sets(history, |at, change, objects, deployment| {
        let Some(created) = change.after.as_deref().filter(|_| change.creates()) else { return Ok(()) };
        let highest = others(objects, uid(deployment), uid(created)).map(revision).max().unwrap_or(0);
        holds(revision(created) > highest, "D3.7", "the revision of a new set is not the highest", at, change)
    })
}

/// D3.8: at rest the new set has all replicas, and the others none.
fn has_all_replicas_in_the_new_set_at_rest(history: &History) -> Held {
    let end = history.end();
    for deployment in of(&end, &DEPLOYMENTS).filter(|one| !is_terminating(one) && one["spec"]["paused"] != true) {
        for set in others(&end, uid(deployment), "") {
            let is_new = template(set) == template(deployment);
            let wanted = if is_new { number(deployment, "/spec/replicas") } else { 0 };
            holds_at_rest(replicas(Some(set)) == wanted, "D3.8", "a set has not its share of the replicas", set)?;
        }
    }
    Ok(())
}

fn deployment(strategy: &Value) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": { "replicas": 4, "strategy": strategy, "revisionHistoryLimit": 1, "template": template_of(&json!({}), "new") },
    })
}

fn template_of(labels: &Value, image: &str) -> Value {
    let mut template = json!({ "metadata": { "labels": labels }, "spec": { "image": image } });
    template["metadata"]["labels"]["app"] = "web".into();
    template
}

fn rolling() -> Value {
    deployment(&json!({ "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 1 } }))
}

fn set(image: &str, replicas: i64) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{image}"), "namespace": NAMESPACE, "uid": format!("u-{image}"),
            "annotations": { "deployment.kubernetes.io/revision": if image == "new" { "7" } else { "3" } },
            "ownerReferences": [{ "name": "web", "uid": "u-web", "controller": true }],
        },
        "spec": { "replicas": replicas, "template": template_of(&json!({ HASH: image }), image) },
        "status": { "replicas": replicas, "availableReplicas": replicas },
    })
}

fn story(deployment: Value, sets: impl IntoIterator<Item = Value>) -> Story {
    Story::of([(DEPLOYMENTS, deployment)].into_iter().chain(sets.into_iter().map(|set| (REPLICA_SETS, set))))
}

fn scaled(story: Story, image: &str, replicas: i64) -> Story {
    story.edit(LOOP, &REPLICA_SETS, &format!("web-{image}"), |set| set["spec"]["replicas"] = replicas.into())
}

#[test]
fn surge_and_availability_are_kept() {
    let sets = || story(rolling(), [set("old", 4), set("new", 0)]);
    check("D3.1", keeps_the_surge, scaled(sets(), "new", 1), scaled(sets(), "new", 2));
    check("D3.2", keeps_what_must_be_available, scaled(sets(), "old", 3), scaled(sets(), "old", 2));
    let mut unavailable = set("old", 4);
    unavailable["status"]["availableReplicas"] = 2.into();
    let broken = || story(rolling(), [unavailable.clone(), set("new", 0)]);
    // Of four pods two are available: two others may go.
    check("D3.2", keeps_what_must_be_available, scaled(broken(), "old", 2), scaled(broken(), "old", 1));
}

#[test]
fn a_template_has_one_set_and_the_highest_revision() {
    let creating =
        |existing: &str, created: Value| story(rolling(), [set(existing, 1)]).create(LOOP, &REPLICA_SETS, created);
    let mut twin = set("new", 1);
    twin["metadata"]["uid"] = "u-twin".into();
    twin["metadata"]["name"] = "web-twin".into();
    check("D3.3", has_one_set_for_each_template, creating("old", set("new", 1)), creating("new", twin));
    let mut low = set("new", 1);
    low["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "3".into();
    check("D3.7", numbers_revisions_upwards, creating("old", set("new", 1)), creating("old", low));
}

#[test]
fn recreate_waits_for_the_last_old_pod() {
    let creating = |phase: &str| {
        let pod = json!({
            "metadata": {
                "name": "web-old-1", "namespace": NAMESPACE, "uid": "u-1",
                "deletionTimestamp": "2026-01-02T12:00:00Z",
                "ownerReferences": [{ "name": "web-old", "uid": "u-old", "controller": true }],
            },
            "status": { "phase": phase },
        });
        let sets =
            [(DEPLOYMENTS, deployment(&json!({ "type": "Recreate" }))), (REPLICA_SETS, set("old", 0)), (PODS, pod)];
        Story::of(sets).create(LOOP, &REPLICA_SETS, set("new", 4))
    };
    check("D3.4", recreates_when_no_old_pod_is_left, creating("Failed"), creating("Running"));
}

#[test]
fn a_paused_deployment_is_only_scaled() {
    let mut paused = rolling();
    paused["spec"]["paused"] = true.into();
    let sets = || story(paused.clone(), [set("old", 4)]);
    check("D3.5", does_not_roll_out_while_paused, scaled(sets(), "old", 5), {
        sets().create(LOOP, &REPLICA_SETS, set("new", 1))
    });
}

#[test]
fn only_idle_sets_beyond_the_limit_are_deleted() {
    let sets = |replicas: i64, others: &[&str]| {
        let others = others.iter().map(|image| set(image, 0));
        story(rolling(), [set("oldest", replicas)].into_iter().chain(others)).delete(LOOP, &REPLICA_SETS, "web-oldest")
    };
    check("D3.6", keeps_the_history, sets(0, &["old", "new"]), sets(1, &["old", "new"]));
    check("D3.6", keeps_the_history, sets(0, &["old", "new"]), sets(0, &["new"]));
}

#[test]
fn at_rest_the_new_set_has_all() {
    let sets = |old, new| story(rolling(), [set("old", old), set("new", new)]);
    check("D3.8", has_all_replicas_in_the_new_set_at_rest, sets(0, 4), sets(1, 4));
    check("D3.8", has_all_replicas_in_the_new_set_at_rest, sets(0, 4), sets(0, 3));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
