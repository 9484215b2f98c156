//! Rules that hold for every history of the controllers, under every schedule.
//!
//! Each is a plain function in the folder of its controller, with a history that it accepts and a history that it refuses. Bounds
//! come from the object that the reconcile has seen, and counts from the store.

pub(crate) mod every_loop;
pub(crate) mod replicas;
mod story;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_simulation::{Change, History, Invariant, Objects, Violation};
use serde_json::Value;

pub(crate) use story::Story;

/// The result of a rule.
pub(crate) type Held = Result<(), Violation>;

/// Checks that a rule accepts a history and refuses another.
#[track_caller]
pub(crate) fn check(rule: &str, invariant: Invariant, accepted: Story, refused: Story) {
    assert_eq!(invariant(&accepted.history()), Ok(()), "{rule} must accept");
    let refused = invariant(&refused.history()).expect_err(rule);
    assert_eq!(refused.rule, rule, "{refused}");
}

/// Calls `look` for each write of one loop, with the objects before it.
pub(crate) fn writes_of(history: &History, name: &str, mut look: impl FnMut(usize, &Change, &Objects) -> Held) -> Held {
    history.each(|at, change, objects| if change.author.is_loop(name) { look(at, change, objects) } else { Ok(()) })
}

/// Fails with a violation at a change, unless `holds`.
pub(crate) fn holds(holds: bool, rule: &str, what: &str, at: usize, change: &Change) -> Held {
    if holds { Ok(()) } else { Err(Violation::new(rule, what).detail(change.key.to_string()).at(at)) }
}

/// Fails with a violation at the end, unless `holds`.
pub(crate) fn holds_at_rest(holds: bool, rule: &str, what: &str, object: &Value) -> Held {
    if holds { Ok(()) } else { Err(Violation::new(rule, what).detail(name(object))) }
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(crate) fn count<T>(items: impl Iterator<Item = T>) -> i64 {
    items.fold(0, |count, _| count + 1)
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn key_of(object: &Value) -> ObjectKey {
    match text(object, "/metadata/namespace") {
        "" => ObjectKey::cluster_scoped(name(object)),
        namespace => ObjectKey::namespaced(namespace, name(object)),
    }
}

/// The controller reference of an object.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
}

pub(crate) fn is_controlled_by(object: &Value, of: &str) -> bool {
    controller(object).is_some_and(|owner| owner["uid"] == of)
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Returns `true` if all containers of a pod have ended.
pub(crate) fn has_ended(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

pub(crate) fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

pub(crate) fn has_condition(object: &Value, type_: &str) -> bool {
    items(object, "/status/conditions").iter().any(|one| one["type"] == type_ && one["status"] == "True")
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    is_active(pod) && has_condition(pod, "Ready")
}

pub(crate) fn of<'a>(objects: &'a Objects, resource: &Resource) -> impl Iterator<Item = &'a Value> + use<'a> {
    objects.get(resource).into_iter().flat_map(|objects| objects.values().map(|object| &**object))
}

pub(crate) fn controlled<'a>(
    objects: &'a Objects,
    resource: &Resource,
    owner: &'a str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    of(objects, resource).filter(move |object| is_controlled_by(object, owner))
}

pub(crate) fn find<'a>(objects: &'a Objects, resource: &Resource, key: &ObjectKey) -> Option<&'a Value> {
    objects.get(resource)?.get(key).map(|object| &**object)
}

/// The owner of an object as the reconcile that wrote `change` has seen it: the object of that resource to which the
/// controller reference of `object` leads. `None` if it was another object of that name.
pub(crate) fn seen_owner(history: &History, at: usize, resource: &Resource, object: &Value) -> Option<Value> {
    let owner = controller(object)?;
    let key = ObjectKey::namespaced(text(object, "/metadata/namespace"), owner["name"].as_str()?);
    let seen = history.seen_by(at, resource, &key)?;
    (uid(&seen) == owner["uid"]).then(|| Value::clone(&seen))
}
