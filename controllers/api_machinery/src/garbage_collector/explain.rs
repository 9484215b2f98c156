//! Explanations of the decisions about an object.
//!
//! The keys of the loops are uids, so that the first sentence names the object.

use kcm_framework::api::Meta;
use kcm_framework::client::DeletionPropagation;

use super::graph::{Identity, Item, Task};
use super::plan::{Action, KeepReason, OwnerState};

pub(super) const IS_GONE: &str = "does not exist; its dependents are processed";

pub(super) fn unknown_dependents(reason: &str) -> String {
    format!("waits, as it may have dependents that are not known: {reason}")
}

pub(super) fn orphaning(owner: &Identity, dependents: usize) -> String {
    format!("{owner}: removes the references of {dependents} dependents to it, as it is deleted with orphans")
}

impl Item {
    /// Explains the task that the graph has for the object.
    pub(super) fn explain(&self) -> String {
        let identity = &self.identity;
        match &self.task {
            Task::None => format!("{identity}: does nothing, as it is being deleted or all its owners exist"),
            Task::Wait { is_blocked: false, .. } => {
                format!("{identity}: is deleted in the foreground, and no dependent blocks it")
            }
            Task::Wait { process, .. } => format!(
                "{identity}: is deleted in the foreground, and waits for blocking dependents; {} of them are processed",
                process.len()
            ),
            Task::BreakCycle => format!("{identity}: unblocks its owners, as it waits for itself in a cycle"),
            Task::LookUp => {
                let owners: Vec<String> =
                    self.owners.iter().map(|owner| format!("{} {:?}", owner.kind, &*owner.name)).collect();
                let owners = if owners.is_empty() { "none".to_owned() } else { owners.join(", ") };
                format!("{identity}: is looked up with its owners: {owners}")
            }
        }
    }
}

impl Action {
    /// Explains the action for an object whose owners have these states, in the order of its references.
    pub(super) fn explain(&self, live: &Meta, owners: &[OwnerState]) -> String {
        match self {
            Self::Keep(reason) => reason.explain().to_owned(),
            Self::RemoveReferences(gone) => {
                format!(
                    "removes the references to {} of its {} owners, as another one exists",
                    gone.len(),
                    owners.len()
                )
            }
            Self::DeleteInForeground { unblock } => {
                let unblock = if *unblock { "unblocks its owners, as a dependent may wait for it, and " } else { "" };
                format!("{unblock}deletes it in the foreground, as an owner waits for it and it has dependents")
            }
            Self::Delete(propagation) => {
                let how = match propagation {
                    DeletionPropagation::Background => "in the background",
                    DeletionPropagation::Foreground => "in the foreground, as its finalizer says",
                    DeletionPropagation::Orphan => "and orphans its dependents, as its finalizer says",
                };
                let owners: Vec<String> = live
                    .owner_references
                    .iter()
                    .zip(owners)
                    .map(|(owner, state)| format!("{} {:?} {}", owner.kind, &*owner.name, state.explain()))
                    .collect();
                format!("deletes it {how}: {}", owners.join(", "))
            }
        }
    }
}

impl KeepReason {
    const fn explain(self) -> &'static str {
        match self {
            Self::NoOwner => "keeps it, as it names no owner",
            Self::Owned => "keeps it, as all its owners exist",
            Self::Terminating => "does nothing, as it is being deleted",
        }
    }
}

impl OwnerState {
    const fn explain(self) -> &'static str {
        match self {
            Self::Solid => "exists",
            Self::Absent => "does not exist",
            Self::Waiting => "waits for its dependents",
        }
    }
}
