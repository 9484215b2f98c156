//! Recreation: every old pod has stopped before the new replica set gets replicas.

use kcm_framework::api::views::PodPhase;

use super::{Limits, Scale, ScaleReason, SetCount};

/// The next step of a recreation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecreateStep {
    /// Scale old replica sets to 0.
    ScaleDown(Vec<Scale>),
    /// Wait: old pods may still run.
    AwaitOldPods,
    /// Create the new replica set.
    Create {
        /// Its replicas.
        replicas: i32,
    },
    /// Scale the new replica set to the replicas of the deployment.
    ScaleNew(Scale),
    /// The new replica set has the replicas of the deployment.
    Complete,
}

/// Decides from the counts of all replica sets, and the phases of the pods of old ones.
///
/// # Guarantees
/// The new replica set is neither created nor scaled while an old one has `spec.replicas` or `status.replicas` above 0, or
/// a pod that may run.
///
/// # Upstream
/// `rolloutRecreate`.
pub(crate) fn plan(
    new: Option<&SetCount<'_>>,
    old: &[SetCount<'_>],
    old_pods: impl IntoIterator<Item = PodPhase>,
    limits: &Limits,
) -> RecreateStep {
    let active: Vec<_> =
        old.iter().filter(|set| set.is_active()).map(|set| set.resize(0, ScaleReason::Recreate)).collect();
    if !active.is_empty() {
        return RecreateStep::ScaleDown(active);
    }
    if old.iter().any(|set| set.actual > 0) || old_pods.into_iter().any(may_run) {
        return RecreateStep::AwaitOldPods;
    }
    match new {
        None => RecreateStep::Create { replicas: limits.replicas },
        Some(new) if new.desired == limits.replicas => RecreateStep::Complete,
        Some(new) => RecreateStep::ScaleNew(new.resize(limits.replicas, ScaleReason::OldGone)),
    }
}

/// Whether a pod in this phase may have a running container. A pod in phase `Unknown` may: its node cannot be reached.
pub(crate) fn may_run(phase: PodPhase) -> bool {
    match phase {
        PodPhase::Succeeded | PodPhase::Failed => false,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown | PodPhase::Other | _ => true,
    }
}
