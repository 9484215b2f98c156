//! The metrics of this controller.

use std::time::Duration;

use kcm_framework::metrics::{Counter, Histogram, MetricError, Stability};

const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0];

#[derive(Debug)]
pub(super) struct Metrics {
    deletions: Counter,
    duration: Histogram,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        Ok(Self {
            deletions: metrics.counter(
                Stability::Alpha,
                "device_taint_eviction_controller_pod_deletions_total",
                "Pods that were deleted because of a taint of a device",
            )?,
            duration: metrics.histogram(
                Stability::Alpha,
                "device_taint_eviction_controller_pod_deletion_duration_seconds",
                BUCKETS,
                "Seconds from the time at which a pod was due for eviction to its deletion",
            )?,
        })
    }

    /// Counts an eviction that was overdue for that time.
    pub(super) fn evicted(&self, overdue: Duration) {
        self.deletions.inc();
        self.duration.observe(overdue.as_secs_f64());
    }
}
