//! Event mapping: every change that may concern a signature enqueues `cluster-info`.

use kcm_framework::api::ObjectKey;
use kcm_framework::informers::Change;

use super::plan::ClusterInfo;
use super::{CONFIG_MAP, NAMESPACE};
use crate::shared::BootstrapToken;

/// `cluster-info` is enqueued when it is added or updated.
pub(super) fn keys_for_cluster_info(change: &Change<ClusterInfo>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } => Some(change.key().clone()),
        Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}

/// A token enqueues `cluster-info` when it is added, updated or deleted.
pub(super) fn keys_for_token(change: &Change<BootstrapToken>) -> Option<ObjectKey> {
    match change {
        Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => {
            Some(ObjectKey::namespaced(NAMESPACE, CONFIG_MAP))
        }
        // Its signature stays.
        Change::Undecodable { .. } => None,
    }
}
