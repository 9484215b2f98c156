//! How many pods are created or deleted, and which.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::views::Pod;

use super::observe::Observed;
use super::rank;
use super::settings::Settings;

/// The most pods that one reconcile creates, and the most that it deletes.
pub(super) const BURST: usize = 500;

/// What one reconcile does about the number of pods.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// Nothing.
    Rest(Why),
    /// This step.
    Scale(Step),
}

/// Why nothing is done about the number of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// There are as many as asked for.
    Enough,
    /// The replica set is being deleted.
    OwnerTerminating,
}

/// One change of the number of pods.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Create so many pods, in slow-start batches.
    CreatePods {
        /// How many.
        count: usize,
    },
    /// Create none, though there are too few: the template is one that no pod is made from.
    RefuseTemplate(Refusal),
    /// Delete these pods, all at once.
    DeletePods {
        /// The pods.
        victims: Vec<Arc<Pod>>,
        /// What the metric of ages observes; empty where all pods go and none was chosen.
        age_ratios: Vec<i64>,
    },
}

/// What is wrong with a template, without asking the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// Its pods would not be found again.
    #[error("unable to create pods, no labels")]
    NoLabels,
}

/// Decides from what was observed and the active pods that belong to the replica set, after adoption.
///
/// # Guarantees
/// Never more than [`BURST`] pods in one step, never more than `spec.replicas` in the end, and none of a replica set
/// that is being deleted.
pub(super) fn plan(observed: &Observed, claimed: &[Arc<Pod>], settings: Settings, now: Timestamp) -> Plan {
    let owner = &observed.owner.view;
    if owner.metadata.is_terminating() {
        return Plan::Rest(Why::OwnerTerminating);
    }
    // Validation keeps the number from being negative; if it were, no pod is what comes nearest.
    let wanted = usize::try_from(owner.replicas).unwrap_or(0);
    if claimed.len() == wanted {
        return Plan::Rest(Why::Enough);
    }
    if claimed.len() < wanted {
        if owner.template_labels.is_empty() {
            return Plan::Scale(Step::RefuseTemplate(Refusal::NoLabels));
        }
        return Plan::Scale(Step::CreatePods { count: (wanted - claimed.len()).min(BURST) });
    }
    let going = (claimed.len() - wanted).min(BURST);
    if going == claimed.len() {
        return Plan::Scale(Step::DeletePods { victims: claimed.to_vec(), age_ratios: Vec::new() });
    }
    let mut victims = rank::rank(claimed, &observed.occupancy, settings, now);
    let age_ratios = rank::age_ratios(&victims, going, now);
    victims.truncate(going);
    Plan::Scale(Step::DeletePods { victims, age_ratios })
}
