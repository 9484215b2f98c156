//! The metrics of this controller.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::evaluate::Computed;

type Labels<const N: usize> = [(&'static str, String); N];
type Durations<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// What a sync did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    ScaleUp,
    ScaleDown,
    None,
}

impl Action {
    /// What it is to go from so many replicas to so many.
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

/// What was wrong with a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorLabel {
    /// The spec of the autoscaler.
    Spec,
    /// A calculation, or a request.
    Internal,
    /// Nothing.
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

/// Counters, durations and gauges of syncs, by upstream's names.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    syncs: Family<Labels<2>, Counter>,
    sync_durations: Durations<2>,
    computations: Family<Labels<3>, Counter>,
    computation_durations: Durations<3>,
    autoscalers: Gauge<i64, AtomicI64>,
    desired: Family<Labels<2>, Gauge>,
}

impl Metrics {
    /// Registers the metrics.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
            let metrics = Self {
                syncs: Family::default(),
                sync_durations: Family::new_with_constructor(histogram),
                computations: Family::default(),
                computation_durations: Family::new_with_constructor(histogram),
                autoscalers: Gauge::default(),
                desired: Family::default(),
            };
            let named = |name: &str| format!("horizontal_pod_autoscaler_controller_{name}");
            // The text format appends `_total`.
            registry.register(
                named("reconciliations"),
                "[BETA] Syncs of autoscalers by what was scaled (scale_up, scale_down, none) and what was wrong first (spec, internal, none)",
                metrics.syncs.clone(),
            );
            registry.register(
                named("reconciliation_duration_seconds"),
                "[BETA] Seconds that a sync of an autoscaler took, its metrics included, by what was scaled and what was wrong",
                metrics.sync_durations.clone(),
            );
            registry.register(
                named("metric_computation"),
                "[BETA] Metrics that were evaluated, by their type, what they call for, and what was wrong",
                metrics.computations.clone(),
            );
            registry.register(
                named("metric_computation_duration_seconds"),
                "[BETA] Seconds that a metric took, by its type, what it calls for, and what was wrong",
                metrics.computation_durations.clone(),
            );
            registry.register(
                named("num_horizontal_pod_autoscalers"),
                "[ALPHA] How many autoscalers there are",
                metrics.autoscalers.clone(),
            );
            registry.register(
                named("desired_replicas"),
                "[ALPHA] How many replicas each autoscaler wants",
                metrics.desired.clone(),
            );
            metrics
        })
    }

    /// Counts a sync.
    pub(super) fn synced(&self, action: Action, error: ErrorLabel, took: Duration) {
        let labels = [("action", action.as_str().to_owned()), ("error", error.as_str().to_owned())];
        self.syncs.get_or_create(&labels).inc();
        self.sync_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts the evaluation of a metric, where the status has `current` replicas.
    pub(super) fn computed(&self, computed: &Computed, current: i32) {
        let (action, error) = match computed.result {
            Ok(proposed) => (Action::of(current, proposed), ErrorLabel::None),
            Err(true) => (Action::None, ErrorLabel::Spec),
            Err(false) => (Action::None, ErrorLabel::Internal),
        };
        let labels = [
            ("action", action.as_str().to_owned()),
            ("error", error.as_str().to_owned()),
            ("metric_type", computed.type_.clone()),
        ];
        self.computations.get_or_create(&labels).inc();
        self.computation_durations.get_or_create(&labels).observe(computed.took.as_secs_f64());
    }

    /// Sets how many autoscalers there are.
    pub(super) fn count(&self, autoscalers: i64) {
        self.autoscalers.set(autoscalers);
    }

    /// Sets how many replicas an autoscaler wants.
    pub(super) fn desires(&self, autoscaler: &ObjectKey, replicas: i32) {
        self.desired.get_or_create(&Self::labels(autoscaler)).set(replicas.into());
    }

    /// Removes what is known of an autoscaler that is gone.
    pub(super) fn forget(&self, autoscaler: &ObjectKey) {
        self.desired.remove(&Self::labels(autoscaler));
    }

    fn labels(autoscaler: &ObjectKey) -> Labels<2> {
        let namespace = autoscaler.namespace().unwrap_or_default().to_owned();
        [("namespace", namespace), ("hpa_name", autoscaler.name().to_owned())]
    }
}
