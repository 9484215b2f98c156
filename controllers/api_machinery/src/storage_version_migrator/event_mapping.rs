//! Event mapping of the loops whose keys are migrations. The runner's is in `runner.rs`.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use super::view::Migration;

/// A migration is enqueued when it is added or updated.
pub(super) fn key_for_checkpoint(change: &Change<Migration>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}

/// A migration is enqueued when it is added or updated, and when it is deleted, so that its position is forgotten.
pub(super) fn key_for_migration(change: &Change<Migration>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } => None,
    }
}
