//! Rolling update: which old pods are deleted, and which nodes get a new pod beside the old one.

mod surge;
mod unavailable;

use kcm_framework::api::views::{DaemonSetUpdateStrategy, DaemonSetView};
use kcm_framework::api::{IntOrPercent, InvalidPercent, Rounding};

use super::changes::PodChanges;
use super::snapshot::Snapshot;

/// How many nodes a rolling update may touch at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Whether old pods are replaced at all.
    pub(super) rolls: bool,
    /// Whether a node may have an old and a new pod.
    pub(super) allows_surge: bool,
    /// How many nodes may have a new pod that is not available beside an available old one; with 0, old pods are deleted
    /// before new ones are created.
    pub(super) max_surge: i32,
    /// How many nodes may be without an available pod.
    pub(super) max_unavailable: i32,
}

impl Limits {
    /// The limits if a limit of the strategy cannot be read: pods are managed, and none is replaced.
    ///
    /// # Upstream
    /// `AllowsSurge`, which is `false` for a surge that cannot be read.
    pub(super) fn unreadable(set: &DaemonSetView) -> Self {
        let surge = match &set.update_strategy {
            DaemonSetUpdateStrategy::RollingUpdate { max_surge, .. } => max_surge.as_ref(),
            DaemonSetUpdateStrategy::OnDelete | DaemonSetUpdateStrategy::Other(_) => None,
        };
        let allows_surge = surge.is_some_and(|surge| surge.of(1, Rounding::Up).is_ok_and(|surge| surge > 0));
        Self { rolls: false, allows_surge, max_surge: 0, max_unavailable: 0 }
    }

    /// The limits of a set that so many nodes should run. Percentages are rounded up: 10% of 5 nodes is one node.
    ///
    /// With neither, one node may be unavailable: validation rejects such a strategy.
    ///
    /// # Errors
    /// A string that is no percentage, which validation rejects too.
    ///
    /// # Upstream
    /// `AllowsSurge`, `SurgeCount`, `UnavailableCount` and `updatedDesiredNodeCounts`.
    pub(super) fn of(set: &DaemonSetView, desired: i32) -> Result<Self, InvalidPercent> {
        let DaemonSetUpdateStrategy::RollingUpdate { max_unavailable, max_surge } = &set.update_strategy else {
            return Ok(Self { rolls: false, allows_surge: false, max_surge: 0, max_unavailable: 0 });
        };
        let count = |limit: &Option<IntOrPercent>, total| {
            limit.as_ref().map_or(Ok(0), |limit| limit.of(total, Rounding::Up)).map(|count| count.max(0))
        };
        let (allows_surge, max_surge) = (count(max_surge, 1)? > 0, count(max_surge, desired)?);
        let least = i32::from(desired > 0 && max_surge == 0);
        Ok(Self { rolls: true, allows_surge, max_surge, max_unavailable: count(max_unavailable, desired)?.max(least) })
    }
}

/// Plans the next step of a rolling update.
///
/// It is planned only when no pod is missing, surplus or finished.
pub(super) fn plan(snapshot: &Snapshot<'_>, limits: Limits) -> PodChanges {
    let count = |limit: i32| usize::try_from(limit).unwrap_or(0);
    let changes = match limits {
        Limits { rolls: false, .. } => PodChanges::default(),
        Limits { max_surge: ..=0, max_unavailable, .. } => unavailable::plan(snapshot, count(max_unavailable)),
        Limits { max_surge, .. } => surge::plan(snapshot, count(max_surge)),
    };
    changes.bounded(&snapshot.failures)
}
