//! Event mapping: the queue that a change of a `ResourceQuota` enters.

use std::sync::Arc;

use kcm_framework::api::views::ResourceQuota;
use kcm_framework::informers::Change;

/// The queue that a quota enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueName {
    /// For quotas that are computed again.
    Primary,
    /// For quotas that block creations until they are computed: their limits have changed, or lack a usage.
    Priority,
}

/// Returns the queue that a change of a quota enters; `is_counted` returns true for a constraint that any evaluator counts.
///
/// A change of the usage alone enqueues nothing: the API server writes it with each object that it admits.
pub(super) fn queue_of_change(change: &Change<ResourceQuota>, is_counted: impl Fn(&str) -> bool) -> Option<QueueName> {
    match change {
        Change::Added(quota) => Some(queue_of(quota, is_counted)),
        Change::Updated { old, new } if Arc::ptr_eq(old, new) => Some(QueueName::Primary),
        Change::Updated { old, new } if old.hard == new.hard => None,
        Change::Updated { new, .. } => Some(queue_of(new, is_counted)),
        Change::Undecodable { .. } | Change::Deleted { .. } => None,
    }
}

pub(super) fn queue_of(quota: &ResourceQuota, is_counted: impl Fn(&str) -> bool) -> QueueName {
    let lacks_usage = |name: &str| !quota.status_used.contains(name) && is_counted(name);
    if quota.hard != quota.status_hard || quota.status_hard.names().any(|name| lacks_usage(name)) {
        QueueName::Priority
    } else {
        QueueName::Primary
    }
}
