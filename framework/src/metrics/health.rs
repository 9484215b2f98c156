//! The metrics of health checks, which `/metrics/slis` serves.

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The results of health checks.
///
/// # Upstream
/// `k8s.io/component-base/metrics/prometheus/slis`.
pub(super) struct HealthMetrics {
    registry: Mutex<Registry>,
    last: Family<Check, Gauge>,
    counts: Family<CheckResult, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Check {
    name: String,
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckResult {
    name: String,
    status: &'static str,
    r#type: &'static str,
}

impl Default for HealthMetrics {
    fn default() -> Self {
        let (mut registry, last, counts) = (Registry::default(), Family::default(), Family::default());
        let help = "[STABLE] The last result of a health check: 1 where it succeeded, or 0";
        registry.register("kubernetes_healthcheck", help, Family::clone(&last));
        registry.register("kubernetes_healthchecks", "[STABLE] The results of health checks", Family::clone(&counts));
        Self { registry: Mutex::new(registry), last, counts }
    }
}

impl HealthMetrics {
    pub(super) fn checked(&self, name: &str, path: &'static str, is_healthy: bool) {
        let status = if is_healthy { "success" } else { "error" };
        self.last.get_or_create(&Check { name: name.to_owned(), r#type: path }).set(i64::from(is_healthy));
        self.counts.get_or_create(&CheckResult { name: name.to_owned(), status, r#type: path }).inc();
    }

    /// The metrics as `prometheus_client` writes them.
    pub(super) fn encode(&self) -> String {
        let mut out = String::new();
        let written = text::encode(&mut out, &self.registry.lock());
        debug_assert!(written.is_ok(), "writing to a string never fails");
        out
    }
}
