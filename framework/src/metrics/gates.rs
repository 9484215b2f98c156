//! The metric of feature gates.

use std::fmt;

use kcm_config::{Effective, Gate, Gates};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The state of each feature gate, computed at each scrape: nothing is kept for the hundreds that stay at their defaults.
#[derive(Debug)]
struct FeatureGates {
    gates: Gates,
    own: Vec<Gate>,
}

/// Registers the metric of the feature gates of `settings`.
pub(super) fn register(settings: &Effective, registry: &mut Registry) {
    let own = settings.known_gates().to_vec();
    registry.register_collector(Box::new(FeatureGates { gates: settings.gates().clone(), own }));
}

impl Collector for FeatureGates {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "[BETA] Whether each feature gate is on: 1 or 0, with its stage in Kubernetes";
        let mut metric = encoder.encode_descriptor("kubernetes_feature_enabled", help, None, MetricType::Gauge)?;
        for state in self.gates.states(&self.own) {
            let labels = [("name", state.gate.name), ("stage", state.gate.stage.label())];
            ConstGauge::new(i64::from(state.is_on)).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
