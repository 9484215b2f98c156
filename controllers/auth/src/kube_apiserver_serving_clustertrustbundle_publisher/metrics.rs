//! The metrics of this controller.

use std::time::Duration;

use kcm_framework::client::ApiError;
use kcm_framework::metrics::{Counters, Histograms, MetricError, Stability, exponential_buckets};

#[derive(Debug)]
pub(super) struct Metrics {
    syncs: Counters<1>,
    seconds: Histograms<1>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        Ok(Self {
            syncs: metrics.counters(
                Stability::Alpha,
                "clustertrustbundle_publisher_sync_total",
                ["code"],
                "Reconciles by the trust bundle publisher, by the status code of the response",
            )?,
            seconds: metrics.histograms(
                Stability::Alpha,
                "clustertrustbundle_publisher_sync_duration_seconds",
                ["code"],
                exponential_buckets(0.001, 2.0, 15),
                "Seconds that a reconcile by the trust bundle publisher took, by the status code of the response",
            )?,
        })
    }

    /// Observes a reconcile: with code 200 if it succeeded, and 500 if there was no response.
    pub(super) fn synced(&self, error: Option<&ApiError>, took: Duration) {
        let failed = |error: &ApiError| error.status().map(|status| status.code).filter(|code| *code != 0);
        let code = error.map_or(200, |error| failed(error).unwrap_or(500)).to_string();
        self.syncs.of([code.clone()]).inc();
        self.seconds.of([code]).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use kcm_framework::client::Cause;

    use super::*;

    #[test]
    fn the_code_is_that_of_the_response_and_500_without_one() {
        let registry = kcm_framework::Metrics::new();
        let metrics = Metrics::register(&registry).unwrap();
        metrics.synced(None, Duration::ZERO);
        metrics.synced(Some(&ApiError::new("POST", Cause::Transport("broken connection".into()))), Duration::ZERO);
        let text = registry.encode();
        for code in ["200", "500"] {
            let line = format!(r#"clustertrustbundle_publisher_sync_total{{code="{code}"}} 1"#);
            assert!(text.contains(&line), "{line} is missing:\n{text}");
        }
    }
}
