//! The conditions of an autoscaler: types, reasons and messages. Pure.

use jiff::Timestamp;
use kcm_framework::api::{Condition, ConditionStatus};

pub(super) const ABLE_TO_SCALE: &str = "AbleToScale";
pub(super) const SCALING_ACTIVE: &str = "ScalingActive";
pub(super) const SCALING_LIMITED: &str = "ScalingLimited";
pub(super) const SCALED_TO_ZERO: &str = "ScaledToZero";

/// Why the recommendation can be applied, or is replaced by an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Able {
    ReadyForNewScale,
    ScaleUpStabilized,
    ScaleDownStabilized,
}

impl Able {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::ReadyForNewScale => "ReadyForNewScale",
            Self::ScaleUpStabilized => "ScaleUpStabilized",
            Self::ScaleDownStabilized => "ScaleDownStabilized",
        }
    }

    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::ReadyForNewScale => "recommended size matches current size",
            Self::ScaleUpStabilized => {
                "recent recommendations were lower than current one, applying the lowest recent recommendation"
            }
            Self::ScaleDownStabilized => {
                "recent recommendations were higher than current one, applying the highest recent recommendation"
            }
        }
    }
}

/// What limits the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limited {
    DesiredWithinRange,
    TooFewReplicas,
    TooManyReplicas,
    ScaleUpLimit,
    ScaleDownLimit,
}

impl Limited {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::DesiredWithinRange => "DesiredWithinRange",
            Self::TooFewReplicas => "TooFewReplicas",
            Self::TooManyReplicas => "TooManyReplicas",
            Self::ScaleUpLimit => "ScaleUpLimit",
            Self::ScaleDownLimit => "ScaleDownLimit",
        }
    }

    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::DesiredWithinRange => "the desired count is within the acceptable range",
            Self::TooFewReplicas => "the desired replica count is less than the minimum replica count",
            Self::TooManyReplicas => "the desired replica count is more than the maximum replica count",
            Self::ScaleUpLimit => "the desired replica count is increasing faster than the maximum scale rate",
            Self::ScaleDownLimit => "the desired replica count is decreasing faster than the maximum scale rate",
        }
    }
}

/// The conditions of an autoscaler, in the order in which they were first set.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Conditions(pub(super) Vec<Condition>);

impl Conditions {
    /// Sets a condition; its time is that of the last change of its status.
    pub(super) fn set(&mut self, type_: &str, holds: bool, reason: &str, message: impl Into<Box<str>>, now: Timestamp) {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False };
        let (reason, message) = (reason.into(), message.into());
        match self.0.iter_mut().find(|condition| *condition.type_ == *type_) {
            Some(condition) => {
                if condition.status != status {
                    condition.last_transition_time = Some(now);
                }
                (condition.status, condition.reason, condition.message) = (status, reason, message);
            }
            None => self.0.push(Condition {
                type_: type_.into(),
                status,
                last_update_time: None,
                last_transition_time: Some(now),
                reason,
                message,
                ..Condition::default()
            }),
        }
    }

    /// Removes a condition.
    pub(super) fn remove(&mut self, type_: &str) {
        self.0.retain(|condition| *condition.type_ != *type_);
    }

    /// Whether a condition is there and true.
    pub(super) fn is_true(&self, type_: &str) -> bool {
        let found = self.0.iter().find(|condition| *condition.type_ == *type_);
        found.is_some_and(|condition| condition.status == ConditionStatus::True)
    }
}
