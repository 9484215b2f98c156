//! Event mapping: the namespaces that a change enqueues.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Namespace, NamespacePhase};
use kcm_framework::informers::Change;

use super::plan::ConfigMap;

/// An update or deletion of a config map enqueues its namespace.
pub(super) fn keys_for_config_map(change: &Change<ConfigMap>) -> Option<ObjectKey> {
    match change {
        // A config map that cannot be decoded still exists.
        Change::Added(_) | Change::Undecodable { .. } => None,
        Change::Updated { .. } | Change::Deleted { .. } => change.key().namespace().map(ObjectKey::cluster_scoped),
    }
}

/// A namespace is enqueued when it is added, or updated while it is active.
pub(super) fn keys_for_namespace(change: &Change<Namespace>) -> Option<ObjectKey> {
    let is_enqueued = match change {
        Change::Added(_) => true,
        Change::Updated { new, .. } => new.phase == NamespacePhase::Active,
        Change::Undecodable { .. } | Change::Deleted { .. } => false,
    };
    is_enqueued.then(|| change.key().clone())
}
