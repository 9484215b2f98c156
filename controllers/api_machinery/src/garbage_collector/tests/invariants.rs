//! The rules of the garbage collector for every history.

use kcm_simulation::rules::{
    Held, Story, check, deletions_carry_the_uid, holds, holds_at_rest, is_terminating, items, of, text, uid,
};
use kcm_simulation::{Author, Change, History, Invariant, Objects};
use kcm_testing::sandbox::{CONFIG_MAPS, Verb};
use serde_json::{Value, json};

use crate::tests::scenarios::object;

const LOOPS: [&str; 2] = ["garbage_collector_attempt_to_delete", "garbage_collector_attempt_to_orphan"];
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The rules, for scenarios.
pub(super) const RULES: &[Invariant] = &[
    deletes_only_without_owners,
    deletions_carry_the_uid,
    deletions_carry_the_version,
    finalizers_leave_after_the_dependents,
    references_to_live_owners_stay,
    deletes_all_orphans_at_rest,
];

fn writes(history: &History, mut look: impl FnMut(usize, &Change, &Objects) -> Held) -> Held {
    history.each(|at, change, objects| match &change.author {
        Author::Loop { name, .. } if LOOPS.contains(&name.as_str()) => look(at, change, objects),
        Author::Loop { .. } | Author::Cluster | Author::User => Ok(()),
    })
}

fn all(objects: &Objects) -> impl Iterator<Item = &Value> {
    objects.keys().flat_map(|resource| of(objects, resource))
}

fn owners(object: &Value) -> &[Value] {
    items(object, "/metadata/ownerReferences")
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    items(object, "/metadata/finalizers").iter().any(|one| one == finalizer)
}

/// D12.1 and D12.2: an object is deleted only if each of its owners does not exist, or waits for it. A deletion by an owner
/// that waits needs no owner that is absent.
fn deletes_only_without_owners(history: &History) -> Held {
    writes(history, |at, change, objects| {
        let Some(before) = change.before.as_deref().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        let waits = |owner: &Value| is_terminating(owner) && has_finalizer(owner, FOREGROUND);
        let is_solid =
            |reference: &Value| all(objects).any(|owner| uid(owner) == text(reference, "/uid") && !waits(owner));
        let is_right = !owners(before).is_empty() && !owners(before).iter().any(is_solid);
        holds(is_right, "D12.1", "an object is deleted that has an owner", at, change)
    })
}

/// D12.1: a deletion carries the resource version.
fn deletions_carry_the_version(history: &History) -> Held {
    writes(history, |at, change, _| {
        let carries = !text(&change.sent, "/preconditions/resourceVersion").is_empty();
        let is_deletion = change.verb == Verb::Delete;
        holds(!is_deletion || carries, "D12.1", "a deletion has no version as its precondition", at, change)
    })
}

/// D12.3: a finalizer of the deletion policy leaves only if no dependent that the caches have shown needs it.
fn finalizers_leave_after_the_dependents(history: &History) -> Held {
    writes(history, |at, change, objects| {
        let Some(before) = change.before.as_deref().filter(|_| change.verb != Verb::Delete) else { return Ok(()) };
        let leaves = |finalizer| {
            has_finalizer(before, finalizer) && !change.after.as_deref().is_some_and(|it| has_finalizer(it, finalizer))
        };
        for finalizer in [FOREGROUND, ORPHAN].into_iter().filter(|finalizer| leaves(finalizer)) {
            let needs = |object: &Value| {
                let mut of_owner = owners(object).iter().filter(|owner| text(owner, "/uid") == uid(before));
                of_owner.any(|owner| finalizer == ORPHAN || owner["blockOwnerDeletion"] == true)
            };
            let needed = objects.iter().any(|(resource, objects)| {
                objects.iter().filter(|(_, object)| needs(object)).any(|(key, object)| {
                    let seen = history.seen_by(at, resource, key);
                    seen.is_some_and(|seen| uid(&seen) == uid(object) && needs(&seen))
                })
            });
            holds(!needed, "D12.3", "a finalizer leaves before the dependents", at, change)?;
        }
        Ok(())
    })
}

/// D12.2: a reference to an owner that exists and does not wait is removed only to orphan the dependent.
fn references_to_live_owners_stay(history: &History) -> Held {
    writes(history, |at, change, objects| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let removed = owners(before).iter().filter(|one| !owners(after).iter().any(|kept| kept["uid"] == one["uid"]));
        let is_live = |owner: &Value| !is_terminating(owner);
        let mut live =
            removed.filter(|one| all(objects).any(|owner| uid(owner) == text(one, "/uid") && is_live(owner)));
        holds(live.next().is_none(), "D12.2", "a reference to a live owner is removed", at, change)
    })
}

/// D12.5: at rest, no object has only owners that do not exist.
fn deletes_all_orphans_at_rest(history: &History) -> Held {
    let end = history.end();
    for object in all(&end).filter(|object| !owners(object).is_empty()) {
        let has_owner = owners(object).iter().any(|one| all(&end).any(|owner| uid(owner) == text(one, "/uid")));
        holds_at_rest(has_owner, "D12.5", "an object without owners is left", object)?;
    }
    Ok(())
}

fn map(name: &str, owners: &[&str]) -> Value {
    let mut map = object(&CONFIG_MAPS, name);
    let reference = |owner: &&str| json!({ "name": owner, "uid": format!("u-{owner}"), "blockOwnerDeletion": true });
    map["metadata"]["uid"] = format!("u-{name}").into();
    map["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    map
}

fn terminating(mut map: Value, finalizer: &str) -> Value {
    map["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z".into();
    map["metadata"]["finalizers"] = json!([finalizer]);
    map
}

fn story(maps: impl IntoIterator<Item = Value>) -> Story {
    Story::of(maps.into_iter().map(|map| (CONFIG_MAPS, map)))
}

fn deleted(story: Story, of: &str) -> Story {
    let preconditions = json!({ "preconditions": { "uid": format!("u-{of}"), "resourceVersion": "1" } });
    story.delete(LOOPS[0], &CONFIG_MAPS, of).sent(preconditions)
}

#[test]
fn an_object_is_deleted_with_its_last_owner() {
    let ghost = || deleted(story([map("a", &["ghost"])]), "a");
    let owned = deleted(story([map("a", &["ghost", "b"]), map("b", &[])]), "a");
    check("D12.1", deletes_only_without_owners, ghost(), owned);
    let waits = deleted(story([map("a", &["b"]), terminating(map("b", &[]), FOREGROUND)]), "a");
    check("D12.1", deletes_only_without_owners, waits, deleted(story([map("a", &[])]), "a"));
    let unguarded = ghost().sent(json!({ "preconditions": { "uid": "u-a" } }));
    check("D12.1", deletions_carry_the_version, ghost(), unguarded);
    check("D12.5", deletes_all_orphans_at_rest, ghost(), story([map("a", &["ghost"])]));
}

#[test]
fn finalizers_leave_after_the_dependents_and_references_with_their_owner() {
    for finalizer in [FOREGROUND, ORPHAN] {
        let finalized = |dependent: Value| {
            let begun = story([dependent, terminating(map("b", &[]), finalizer)]);
            begun.edit(LOOPS[0], &CONFIG_MAPS, "b", |map| map["metadata"]["finalizers"] = json!([]))
        };
        check("D12.3", finalizers_leave_after_the_dependents, finalized(map("a", &[])), finalized(map("a", &["b"])));
    }
    let freed = |owner: Value| {
        let begun = story([map("a", &["b"]), owner]);
        begun.edit(LOOPS[1], &CONFIG_MAPS, "a", |map| map["metadata"]["ownerReferences"] = json!([]))
    };
    check("D12.2", references_to_live_owners_stay, freed(terminating(map("b", &[]), ORPHAN)), freed(map("b", &[])));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
