//! The plan of a reconcile: how many pods are created or deleted, and which.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::Pod;

use super::gates::Gates;
use super::observe::Observed;
use super::owner::ReplicaOwner;
use super::rank;

/// The most pods that one reconcile creates, and the most that it deletes.
pub(super) const BURST: usize = 500;

/// The plan for the number of pods.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// No pod is created or deleted.
    Idle(IdleReason),
    /// Pods are created or deleted.
    Scale(Step),
}

/// Why no pod is created or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleReason {
    /// The number of pods is `spec.replicas`.
    Enough,
    /// The object is being deleted.
    OwnerTerminating,
}

/// A change of the number of pods.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Create pods, in slow-start batches.
    CreatePods {
        /// How many.
        count: usize,
    },
    /// Create none of the missing pods, because the template is invalid.
    RejectTemplate(InvalidTemplate),
    /// Delete pods, all at once.
    DeletePods {
        /// The pods.
        victims: Vec<Arc<Pod>>,
        /// The values for the metric of ages; empty if all pods are deleted.
        age_ratios: Vec<i64>,
    },
}

/// A pod template that no pod can be created from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidTemplate {
    /// It has no labels: the object would not select its pods.
    #[error("unable to create pods, no labels")]
    NoLabels,
}

/// Plans from the snapshot and the claimed active pods of the object.
///
/// # Guarantees
/// At most [`BURST`] pods in one step, never more than `spec.replicas` in the end, and none for an object that is being
/// deleted.
pub(super) fn plan<V: ReplicaOwner>(
    observed: &Observed<V>,
    claimed: &[Arc<Pod>],
    gates: Gates,
    now: Timestamp,
) -> Plan {
    let owner = &observed.owner;
    if owner.meta().is_terminating() {
        return Plan::Idle(IdleReason::OwnerTerminating);
    }
    // Validation rejects a negative number.
    let wanted = usize::try_from(owner.replicas()).unwrap_or(0);
    if claimed.len() == wanted {
        return Plan::Idle(IdleReason::Enough);
    }
    if claimed.len() < wanted {
        if owner.template_labels().is_empty() {
            return Plan::Scale(Step::RejectTemplate(InvalidTemplate::NoLabels));
        }
        return Plan::Scale(Step::CreatePods { count: (wanted - claimed.len()).min(BURST) });
    }
    let going = (claimed.len() - wanted).min(BURST);
    if going == claimed.len() {
        return Plan::Scale(Step::DeletePods { victims: claimed.to_vec(), age_ratios: Vec::new() });
    }
    let mut victims = rank::rank(claimed, &observed.occupancy, gates, now);
    let age_ratios = rank::age_ratios(&victims, going, now);
    victims.truncate(going);
    Plan::Scale(Step::DeletePods { victims, age_ratios })
}
