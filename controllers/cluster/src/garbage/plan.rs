//! What is done about an object, when its owners have been looked up.

use kcm_api::{Meta, Uid};
use kcm_framework::client::DeletionPropagation;

use super::graph::{FOREGROUND_FINALIZER, Item, ORPHAN_FINALIZER, has_finalizer};

/// What a live read has shown of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It exists, and does not wait for its dependents.
    Solid,
    /// It does not exist.
    Absent,
    /// It exists, and waits until it has no blocking dependents.
    Waiting,
}

/// What is done about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing.
    Keep(KeepReason),
    /// The references to these owners are removed; another owner keeps the object.
    RemoveReferences(Vec<Uid>),
    /// The object is deleted in the foreground, after its dependents, as an owner waits for it.
    DeleteInForeground {
        /// Whether its references are first made to block no owner, as it may wait for itself in a cycle.
        unblock: bool,
    },
    /// The object is deleted.
    Delete(DeletionPropagation),
}

/// Why an object is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepReason {
    /// It has no owner.
    NoOwner,
    /// All its owners are there.
    Owned,
    /// It is terminating already.
    Terminating,
}

/// Plans from the live metadata of an object and the states of the owners that they name, in their order.
///
/// # Guarantees
/// An object of which one owner exists, and does not wait for its dependents, is not deleted.
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
    // A finalizer for one of the policies that is there already decides.
    Action::Delete(if has_finalizer(live, ORPHAN_FINALIZER) {
        DeletionPropagation::Orphan
    } else if has_finalizer(live, FOREGROUND_FINALIZER) {
        DeletionPropagation::Foreground
    } else {
        DeletionPropagation::Background
    })
}
