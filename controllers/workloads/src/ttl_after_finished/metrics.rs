//! The metrics of this controller.

use jiff::SignedDuration;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// How late jobs are deleted.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    deletion_duration: Histogram,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let deletion_duration = Histogram::new(exponential_buckets(0.1, 2.0, 14));
            registry.register(
                "ttl_after_finished_controller_job_deletion_duration_seconds",
                "[ALPHA] Seconds from the end of the time to live of a job to its deletion",
                deletion_duration.clone(),
            );
            Self { deletion_duration }
        })
    }

    /// Observes the deletion of a job that long after its time to live.
    pub(super) fn deleted(&self, after: SignedDuration) {
        self.deletion_duration.observe(after.as_secs_f64());
    }
}
