//! The rules of Namespaces for every history.

use kcm_framework::api::ObjectKey;
use kcm_simulation::rules::{Held, Story, check, find, holds, is_terminating, items, of, text, writes_of};
use kcm_simulation::{History, Invariant, Objects};
use kcm_testing::sandbox::{CONFIG_MAPS, NAMESPACES, PODS, Verb};
use serde_json::{Value, json};

use crate::tests::scenarios::{NAMESPACE, object};

const LOOP: &str = "namespace";

/// The rules, for scenarios.
pub(super) const RULES: &[Invariant] =
    &[is_finalized_only_when_empty, deletes_only_in_a_terminating_namespace, deletes_pods_first];

fn is_finalized(namespace: &Value) -> bool {
    !items(namespace, "/spec/finalizers").iter().any(|finalizer| finalizer == "kubernetes")
}

/// The objects of all resources in a namespace.
fn content<'a>(objects: &'a Objects, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
    let of_all = objects.keys().flat_map(|resource| of(objects, resource));
    of_all.filter(move |object| text(object, "/metadata/namespace") == namespace)
}

/// D13.1: the finalizer leaves only when no object of the namespace is left.
fn is_finalized_only_when_empty(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(before) = change.before.as_deref().filter(|_| change.resource == NAMESPACES) else { return Ok(()) };
        let leaves = !is_finalized(before) && change.after.as_deref().is_none_or(is_finalized);
        let is_empty = content(objects, change.key.name()).next().is_none();
        holds(!leaves || is_empty, "D13.1", "a namespace is finalized that has objects", at, change)
    })
}

/// D13.2: objects are deleted only while their namespace is terminating, and only objects that existed with it.
fn deletes_only_in_a_terminating_namespace(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(namespace) = change.key.namespace().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        let found = find(objects, &NAMESPACES, &ObjectKey::cluster_scoped(namespace));
        holds(found.is_some_and(is_terminating), "D13.2", "an object of a live namespace is deleted", at, change)
    })
}

/// D13.2: other objects are deleted after the last pod.
fn deletes_pods_first(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let Some(namespace) = change.key.namespace().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        let has_pods = of(objects, &PODS).any(|pod| text(pod, "/metadata/namespace") == namespace);
        let is_right = change.resource == PODS || !has_pods;
        holds(is_right, "D13.2", "an object is deleted before the last pod", at, change)
    })
}

fn namespace(is_terminating: bool) -> Value {
    let mut namespace =
        json!({ "metadata": { "name": NAMESPACE, "uid": "u-shop" }, "spec": { "finalizers": ["kubernetes"] } });
    if is_terminating {
        namespace["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
    }
    namespace
}

fn story(is_terminating: bool, pods: &[&str]) -> Story {
    let pods = pods.iter().map(|name| (PODS, object(&PODS, name)));
    Story::of(pods.chain([(NAMESPACES, namespace(is_terminating)), (CONFIG_MAPS, object(&CONFIG_MAPS, "map"))]))
}

#[test]
fn a_namespace_is_emptied_and_then_finalized() {
    let finalized = |story: Story| {
        story.edit(LOOP, &NAMESPACES, NAMESPACE, |namespace| namespace["spec"]["finalizers"] = json!([]))
    };
    let emptied = || story(true, &[]).delete(LOOP, &CONFIG_MAPS, "map");
    check("D13.1", is_finalized_only_when_empty, finalized(emptied()), finalized(story(true, &[])));
    let deleted = |is_terminating| story(is_terminating, &[]).delete(LOOP, &CONFIG_MAPS, "map");
    check("D13.2", deletes_only_in_a_terminating_namespace, deleted(true), deleted(false));
}

#[test]
fn pods_are_deleted_first() {
    let begun = || story(true, &["web"]);
    let in_order = begun().delete(LOOP, &PODS, "web").delete(LOOP, &CONFIG_MAPS, "map");
    check("D13.2", deletes_pods_first, in_order, begun().delete(LOOP, &CONFIG_MAPS, "map"));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
