//! The metrics of this controller.

use kcm_framework::metrics::{Counter, MetricError, Stability};

#[derive(Debug)]
pub(super) struct Metrics {
    created: Counter,
    failed: Counter,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        Ok(Self {
            created: metrics.counter(
                Stability::Alpha,
                "ephemeral_volume_controller_create_total",
                "Requests to create the claim of an ephemeral volume",
            )?,
            failed: metrics.counter(
                Stability::Alpha,
                "ephemeral_volume_controller_create_failures_total",
                "Requests to create the claim of an ephemeral volume that failed",
            )?,
        })
    }

    pub(super) fn requested(&self, has_failed: bool) {
        self.created.inc();
        if has_failed {
            self.failed.inc();
        }
    }
}
