//! Recreate: every old pod is gone before the new set starts.

use kcm_api::views::PodPhase;

use super::{Limits, Scale, SetCount, Why};

/// The next step of a recreation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Old sets are given no replicas.
    ScaleDown(Vec<Scale>),
    /// Old pods still run.
    AwaitOldPods,
    /// The new set is created, with so many replicas.
    Create {
        /// How many.
        replicas: i32,
    },
    /// The new set is given the deployment's size.
    ScaleNew(Scale),
    /// The new set has the deployment's size.
    Rest,
}

/// Decides from all sets, and the phases of the pods that belong to old ones.
///
/// # Guarantees
/// The new set is neither created nor scaled while an old one wants replicas, reports some, or has a pod that may run.
///
/// # Upstream
/// `rolloutRecreate`.
pub(crate) fn plan(
    new: Option<&SetCount<'_>>,
    old: &[SetCount<'_>],
    old_pods: impl IntoIterator<Item = PodPhase>,
    limits: &Limits,
) -> Plan {
    let active: Vec<_> = old.iter().filter(|set| set.is_active()).map(|set| set.resize(0, Why::Recreate)).collect();
    if !active.is_empty() {
        return Plan::ScaleDown(active);
    }
    if old.iter().any(|set| set.actual > 0) || old_pods.into_iter().any(may_run) {
        return Plan::AwaitOldPods;
    }
    match new {
        None => Plan::Create { replicas: limits.replicas },
        Some(new) if new.desired == limits.replicas => Plan::Rest,
        Some(new) => Plan::ScaleNew(new.resize(limits.replicas, Why::OldGone)),
    }
}

/// Whether a pod in this phase may have a container that runs; one in phase `Unknown` may.
pub(crate) fn may_run(phase: PodPhase) -> bool {
    match phase {
        PodPhase::Succeeded | PodPhase::Failed => false,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown | PodPhase::Other | _ => true,
    }
}
