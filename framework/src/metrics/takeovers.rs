//! The metrics of takeovers, which upstream does not have.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

const SECONDS: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0];

/// The time that each cache took to show all writes of the last leader, by evidence.
#[derive(Clone)]
pub(crate) struct TakeoverMetrics(Family<ByEvidence, Histogram>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEvidence {
    evidence: &'static str,
}

impl TakeoverMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self(Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram));
        registry.register(
            "takeover_cache_current_seconds",
            "Time from the start of leading until a cache showed all writes of the last leader, by evidence",
            metrics.0.clone(),
        );
        metrics
    }

    pub(crate) fn observe(&self, evidence: &'static str, took: Duration) {
        self.0.get_or_create(&ByEvidence { evidence }).observe(took.as_secs_f64());
    }
}
