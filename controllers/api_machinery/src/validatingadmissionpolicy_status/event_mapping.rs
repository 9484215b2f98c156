//! Event mapping: the policies that a change enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use super::policy::Policy;

/// A policy is enqueued when it is added or updated, and when it is deleted, so that its memory is dropped.
pub(super) fn key_for_policy(change: &Change<Policy>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } => None,
    }
}
