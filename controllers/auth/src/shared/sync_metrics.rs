//! The metrics of the controllers that publish a CA.

use std::time::Duration;

use kcm_framework::client::ApiError;
use kcm_framework::metrics::{Counters, Histograms, MetricError, Stability, exponential_buckets};

/// Name and help of the families.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncFamilies {
    /// The number of reconciles.
    pub(crate) total: (&'static str, &'static str),
    /// Seconds that they took.
    pub(crate) seconds: (&'static str, &'static str),
}

/// Reconciles by the status code of the response.
#[derive(Debug)]
pub(crate) struct SyncMetrics {
    syncs: Counters<1>,
    seconds: Histograms<1>,
}

impl SyncMetrics {
    pub(crate) fn register(metrics: &kcm_framework::Metrics, families: &SyncFamilies) -> Result<Self, MetricError> {
        let ((total, of_total), (seconds, of_seconds)) = (families.total, families.seconds);
        let buckets = exponential_buckets(0.001, 2.0, 15);
        Ok(Self {
            syncs: metrics.counters(Stability::Alpha, total, ["code"], of_total)?,
            seconds: metrics.histograms(Stability::Alpha, seconds, ["code"], buckets, of_seconds)?,
        })
    }

    /// Observes a reconcile: with code 200 if it succeeded, and 500 if there was no response.
    pub(crate) fn synced(&self, error: Option<&ApiError>, took: Duration) {
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
        let families =
            SyncFamilies { total: ("publisher_sync_total", "total"), seconds: ("publisher_seconds", "seconds") };
        let metrics = SyncMetrics::register(&registry, &families).unwrap();
        metrics.synced(None, Duration::ZERO);
        metrics.synced(Some(&ApiError::new("POST", Cause::Transport("broken connection".into()))), Duration::ZERO);
        let text = registry.encode();
        for code in ["200", "500"] {
            let line = format!(r#"publisher_sync_total{{code="{code}"}} 1"#);
            assert!(text.contains(&line), "{line} is missing:\n{text}");
        }
    }
}
