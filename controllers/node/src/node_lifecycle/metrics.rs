//! The metrics of this controller.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kcm_framework::api::InternedStr;
use kcm_framework::metrics::{Counters, FloatGauges, Gauges, Histogram, MetricError, Stability, exponential_buckets};
use parking_lot::Mutex;

use super::zone::ZoneCount;

#[derive(Debug)]
pub(super) struct Metrics {
    zone_health: FloatGauges<1>,
    zone_size: Gauges<1>,
    unhealthy: Gauges<1>,
    evictions: Counters<1>,
    node: Histogram,
    all_nodes: Histogram,
    /// The zones that were shown.
    zones: Mutex<BTreeSet<InternedStr>>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let labels = ["zone"];
        Ok(Self {
            zone_health: metrics.float_gauges(
                Stability::Alpha,
                "node_collector_zone_health",
                labels,
                "Percentage of the nodes of a zone that are ready",
            )?,
            zone_size: metrics.gauges(Stability::Alpha, "node_collector_zone_size", labels, "Nodes of a zone")?,
            unhealthy: metrics.gauges(
                Stability::Alpha,
                "node_collector_unhealthy_nodes_in_zone",
                labels,
                "Nodes of a zone that are not ready",
            )?,
            evictions: metrics.counters(
                Stability::Stable,
                "node_collector_evictions_total",
                labels,
                "Nodes that got a taint that evicts their pods",
            )?,
            node: metrics.histogram(
                Stability::Alpha,
                "node_collector_update_node_health_duration_seconds",
                exponential_buckets(0.001, 4.0, 8),
                "Seconds that a look at the health of a node took",
            )?,
            all_nodes: metrics.histogram(
                Stability::Alpha,
                "node_collector_update_all_nodes_health_duration_seconds",
                exponential_buckets(0.01, 4.0, 8),
                "Seconds that a look at the health of all nodes took",
            )?,
            zones: Mutex::default(),
        })
    }

    /// Shows the Nodes of each zone. A zone without Nodes is as healthy as can be.
    #[expect(clippy::cast_precision_loss, reason = "a percentage needs no more precision")]
    pub(super) fn counted(&self, counts: &BTreeMap<InternedStr, ZoneCount>) {
        let mut zones = self.zones.lock();
        zones.extend(counts.keys().cloned());
        for zone in &*zones {
            let count = counts.get(zone).copied().unwrap_or_default();
            let share = if count.nodes() == 0 { 1.0 } else { count.ready as f64 / count.nodes() as f64 };
            let label = || [zone.to_string()];
            self.zone_health.of(label()).set(100.0 * share);
            self.zone_size.of(label()).set(i64::try_from(count.nodes()).unwrap_or(i64::MAX));
            self.unhealthy.of(label()).set(i64::try_from(count.not_ready).unwrap_or(i64::MAX));
            // The counter is exposed from the beginning.
            drop(self.evictions.of(label()));
        }
    }

    pub(super) fn tainted(&self, zone: &InternedStr) {
        self.evictions.of([zone.to_string()]).inc();
    }

    pub(super) fn looked_at_node(&self, took: Duration) {
        self.node.observe(took.as_secs_f64());
    }

    pub(super) fn looked_at_all(&self, took: Duration) {
        self.all_nodes.observe(took.as_secs_f64());
    }
}
