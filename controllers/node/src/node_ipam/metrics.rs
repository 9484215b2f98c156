//! The metrics of this controller.

use kcm_framework::metrics::{Counters, FloatGauges, Gauges, Histograms, MetricError, Stability};

use super::blocks::Blocks;

#[derive(Debug)]
pub(super) struct Metrics {
    allocations: Counters<1>,
    releases: Counters<1>,
    most: Gauges<1>,
    usage: FloatGauges<1>,
    tries: Histograms<1>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let labels = ["clusterCIDR"];
        Ok(Self {
            allocations: metrics.counters(
                Stability::Alpha,
                "node_ipam_controller_cidrset_cidrs_allocations_total",
                labels,
                "Blocks that became occupied",
            )?,
            releases: metrics.counters(
                Stability::Alpha,
                "node_ipam_controller_cidrset_cidrs_releases_total",
                labels,
                "Blocks that became free",
            )?,
            // The name is upstream's.
            most: metrics.gauges(
                Stability::Alpha,
                "node_ipam_controller_cirdset_max_cidrs",
                labels,
                "Blocks of the cluster CIDR",
            )?,
            usage: metrics.float_gauges(
                Stability::Alpha,
                "node_ipam_controller_cidrset_usage_cidrs",
                labels,
                "Share of the blocks that are occupied, from 0 to 1",
            )?,
            tries: metrics.histograms(
                Stability::Alpha,
                "node_ipam_controller_cidrset_allocation_tries_per_request",
                labels,
                [1.0, 5.0, 25.0, 125.0, 625.0],
                "Occupied blocks that were skipped by an allocation",
            )?,
        })
    }

    /// Shows the state of the blocks. Returns `true` if some became free since the last call.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more precision")]
    pub(super) fn show(&self, blocks: &mut [Blocks]) -> bool {
        let mut has_released = false;
        for blocks in blocks {
            let label = || [blocks.cluster().to_string()];
            self.most.of(label()).set(i64::try_from(blocks.count()).unwrap_or(i64::MAX));
            self.usage.of(label()).set(blocks.occupied() as f64 / blocks.count() as f64);
            let (allocations, releases) = (self.allocations.of(label()), self.releases.of(label()));
            let changes = blocks.take_changes();
            allocations.inc_by(changes.occupied);
            releases.inc_by(changes.released);
            has_released |= changes.released > 0;
        }
        has_released
    }

    #[expect(clippy::cast_precision_loss, reason = "buckets need no more precision")]
    pub(super) fn allocated(&self, blocks: &[Blocks], skipped: &[u64]) {
        for (blocks, skipped) in blocks.iter().zip(skipped) {
            self.tries.of([blocks.cluster().to_string()]).observe(*skipped as f64);
        }
    }
}
