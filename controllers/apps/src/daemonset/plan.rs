//! The plan of a reconcile: the pods to create and to delete.

use super::backoff::FailedPodBackoff;
use super::changes::PodChanges;
use super::rollout::{self, Limits};
use super::snapshot::Snapshot;
use super::{manage, status};
use kcm_framework::api::views::DaemonSetStatus;

/// What a reconcile does to the pods of a daemon set, and the status that it reports.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// What the changes are for.
    pub(super) step: Step,
    /// The pods to create and to delete.
    pub(super) changes: PodChanges,
    /// The status before the changes.
    pub(super) status: DaemonSetStatus,
}

/// What the changes of a plan are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Each node has the pods that it should have, whatever their template.
    Manage,
    /// A rolling update.
    RollingUpdate,
}

/// Plans from a snapshot.
///
/// A rolling update goes on when no pod is missing, surplus or finished.
pub(super) fn plan(snapshot: &Snapshot<'_>, limits: Limits, backoff: &FailedPodBackoff) -> Plan {
    let status = status::status(snapshot);
    let managed = manage::plan(snapshot, limits, backoff);
    if !managed.is_empty() {
        return Plan { step: Step::Manage, changes: managed, status };
    }
    let update = rollout::plan(snapshot, limits);
    Plan { step: Step::RollingUpdate, changes: PodChanges { recheck: managed.recheck, ..update }, status }
}
