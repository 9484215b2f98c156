//! The metrics of this controller.

use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;

use super::plan::Removal;

/// The labels `namespace` and `reason`.
type Labels = [(&'static str, String); 2];

/// How many pods were deleted, and how many of these deletions failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    deletions: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let metrics = Self::default();
            // The text format appends `_total`.
            registry.register(
                "pod_gc_collector_force_delete_pods",
                "[ALPHA] How many pods the pod garbage collector deleted, failures included",
                metrics.deletions.clone(),
            );
            registry.register(
                "pod_gc_collector_force_delete_pod_errors",
                "[ALPHA] How many pods the pod garbage collector failed to delete",
                metrics.errors.clone(),
            );
            metrics
        })
    }

    /// Counts a deletion.
    pub(super) fn deleted(&self, removal: &Removal, has_failed: bool) {
        let namespace = removal.pod.metadata.key.namespace().unwrap_or_default().to_owned();
        let labels = [("namespace", namespace), ("reason", removal.reason.as_str().to_owned())];
        if has_failed {
            self.errors.get_or_create(&labels).inc();
        }
        self.deletions.get_or_create(&labels).inc();
    }
}
