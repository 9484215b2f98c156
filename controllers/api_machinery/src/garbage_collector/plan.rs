//! The plan for an object whose owners have been looked up.

use kcm_framework::api::{Meta, Uid};
use kcm_framework::client::DeletionPropagation;

use super::graph::{FOREGROUND_FINALIZER, Item, ORPHAN_FINALIZER, has_finalizer};

/// The state of an owner by a live read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It exists, and does not wait for its dependents.
    Solid,
    Absent,
    /// It exists, and waits until it has no blocking dependents.
    Waiting,
}

/// The plan for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Keep(KeepReason),
    /// Removes the references to these owners; another owner keeps the object.
    RemoveReferences(Vec<Uid>),
    /// Deletes the object in the foreground, after its dependents, because an owner waits for it.
    DeleteInForeground {
        /// Whether its references are updated first so that they block no owner: it may wait for itself in a cycle.
        unblock: bool,
    },
    Delete(DeletionPropagation),
}

/// The reason why an object is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    NoOwner,
    /// All its owners exist.
    Owned,
    Terminating,
}

/// Plans from the live metadata of an object and the states of its owners, in the order of its references.
///
/// # Guarantees
/// An object is not deleted if one of its owners exists and does not wait for its dependents.
pub(super) fn plan(item: &Item, live: &Meta, owners: &[OwnerState]) -> Action {
    if live.is_terminating() {
        return Action::Keep(KeepReason::Terminating);
    }
    if live.owner_references.is_empty() {
        return Action::Keep(KeepReason::NoOwner);
    }
    let is = |state| owners.contains(&state);
    if is(OwnerState::Solid) {
        let loose = live.owner_references.iter().zip(owners).filter(|(_, state)| **state != OwnerState::Solid);
        let loose: Vec<Uid> = loose.map(|(reference, _)| reference.uid.clone()).collect();
        return if loose.is_empty() { Action::Keep(KeepReason::Owned) } else { Action::RemoveReferences(loose) };
    }
    if is(OwnerState::Waiting) && item.has_dependents {
        return Action::DeleteInForeground { unblock: item.has_waiting_dependent };
    }
    // A finalizer for a policy that the object has already decides.
    Action::Delete(if has_finalizer(live, ORPHAN_FINALIZER) {
        DeletionPropagation::Orphan
    } else if has_finalizer(live, FOREGROUND_FINALIZER) {
        DeletionPropagation::Foreground
    } else {
        DeletionPropagation::Background
    })
}
