//! The metrics of this controller.

use std::time::Duration;

use kcm_framework::client::ApiError;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// How many namespaces were synced, and how long that took, by the code of the answer.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    syncs: Family<Answered, Counter>,
    seconds: Family<Answered, Histogram>,
}

/// The label `code`.
type Answered = [(&'static str, String); 1];

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let syncs = Family::default();
            let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
            let seconds = Family::new_with_constructor(histogram);
            registry.register(
                // The text format appends `_total`.
                "root_ca_cert_publisher_sync",
                "[ALPHA] Number of namespaces synced by the root CA publisher, by the code of the answer",
                syncs.clone(),
            );
            registry.register(
                "root_ca_cert_publisher_sync_duration_seconds",
                "[ALPHA] How long in seconds the sync of a namespace takes, by the code of the answer",
                seconds.clone(),
            );
            Self { syncs, seconds }
        })
    }

    /// Counts the sync of a namespace: 200 where it succeeds, and 500 where there is no answer.
    pub(super) fn synced(&self, error: Option<&ApiError>, took: Duration) {
        let failed = |error: &ApiError| error.status().map(|status| status.code).filter(|code| *code != 0);
        let code = error.map_or(200, |error| failed(error).unwrap_or(500)).to_string();
        let labels = [("code", code)];
        self.syncs.get_or_create(&labels).inc();
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
