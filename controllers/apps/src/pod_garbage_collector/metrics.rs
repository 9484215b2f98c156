//! The metrics of this controller.

use std::borrow::Cow;

use kcm_framework::metrics::{Counters, MetricError, Stability};

use super::plan::Removal;

#[derive(Debug, Clone)]
pub(super) struct Metrics {
    deletions: Counters<2>,
    errors: Counters<2>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let labels = ["namespace", "reason"];
        Ok(Self {
            deletions: metrics.counters(
                Stability::Alpha,
                "pod_gc_collector_force_delete_pods_total",
                labels,
                "Pods that the pod garbage collector deleted, including failed deletions",
            )?,
            errors: metrics.counters(
                Stability::Alpha,
                "pod_gc_collector_force_delete_pod_errors_total",
                labels,
                "Pods that the pod garbage collector failed to delete",
            )?,
        })
    }

    pub(super) fn deleted(&self, removal: &Removal, has_failed: bool) {
        let namespace = removal.pod.metadata.key.namespace().unwrap_or_default();
        let labels = || [Cow::from(namespace.to_owned()), removal.reason.as_str().into()];
        if has_failed {
            self.errors.of(labels()).inc();
        }
        self.deletions.of(labels()).inc();
    }
}
