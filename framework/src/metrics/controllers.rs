//! The metric of running controllers.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Value of the label `manager`.
const MANAGER: &str = "kube-controller-manager";

type States = dyn Fn() -> Vec<(&'static str, bool)> + Send + Sync;

/// The controllers that run, read at each scrape.
struct RunningControllers(Box<States>);

pub(super) fn register(
    states: impl Fn() -> Vec<(&'static str, bool)> + Send + Sync + 'static,
    registry: &mut Registry,
) {
    registry.register_collector(Box::new(RunningControllers(Box::new(states))));
}

impl Collector for RunningControllers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "[BETA] Whether a controller of the manager runs: 1 or 0";
        let mut metric = encoder.encode_descriptor("running_managed_controllers", help, None, MetricType::Gauge)?;
        for (name, runs) in (self.0)() {
            let labels = [("manager", MANAGER), ("name", name)];
            ConstGauge::new(i64::from(runs)).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl fmt::Debug for RunningControllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunningControllers")
    }
}
