//! The metrics of supervision, which upstream does not have: computed at each scrape, without disabled controllers.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::record::Record;
use super::status::{ControllerState, ControllerStatus, LoopStatus};

/// The states, failures and stalls of the controllers of one manager.
#[derive(Debug)]
pub(crate) struct ControllerMetrics(Vec<Arc<Record>>);

impl ControllerMetrics {
    /// The metrics of the controllers with these records.
    pub(crate) fn of(records: &[Arc<Record>]) -> Self {
        Self(records.to_vec())
    }
}

/// The name, the help and the value of a gauge that each loop has.
type LoopGauge = (&'static str, &'static str, fn(&LoopStatus) -> f64);

const OF_LOOPS: [LoopGauge; 4] = [
    (
        "controller_loop_stalled_seconds",
        "Seconds for which each loop has made no progress although it has work",
        |one| one.stall.as_ref().map_or(0.0, |stall| stall.duration.as_secs_f64()),
    ),
    ("controller_keys_awaiting_writes", "Keys that wait until the caches show their own writes", |one| {
        number(one.held.awaiting_writes)
    }),
    (
        "controller_keys_awaiting_writes_longest_seconds",
        "Seconds for which the first of the keys that wait for their own writes has waited",
        |one| one.held.longest_wait.as_secs_f64(),
    ),
    ("controller_keys_undecodable", "Keys that wait until an object that they are about can be decoded", |one| {
        number(one.held.undecodable)
    }),
];

impl Collector for ControllerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let controllers = self.0.iter().map(|record| record.status());
        // Series of controllers that do not run would say nothing; failures of the past stay.
        let is_shown = |one: &ControllerStatus| one.failures > 0 || !matches!(one.state, ControllerState::Disabled(_));
        let controllers: Vec<ControllerStatus> = controllers.filter(is_shown).collect();
        let help = "State of each controller: 1 for its current state";
        let mut states = encoder.encode_descriptor("controller_state", help, None, MetricType::Gauge)?;
        for one in &controllers {
            let labels = [("controller", one.name), ("state", one.state.label())];
            ConstGauge::new(1_i64).encode(states.encode_family(&labels)?)?;
        }
        let help = "Failures and panics of the initialization and of the loops of each controller";
        let mut failures = encoder.encode_descriptor("controller_failures", help, None, MetricType::Counter)?;
        for one in &controllers {
            ConstCounter::new(one.failures).encode(failures.encode_family(&[("controller", one.name)])?)?;
        }
        for (name, help, value) in OF_LOOPS {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (controller, each) in controllers.iter().flat_map(|one| one.loops.iter().map(|each| (one.name, each))) {
                let labels = [("controller", controller), ("name", each.name)];
                ConstGauge::new(value(each)).encode(gauge.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// A number of keys as the value of a gauge, exact beneath four billion.
fn number(keys: usize) -> f64 {
    u32::try_from(keys).unwrap_or(u32::MAX).into()
}
