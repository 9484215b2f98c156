//! The metric of this controller.

use jiff::Timestamp;
use kcm_framework::metrics::{Gauges, MetricError, Stability};

use super::pair::Pair;

#[derive(Debug)]
pub(super) struct Metrics {
    failing_since: Gauges<1>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        Ok(Self {
            failing_since: metrics.gauges(
                Stability::Alpha,
                "controller_csr_signing_ca_failing_since_seconds",
                ["certificate_file"],
                "Time since which the files of a CA cannot be loaded, in seconds since 1970; 0 if they are loaded",
            )?,
        })
    }

    /// Shows since when the files of a pair cannot be loaded.
    pub(super) fn show(&self, pair: &Pair, since: Option<Timestamp>) {
        let file = pair.certificate.display().to_string();
        self.failing_since.of([file]).set(since.map_or(0, Timestamp::as_second));
    }
}
