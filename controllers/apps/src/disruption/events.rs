//! The events of PodDisruptionBudgets and Pods.

use kcm_framework::api::ObjectKey;
use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DisruptionEvent {
    InvalidSelector {
        message: String,
    },
    /// The budget selects no Pod.
    NoPods,
    /// The number of expected Pods cannot be computed.
    CalculateExpectedPodCountFailed {
        message: String,
    },
    /// The budget counts the replicas of controllers, and some of its Pods have none.
    UnmanagedPods {
        /// The selector of the budget, as Go prints it.
        selector: String,
    },
    /// A Pod whose eviction was admitted was not deleted.
    NotDeleted {
        budget: ObjectKey,
    },
    /// Several budgets select a Pod, so that it cannot be evicted.
    MultiplePodDisruptionBudgets {
        pod: ObjectKey,
        /// The first of the budgets.
        budget: String,
    },
}

impl Event for DisruptionEvent {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::InvalidSelector { message } => EventText::warning("NoPods", format!("Failed to get pods: {message}")),
            Self::NoPods => EventText::normal("NoPods", "No matching pods found"),
            Self::CalculateExpectedPodCountFailed { message } => EventText::warning(
                "CalculateExpectedPodCountFailed",
                format!("Failed to calculate the number of expected pods: {message}"),
            ),
            Self::UnmanagedPods { selector } => EventText::warning(
                "UnmanagedPods",
                format!(
                    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
                     result, the status of the PDB cannot be calculated correctly, which may result in undefined \
                     behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an \
                     integer value."
                ),
            ),
            // The second word is the namespace too, as upstream.
            Self::NotDeleted { budget } => {
                let namespace = budget.namespace().unwrap_or_default();
                let message = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
                EventText::warning("NotDeleted", message)
            }
            Self::MultiplePodDisruptionBudgets { pod, budget } => EventText::warning(
                "MultiplePodDisruptionBudgets",
                format!(
                    "Pod {:?}/{:?} matches multiple PodDisruptionBudgets.  Chose {budget:?} arbitrarily.",
                    pod.namespace().unwrap_or_default(),
                    pod.name(),
                ),
            ),
        }
    }
}
