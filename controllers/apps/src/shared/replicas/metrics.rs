//! The metrics, which the controllers of all kinds share.

use kcm_framework::metrics::{Histogram, MetricError, Stability};

use crate::shared::stale_syncs;

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    deletion_age_ratio: Histogram,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        // Upstream has it for ReplicaSets alone.
        let resources = [("", "pods"), ("apps", "replicasets")];
        stale_syncs::register(metrics, "replicaset_controller_stale_sync_skips_total", &resources)?;
        let deletion_age_ratio = metrics.histogram(
            Stability::Alpha,
            "replicaset_controller_sorting_deletion_age_ratio",
            [0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
            "Age of a pod that is chosen for deletion, divided by the age of the youngest ready pod",
        )?;
        Ok(Self { deletion_age_ratio })
    }

    /// Observes the pods of one deletion.
    pub(super) fn observe_deletions(&self, age_ratios: &[i64]) {
        for ratio in age_ratios {
            #[expect(clippy::cast_precision_loss, reason = "a histogram up to 8 does not tell ratios of 2^53 apart")]
            self.deletion_age_ratio.observe(*ratio as f64);
        }
    }
}
