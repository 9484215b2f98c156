//! The metrics of this controller.

use std::time::Duration;

use kcm_framework::metrics::{Counters, Histograms, MetricError, Stability, exponential_buckets};

pub(super) struct Metrics {
    processed: Counters<1>,
    errors: Counters<1>,
    duration: Histograms<1>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        Ok(Self {
            processed: metrics.counters(
                Stability::Alpha,
                "resourcepoolstatusrequest_controller_requests_processed_total",
                ["driver_name"],
                "ResourcePoolStatusRequests that were processed, with and without success",
            )?,
            errors: metrics.counters(
                Stability::Alpha,
                "resourcepoolstatusrequest_controller_request_processing_errors_total",
                ["driver_name"],
                "ResourcePoolStatusRequests whose status could not be written",
            )?,
            duration: metrics.histograms(
                Stability::Alpha,
                "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
                ["driver_name"],
                exponential_buckets(0.001, 2.0, 15),
                "Seconds that a ResourcePoolStatusRequest took",
            )?,
        })
    }

    pub(super) fn processed(&self, driver: &str, is_success: bool, duration: Duration) {
        self.processed.of([driver.to_owned()]).inc();
        if !is_success {
            self.errors.of([driver.to_owned()]).inc();
        }
        self.duration.of([driver.to_owned()]).observe(duration.as_secs_f64());
    }
}
