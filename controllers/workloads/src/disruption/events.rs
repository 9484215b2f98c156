//! The events about budgets and pods.

use kcm_api::ObjectKey;
use kcm_framework::events::{EventDetails, EventType};

/// Why an event is recorded, with what its message needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EventReason {
    /// The selector of the budget is invalid.
    InvalidSelector {
        /// What is wrong with it.
        message: String,
    },
    /// The budget selects no pod.
    NoPods,
    /// The number of expected pods is not known.
    CalculateExpectedPodCountFailed {
        /// The message of the error.
        message: String,
    },
    /// The budget counts the replicas of controllers, and some of its pods have none.
    UnmanagedPods {
        /// The selector of the budget, as Go prints it.
        selector: String,
    },
    /// A pod whose eviction was admitted was not deleted.
    NotDeleted {
        /// The budget.
        budget: ObjectKey,
    },
    /// A pod is selected by several budgets, so that it cannot be evicted.
    MultiplePodDisruptionBudgets {
        /// The pod.
        pod: ObjectKey,
        /// The first of the budgets.
        budget: String,
    },
}

impl EventDetails for EventReason {
    fn event_type(&self) -> EventType {
        match self {
            Self::NoPods => EventType::Normal,
            Self::InvalidSelector { .. }
            | Self::CalculateExpectedPodCountFailed { .. }
            | Self::UnmanagedPods { .. }
            | Self::NotDeleted { .. }
            | Self::MultiplePodDisruptionBudgets { .. } => EventType::Warning,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::InvalidSelector { .. } | Self::NoPods => "NoPods",
            Self::CalculateExpectedPodCountFailed { .. } => "CalculateExpectedPodCountFailed",
            Self::UnmanagedPods { .. } => "UnmanagedPods",
            Self::NotDeleted { .. } => "NotDeleted",
            Self::MultiplePodDisruptionBudgets { .. } => "MultiplePodDisruptionBudgets",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::InvalidSelector { message } => format!("Failed to get pods: {message}"),
            Self::NoPods => "No matching pods found".to_owned(),
            Self::CalculateExpectedPodCountFailed { message } => {
                format!("Failed to calculate the number of expected pods: {message}")
            }
            Self::UnmanagedPods { selector } => format!(
                "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
                 result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. \
                 To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
            ),
            // The second word is the namespace too, as upstream.
            Self::NotDeleted { budget } => {
                let namespace = budget.namespace().unwrap_or_default();
                format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't")
            }
            Self::MultiplePodDisruptionBudgets { pod, budget } => format!(
                "Pod {:?}/{:?} matches multiple PodDisruptionBudgets.  Chose {budget:?} arbitrarily.",
                pod.namespace().unwrap_or_default(),
                pod.name(),
            ),
        }
    }
}
