//! The status of a budget as it is written.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::views::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use kcm_framework::api::{Condition, ConditionStatus, Document, EditError};

/// The only condition type that this controller manages; others are kept.
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// Reasons of the condition `DisruptionAllowed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AllowedReason {
    /// More pods are healthy than have to be.
    SufficientPods,
    /// Not more pods are healthy than have to be.
    InsufficientPods,
    /// The status could not be computed.
    SyncFailed {
        /// Why.
        message: String,
    },
}

impl AllowedReason {
    /// The reason of a status that was computed.
    pub(super) const fn of(status: &PodDisruptionBudgetStatus) -> Self {
        if status.disruptions_allowed > 0 { Self::SufficientPods } else { Self::InsufficientPods }
    }

    const fn as_str(&self) -> &'static str {
        match self {
            Self::SufficientPods => "SufficientPods",
            Self::InsufficientPods => "InsufficientPods",
            Self::SyncFailed { .. } => "SyncFailed",
        }
    }

    const fn status(&self) -> ConditionStatus {
        match self {
            Self::SufficientPods => ConditionStatus::True,
            Self::InsufficientPods | Self::SyncFailed { .. } => ConditionStatus::False,
        }
    }

    fn message(&self) -> &str {
        match self {
            Self::SufficientPods | Self::InsufficientPods => "",
            Self::SyncFailed { message } => message,
        }
    }
}

/// Whether the budget has that status and a condition that fits, so that nothing is written.
pub(super) fn is_written(
    budget: &PodDisruptionBudget,
    wanted: &PodDisruptionBudgetStatus,
    reason: &AllowedReason,
) -> bool {
    let present = &budget.status;
    let condition = present.conditions.iter().find(|condition| &*condition.type_ == DISRUPTION_ALLOWED);
    let fits = condition.is_some_and(|condition| {
        let has_message = match reason {
            AllowedReason::SyncFailed { message } => *condition.message == **message,
            // As upstream, which looks at status and reason alone.
            AllowedReason::SufficientPods | AllowedReason::InsufficientPods => true,
        };
        condition.status == reason.status() && &*condition.reason == reason.as_str() && has_message
    });
    fits && present == wanted
}

/// The status where nothing could be computed: no disruption is allowed, and everything else stays.
///
/// Evictions are refused rather than admitted by numbers that may be wrong.
pub(super) fn fail_safe(present: &PodDisruptionBudgetStatus) -> PodDisruptionBudgetStatus {
    let mut status = present.clone();
    status.disruptions_allowed = 0;
    status
}

/// The whole object with the status; unknown fields stay.
pub(super) fn with_status(
    budget: &PodDisruptionBudget,
    status: &PodDisruptionBudgetStatus,
    reason: &AllowedReason,
    now: Timestamp,
) -> Result<Document, EditError> {
    let mut document = budget.document.clone();
    for (name, count) in [
        ("disruptionsAllowed", status.disruptions_allowed),
        ("currentHealthy", status.current_healthy),
        ("desiredHealthy", status.desired_healthy),
        ("expectedPods", status.expected_pods),
    ] {
        document.set(&["status", name], &count)?;
    }
    document.set(&["status", "observedGeneration"], &status.observed_generation)?;
    if status.disrupted_pods != budget.status.disrupted_pods {
        let path = ["status", "disruptedPods"];
        if status.disrupted_pods.is_empty() {
            document.remove(&path)?;
        } else {
            let times = status.disrupted_pods.iter().map(|(name, since)| (name, since.map(format_seconds)));
            document.set(&path, &times.collect::<BTreeMap<_, _>>())?;
        }
    }
    let condition = Condition {
        type_: DISRUPTION_ALLOWED.into(),
        status: reason.status(),
        observed_generation: status.observed_generation,
        reason: reason.as_str().into(),
        message: reason.message().into(),
        ..Condition::default()
    };
    document.replace_condition(&condition.in_transition(&budget.status.conditions, now))?;
    Ok(document)
}
