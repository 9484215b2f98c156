//! Rules that hold for every loop.

use std::collections::BTreeMap;

use kcm_sandbox_apiserver::Verb;
use serde_json::Value;

use super::{Held, holds, number, text, uid};
use crate::history::{Author, Change, History};

/// The writes of all loops.
fn by_loops(history: &History, mut look: impl FnMut(usize, &Change) -> Held) -> Held {
    history.changes.iter().enumerate().try_for_each(|(at, change)| match &change.author {
        Author::Loop { .. } => look(at, change),
        Author::Cluster | Author::User => Ok(()),
    })
}

/// D1.2: the observed generation of an object never falls.
///
/// # Errors
/// The first write that breaks the rule.
pub fn observed_generation_never_falls(history: &History) -> Held {
    by_loops(history, |at, change| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let observed = |object| number(object, "/status/observedGeneration");
        let is_same = uid(before) == uid(after);
        holds(!is_same || observed(before) <= observed(after), "D1.2", "an observed generation falls", at, change)
    })
}

/// D1.3: a deletion carries the uid of the object.
///
/// # Errors
/// The first write that breaks the rule.
pub fn deletions_carry_the_uid(history: &History) -> Held {
    by_loops(history, |at, change| {
        let is_deletion = change.verb == Verb::Delete;
        let carries = !text(&change.sent, "/preconditions/uid").is_empty();
        holds(!is_deletion || carries, "D1.3", "a deletion has no uid as its precondition", at, change)
    })
}

/// D1.11: labels and annotations that a user has set stay until the user removes them.
///
/// # Errors
/// The first write that breaks the rule.
pub fn metadata_of_users_is_kept(history: &History) -> Held {
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
///
/// # Errors
/// The first write that breaks the rule.
pub fn statuses_change_nothing_else(history: &History) -> Held {
    let rest = |object: &Value| {
        let mut object = object.clone();
        object["status"] = Value::Null;
        object["metadata"]["resourceVersion"] = Value::Null;
        object["metadata"]["managedFields"] = Value::Null;
        object["metadata"]["annotations"] = Value::Null;
        object
    };
    by_loops(history, |at, change| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let is_status = change.subresource.as_deref() == Some("status");
        let is_right = !is_status || rest(before) == rest(after);
        holds(is_right, "D1.12", "a request for a status changes more than the status", at, change)
    })
}

#[cfg(test)]
mod tests {
    use kcm_sandbox_apiserver::{PODS, REPLICA_SETS};
    use serde_json::json;

    use super::super::{Story, check};
    use super::*;

    const NAMESPACE: &str = "shop";

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
            story
                .edit("replicaset", &REPLICA_SETS, "web", |set| set["status"]["observedGeneration"] = generation.into())
        };
        check("D1.2", observed_generation_never_falls, observing(2), observing(0));
    }

    #[test]
    fn a_deletion_without_a_uid_is_refused() {
        let deleting = || Story::of([(PODS, pod(&owned_by("web")))]).delete("replicaset", &PODS, "web-1");
        check("D1.3", deletions_carry_the_uid, deleting(), deleting().sent(json!({})));
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
}
