//! Event mapping: the namespaces that a change enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Namespace;
use kcm_framework::informers::Change;

use crate::shared::ServiceAccount;

/// The deletion of an account enqueues its namespace.
pub(super) fn keys_for_account(change: &Change<ServiceAccount>) -> Option<ObjectKey> {
    match change {
        // An account that cannot be decoded still exists.
        Change::Added(_) | Change::Updated { .. } | Change::Undecodable { .. } => None,
        Change::Deleted { .. } => change.key().namespace().map(ObjectKey::cluster_scoped),
    }
}

/// A namespace is enqueued when it is added or updated.
pub(super) fn keys_for_namespace(change: &Change<Namespace>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}
