//! Parts of invariants: readers of objects, walks through a history, histories that are written down by hand, and rules
//! that hold for every loop.
//!
//! A test of an invariant gives a history that it accepts, and a history that it refuses:
//!
//! ```
//! use kcm_sandbox_apiserver::PODS;
//! use kcm_simulation::History;
//! use kcm_simulation::rules::{Held, Story, check, holds, writes_of};
//! use serde_json::json;
//!
//! fn deletes_no_pod(history: &History) -> Held {
//!     writes_of(history, "counter", |at, change, _| holds(!change.removes(), "C1", "a pod is deleted", at, change))
//! }
//!
//! let pod = || json!({ "metadata": { "namespace": "shop", "name": "web-1", "uid": "u-1" } });
//! let created = || Story::default().create("counter", &PODS, pod());
//! check("C1", deletes_no_pod, created(), created().delete("counter", &PODS, "web-1"));
//! ```

mod every_loop;
mod story;

use kcm_sandbox_apiserver::{ObjectKey, Resource};
use serde_json::Value;

use crate::history::{Change, History, Objects};
use crate::violation::{Invariant, Violation};

pub use every_loop::{
    deletions_carry_the_uid, metadata_of_users_is_kept, observed_generation_never_falls, statuses_change_nothing_else,
};
pub use story::Story;

/// The rules of every loop that deletes single objects.
pub const EVERY_LOOP: &[Invariant] = &[
    deletions_carry_the_uid,
    metadata_of_users_is_kept,
    observed_generation_never_falls,
    statuses_change_nothing_else,
];

/// The result of a rule.
pub type Held = Result<(), Violation>;

/// Checks that a rule accepts a history and refuses another.
///
/// # Panics
/// If the rule refuses the first history or accepts the second.
#[track_caller]
pub fn check(rule: &str, invariant: Invariant, accepted: Story, refused: Story) {
    assert_eq!(invariant(&accepted.history()), Ok(()), "{rule} must accept");
    let refused = invariant(&refused.history()).expect_err(rule);
    assert_eq!(refused.rule, rule, "{refused}");
}

/// Calls `look` for each write of one loop, with the objects before it.
pub fn writes_of(history: &History, name: &str, mut look: impl FnMut(usize, &Change, &Objects) -> Held) -> Held {
    history.each(|at, change, objects| if change.author.is_loop(name) { look(at, change, objects) } else { Ok(()) })
}

/// Fails with a violation at a change, unless `holds`.
pub fn holds(holds: bool, rule: &str, what: &str, at: usize, change: &Change) -> Held {
    if holds { Ok(()) } else { Err(Violation::new(rule, what).detail(change.key.to_string()).at(at)) }
}

/// Fails with a violation at the end, unless `holds`.
pub fn holds_at_rest(holds: bool, rule: &str, what: &str, object: &Value) -> Held {
    if holds { Ok(()) } else { Err(Violation::new(rule, what).detail(name(object))) }
}

/// Returns the string at a JSON pointer, or an empty string.
#[must_use]
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number at a JSON pointer, or 0.
#[must_use]
pub fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns the number of items.
#[must_use]
pub fn count<T>(items: impl Iterator<Item = T>) -> i64 {
    items.fold(0, |count, _| count + 1)
}

/// Returns the name of an object.
#[must_use]
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Returns the uid of an object.
#[must_use]
pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// Returns the array at a JSON pointer, or an empty array.
#[must_use]
pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the namespace and name of an object.
#[must_use]
pub fn key_of(object: &Value) -> ObjectKey {
    match text(object, "/metadata/namespace") {
        "" => ObjectKey::cluster_scoped(name(object)),
        namespace => ObjectKey::namespaced(namespace, name(object)),
    }
}

/// Returns the controller reference of an object.
#[must_use]
pub fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
}

/// Returns `true` if the controller reference of an object has this uid.
#[must_use]
pub fn is_controlled_by(object: &Value, of: &str) -> bool {
    controller(object).is_some_and(|owner| owner["uid"] == of)
}

/// Returns `true` if an object has a deletion time.
#[must_use]
pub fn is_terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Returns `true` if all containers of a pod have ended.
#[must_use]
pub fn has_ended(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

/// Returns `true` if a pod has neither ended nor a deletion time.
#[must_use]
pub fn is_active(pod: &Value) -> bool {
    !has_ended(pod) && !is_terminating(pod)
}

/// Returns `true` if a condition of this type is true.
#[must_use]
pub fn has_condition(object: &Value, type_: &str) -> bool {
    items(object, "/status/conditions").iter().any(|one| one["type"] == type_ && one["status"] == "True")
}

/// Returns `true` if a pod is active and ready.
#[must_use]
pub fn is_ready(pod: &Value) -> bool {
    is_active(pod) && has_condition(pod, "Ready")
}

/// Returns all objects of a resource.
pub fn of<'a>(objects: &'a Objects, resource: &Resource) -> impl Iterator<Item = &'a Value> + use<'a> {
    objects.get(resource).into_iter().flat_map(|objects| objects.values().map(|object| &**object))
}

/// Returns the objects of a resource whose controller reference has this uid.
pub fn controlled<'a>(
    objects: &'a Objects,
    resource: &Resource,
    owner: &'a str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    of(objects, resource).filter(move |object| is_controlled_by(object, owner))
}

/// Returns the object of a key.
#[must_use]
pub fn find<'a>(objects: &'a Objects, resource: &Resource, key: &ObjectKey) -> Option<&'a Value> {
    objects.get(resource)?.get(key).map(|object| &**object)
}

/// Returns the controller of `object` in the caches of the reconcile that wrote the change. `None` if these held another
/// object of that name.
#[must_use]
pub fn seen_owner(history: &History, at: usize, resource: &Resource, object: &Value) -> Option<Value> {
    let owner = controller(object)?;
    let key = ObjectKey::namespaced(text(object, "/metadata/namespace"), owner["name"].as_str()?);
    let seen = history.seen_by(at, resource, &key)?;
    (uid(&seen) == owner["uid"]).then(|| Value::clone(&seen))
}
