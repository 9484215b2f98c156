//! The metrics of this controller.

use kcm_api::ObjectKey;
use kcm_api::views::{PodManagementPolicy, StatefulSet};
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;

use super::rollout::max_unavailable;
use crate::shared::stale_syncs;

/// The labels of a stateful set.
type SetLabels = [(&'static str, String); 3];

/// How many pods of each stateful set are and may be unavailable; with the gate `MaxUnavailableStatefulSet`.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics {
    max_unavailable: Family<SetLabels, Gauge>,
    unavailable: Family<SetLabels, Gauge>,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let metrics = Self::default();
            registry.register(
                "statefulset_controller_statefulset_max_unavailable",
                "[ALPHA] How many pods of a stateful set may be unavailable in a rollout",
                metrics.max_unavailable.clone(),
            );
            registry.register(
                "statefulset_controller_statefulset_unavailable_replicas",
                "[ALPHA] How many pods of a stateful set are missing or not available",
                metrics.unavailable.clone(),
            );
            let resources = [("", "pods"), ("", "persistentvolumeclaims"), ("apps", "statefulsets")];
            stale_syncs::register(registry, "statefulset_controller", &resources);
            metrics
        })
    }

    /// Sets how many pods of a stateful set are unavailable, if that is known, and how many may be.
    pub(super) fn observe(&self, set: &StatefulSet, unavailable: Option<usize>) {
        let labels = labels(&set.metadata.key, set.pod_management_policy);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let allowed = max_unavailable(&set.update_strategy, set.replicas);
        self.max_unavailable.get_or_create(&labels).set(number(allowed));
        if let Some(unavailable) = unavailable {
            self.unavailable.get_or_create(&labels).set(number(unavailable));
        }
    }

    /// Forgets a stateful set that does not exist any more.
    pub(super) fn forget(&self, set: &ObjectKey) {
        for policy in [PodManagementPolicy::OrderedReady, PodManagementPolicy::Parallel] {
            let labels = labels(set, policy);
            self.max_unavailable.remove(&labels);
            self.unavailable.remove(&labels);
        }
    }
}

fn labels(set: &ObjectKey, policy: PodManagementPolicy) -> SetLabels {
    let policy = match policy {
        PodManagementPolicy::OrderedReady => "OrderedReady",
        PodManagementPolicy::Parallel => "Parallel",
    };
    [
        ("statefulset_namespace", set.namespace().unwrap_or_default().to_owned()),
        ("statefulset_name", set.name().to_owned()),
        ("pod_management_policy", policy.to_owned()),
    ]
}
