//! The metrics, which the controllers of all kinds share.

use kcm_framework::prometheus_client::metrics::histogram::Histogram;

use crate::shared::stale_syncs;

/// The ages of deleted pods relative to the youngest pod.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    deletion_age_ratio: Histogram,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let deletion_age_ratio = Histogram::new([0.25, 0.5, 1.0, 2.0, 4.0, 8.0]);
            registry.register(
                "replicaset_controller_sorting_deletion_age_ratio",
                "[ALPHA] How many times as old as the youngest ready pod a pod is that is chosen for deletion",
                deletion_age_ratio.clone(),
            );
            // Upstream has it for replica sets alone.
            stale_syncs::register(registry, "replicaset_controller", &[("", "pods"), ("apps", "replicasets")]);
            Self { deletion_age_ratio }
        })
    }

    /// Observes the pods of one deletion.
    pub(super) fn observe_deletions(&self, age_ratios: &[i64]) {
        for ratio in age_ratios {
            #[expect(clippy::cast_precision_loss, reason = "a histogram up to 8 does not tell ratios of 2^53 apart")]
            self.deletion_age_ratio.observe(*ratio as f64);
        }
    }
}
