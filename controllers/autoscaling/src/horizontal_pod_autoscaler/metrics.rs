//! The metrics of this controller.

use std::borrow::Cow;
use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_framework::metrics::{Counters, Gauge, Gauges, Histograms, MetricError, Stability, exponential_buckets};

use super::evaluate::Computed;

/// The label `action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    ScaleUp,
    ScaleDown,
    None,
}

impl Action {
    pub(super) const fn of(from: i32, to: i32) -> Self {
        if to > from {
            Self::ScaleUp
        } else if to < from {
            Self::ScaleDown
        } else {
            Self::None
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::ScaleUp => "scale_up",
            Self::ScaleDown => "scale_down",
            Self::None => "none",
        }
    }
}

/// The label `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorLabel {
    /// The spec of the autoscaler is invalid.
    Spec,
    /// A calculation or a request failed.
    Internal,
    None,
}

impl ErrorLabel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Internal => "internal",
            Self::None => "none",
        }
    }
}

/// The metrics, by the names of upstream.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    syncs: Counters<2>,
    sync_durations: Histograms<2>,
    computations: Counters<3>,
    computation_durations: Histograms<3>,
    autoscalers: Gauge,
    desired: Gauges<2>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let skips = metrics.counters(
            Stability::Alpha,
            "horizontal_pod_autoscaler_controller_stale_sync_skips_total",
            ["group", "resource"],
            "Syncs that were skipped because a cache was stale; always 0, as keys wait for their own writes",
        )?;
        drop(skips.of(["autoscaling", "horizontalpodautoscalers"]));
        let buckets = || exponential_buckets(0.001, 2.0, 15);
        Ok(Self {
            syncs: metrics.counters(
                Stability::Beta,
                "horizontal_pod_autoscaler_controller_reconciliations_total",
                ["action", "error"],
                "Syncs of autoscalers by action (scale_up, scale_down, none) and first error (spec, internal, none)",
            )?,
            sync_durations: metrics.histograms(
                Stability::Beta,
                "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
                ["action", "error"],
                buckets(),
                "Seconds that a sync of an autoscaler took, its metrics included, by action and first error",
            )?,
            computations: metrics.counters(
                Stability::Beta,
                "horizontal_pod_autoscaler_controller_metric_computation_total",
                ["action", "error", "metric_type"],
                "Evaluations of metrics by the proposed action, error and type of metric",
            )?,
            computation_durations: metrics.histograms(
                Stability::Beta,
                "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
                ["action", "error", "metric_type"],
                buckets(),
                "Seconds that an evaluation of a metric took, by the proposed action, error and type of metric",
            )?,
            autoscalers: metrics.gauge(
                Stability::Alpha,
                "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
                "Number of autoscalers",
            )?,
            desired: metrics.gauges(
                Stability::Alpha,
                "horizontal_pod_autoscaler_controller_desired_replicas",
                ["namespace", "hpa_name"],
                "Number of replicas that an autoscaler desires",
            )?,
        })
    }

    /// Counts a sync.
    pub(super) fn synced(&self, action: Action, error: ErrorLabel, took: Duration) {
        let labels = [action.as_str(), error.as_str()];
        self.syncs.of(labels).inc();
        self.sync_durations.of(labels).observe(took.as_secs_f64());
    }

    /// Counts the evaluation of a metric, if the status has `current` replicas.
    pub(super) fn computed(&self, computed: &Computed, current: i32) {
        let (action, error) = match computed.result {
            Ok(proposed) => (Action::of(current, proposed), ErrorLabel::None),
            Err(true) => (Action::None, ErrorLabel::Spec),
            Err(false) => (Action::None, ErrorLabel::Internal),
        };
        let labels = || [action.as_str().into(), error.as_str().into(), Cow::from(computed.type_.clone())];
        self.computations.of(labels()).inc();
        self.computation_durations.of(labels()).observe(computed.took.as_secs_f64());
    }

    /// Sets the number of autoscalers.
    pub(super) fn count(&self, autoscalers: usize) {
        self.autoscalers.set(i64::try_from(autoscalers).unwrap_or(i64::MAX));
    }

    /// Sets the number of replicas that an autoscaler desires.
    pub(super) fn desires(&self, autoscaler: &ObjectKey, replicas: i32) {
        self.desired.of(labels_of(autoscaler)).set(replicas.into());
    }

    /// Removes the metrics of a deleted autoscaler.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        self.desired.remove(labels_of(autoscaler));
    }
}

fn labels_of(autoscaler: &ObjectKey) -> [String; 2] {
    [autoscaler.namespace().unwrap_or_default().to_owned(), autoscaler.name().to_owned()]
}
