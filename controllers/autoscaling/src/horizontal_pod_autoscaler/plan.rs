//! The plan for an autoscaler: the replicas of its target, and the reason. Pure.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::conditions::{ABLE_TO_SCALE, Conditions, SCALED_TO_ZERO, SCALING_ACTIVE, SCALING_LIMITED};
use super::evaluate::{Computed, Evaluation};
use super::events::AutoscalerEvent;
use super::history::History;
use super::normalize::{Bounds, normalize};
use super::spec::Behavior;

/// Whether autoscalers scale to zero, and whether this autoscaler could scale up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zero {
    /// The gate `HPAScaleToZero`.
    pub(super) gate: bool,
    /// Whether a metric can be measured without pods.
    pub(super) measurable: bool,
    /// Whether this autoscaler has scaled to zero, by its condition; never without the gate.
    pub(super) scaled: bool,
}

impl Zero {
    /// Returns `true` if the autoscaler scales its target to zero and metrics can bring the target back.
    ///
    /// The condition `ScaledToZero` is written before such a scale. Otherwise a target whose status was not written would
    /// look like a target that a user has scaled to zero, which stays there.
    pub(super) const fn is_to_zero(self, bounds: Bounds, to: i32) -> bool {
        self.gate && self.measurable && bounds.current > 0 && bounds.min == 0 && to == 0
    }

    /// Ends the condition `ScaledToZero` of a target that has replicas. If a user scales the target to zero later, it must
    /// stay there.
    pub(super) fn settle(self, conditions: &mut Conditions, bounds: Bounds, now: Timestamp) {
        if self.gate && bounds.current > 0 && conditions.is_true(SCALED_TO_ZERO) {
            set_scaled_to_zero(conditions, false, now);
        }
    }
}

/// Sets the condition `ScaledToZero`.
pub(super) fn set_scaled_to_zero(conditions: &mut Conditions, holds: bool, now: Timestamp) {
    let (reason, message) = if holds {
        ("ScaledToZero", "the HPA controller scaled the workload to zero")
    } else {
        ("NotScaledToZero", "the HPA controller did not scale the workload to zero")
    };
    conditions.set(SCALED_TO_ZERO, holds, reason, message, now);
}

/// The way to decide, by the number of replicas, before any metric is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approach {
    /// Does nothing, because another client has scaled the target to zero.
    Disabled,
    AboveMax,
    BelowMin,
    /// The metrics decide.
    Metrics,
}

impl Approach {
    pub(super) const fn of(bounds: Bounds, zero: Zero) -> Self {
        let Bounds { current, min, max } = bounds;
        if current == 0 {
            let may_return = zero.scaled && (min != 0 || zero.measurable);
            return if may_return { Self::Metrics } else { Self::Disabled };
        }
        if current > max {
            Self::AboveMax
        } else if current < min {
            Self::BelowMin
        } else {
            Self::Metrics
        }
    }
}

const BELOW_MIN: &str = "Current number of replicas below Spec.MinReplicas";

/// The decision about the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The desired number of replicas is unknown.
    Unknown,
    /// The target has the desired number of replicas.
    Keep,
    /// Scales the target.
    Rescale {
        to: i32,
        /// The reason for the event.
        reason: String,
    },
}

/// The plan of a sync.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) decision: Decision,
    pub(super) conditions: Conditions,
    /// The metrics of the status.
    pub(super) metrics: Vec<Value>,
    pub(super) events: Vec<AutoscalerEvent>,
    /// The error of a metric, also if the other metrics suffice to scale.
    pub(super) error: Option<String>,
    pub(super) computed: Vec<Computed>,
}

/// The inputs of a plan beside the metrics.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned<'a> {
    pub(super) bounds: Bounds,
    pub(super) zero: Zero,
    pub(super) behavior: Option<&'a Behavior>,
    /// The stabilization window of the settings.
    pub(super) window: SignedDuration,
    pub(super) now: Timestamp,
}

/// Plans if the metrics do not decide.
pub(super) fn plan_without_metrics(planned: Planned<'_>, approach: Approach, mut conditions: Conditions) -> Plan {
    let Planned { bounds, zero, now, .. } = planned;
    let decision = match approach {
        Approach::Disabled | Approach::Metrics => {
            let message = "scaling is disabled since the replica count of the target is zero";
            conditions.set(SCALING_ACTIVE, false, "ScalingDisabled", message, now);
            if !zero.gate {
                conditions.remove(SCALED_TO_ZERO);
            }
            Decision::Keep
        }
        Approach::AboveMax => {
            let reason = "Current number of replicas above Spec.MaxReplicas".to_owned();
            Decision::Rescale { to: bounds.max, reason }
        }
        Approach::BelowMin => Decision::Rescale { to: bounds.min, reason: BELOW_MIN.to_owned() },
    };
    Plan { decision, conditions, metrics: Vec::new(), events: Vec::new(), error: None, computed: Vec::new() }
}

/// Plans by the proposals of the metrics.
pub(super) fn plan_by_metrics(
    planned: Planned<'_>,
    evaluation: Evaluation,
    mut conditions: Conditions,
    history: &mut History,
) -> Plan {
    let Planned { bounds, zero, behavior, window, now } = planned;
    let error = evaluation.error();
    let failed =
        |failure: &super::evaluate::Failure| AutoscalerEvent::FailedMetric(failure.reason, failure.message.clone());
    let mut events: Vec<AutoscalerEvent> = evaluation.failures.iter().map(failed).collect();
    let Evaluation { proposed, statuses: metrics, failures, computed } = evaluation;
    let Some((proposed, metric)) = proposed else {
        if let Some(first) = failures.first() {
            let message = format!("the HPA was unable to compute the replica count: {}", first.message);
            conditions.set(SCALING_ACTIVE, false, first.reason, message, now);
        }
        events.extend(error.clone().map(AutoscalerEvent::FailedComputeMetricsReplicas));
        return Plan { decision: Decision::Unknown, conditions, metrics, events, error, computed };
    };
    let message = format!("the HPA was able to successfully calculate a replica count from {metric}");
    conditions.set(SCALING_ACTIVE, true, "ValidMetricFound", message, now);

    // A negative proposal counts as zero.
    let desired = proposed.max(0);
    let mut reason = match desired.cmp(&bounds.current) {
        Ordering::Greater => format!("{metric} above target"),
        Ordering::Less => "All metrics below target".to_owned(),
        Ordering::Equal => String::new(),
    };
    let normalized = normalize(desired, bounds, behavior, window, history, now);
    conditions.set(ABLE_TO_SCALE, true, normalized.able.reason(), normalized.able.message(), now);
    let limited = normalized.limited;
    conditions.set(SCALING_LIMITED, normalized.is_limited, limited.reason(), limited.message(), now);
    let mut replicas = normalized.replicas;
    if bounds.current == 0 && zero.scaled && replicas < bounds.min {
        replicas = bounds.min;
        if reason.is_empty() {
            BELOW_MIN.clone_into(&mut reason);
        }
    }
    let decision = if replicas == bounds.current { Decision::Keep } else { Decision::Rescale { to: replicas, reason } };
    Plan { decision, conditions, metrics, events, error, computed }
}

/// Sets the conditions after the target was scaled.
pub(super) fn after_rescale(conditions: &mut Conditions, bounds: Bounds, to: i32, zero: Zero, now: Timestamp) {
    let message = format!("the HPA controller was able to update the target scale to {to}");
    conditions.set(ABLE_TO_SCALE, true, "SucceededRescale", message, now);
    if zero.gate {
        set_scaled_to_zero(conditions, zero.is_to_zero(bounds, to), now);
    } else {
        conditions.remove(SCALED_TO_ZERO);
    }
}
