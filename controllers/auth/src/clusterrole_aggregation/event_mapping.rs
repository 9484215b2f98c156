//! Event mapping: the aggregated roles that a change of a cluster role enqueues.

use std::sync::Arc;

use kcm_framework::api::{Labels, ObjectKey, Selector};
use kcm_framework::informers::Change;

use super::view::ClusterRole;

/// Enqueues the changed role if it is aggregated, and the roles of `aggregated` that select it before or after the change.
pub(super) fn keys_for_cluster_role(change: &Change<ClusterRole>, aggregated: &[Arc<ClusterRole>]) -> Vec<ObjectKey> {
    let (old, new) = match change {
        Change::Added(role) | Change::Undecodable { last: role } | Change::Deleted { last: role, .. } => (None, role),
        Change::Updated { old, new } => (Some(old), new),
    };
    let states: Vec<&Labels> = old.into_iter().chain([new]).map(|role| &role.metadata.labels).collect();
    let is_concerned = |role: &&Arc<ClusterRole>| {
        role.metadata.key == new.metadata.key || states.iter().any(|labels| selects(role, labels))
    };
    aggregated.iter().filter(is_concerned).map(|role| role.metadata.key.clone()).collect()
}

/// Whether an aggregated role selects a role with these labels. An invalid selector selects none.
pub(super) fn selects(aggregated: &ClusterRole, labels: &Labels) -> bool {
    let selectors = aggregated.aggregation.iter().flat_map(|rule| &rule.selectors);
    selectors.filter_map(|selector| Selector::try_from(selector).ok()).any(|selector| selector.matches(labels))
}
