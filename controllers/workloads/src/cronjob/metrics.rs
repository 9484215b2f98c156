//! The metrics of this controller.

use jiff::SignedDuration;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// How late jobs are created.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    creation_skew: Histogram,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let creation_skew = Histogram::new(exponential_buckets(1.0, 2.0, 10));
            registry.register(
                "cronjob_controller_job_creation_skew_duration_seconds",
                "[STABLE] Seconds from when a job was due to its creation",
                creation_skew.clone(),
            );
            Self { creation_skew }
        })
    }

    /// Observes the creation of a job that long after it was due.
    pub(super) fn created(&self, after: SignedDuration) {
        self.creation_skew.observe(after.as_secs_f64());
    }
}
