//! The metrics of this controller.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{PodManagementPolicy, StatefulSet};
use kcm_framework::metrics::{Gauges, MetricError, Stability};

use super::rollout::max_unavailable;
use crate::shared::stale_syncs;

/// The numbers of pods of each `StatefulSet` that are unavailable and that may be; with the gate
/// `MaxUnavailableStatefulSet`.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    max_unavailable: Gauges<3>,
    unavailable: Gauges<3>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let labels = ["statefulset_namespace", "statefulset_name", "pod_management_policy"];
        let max_unavailable = metrics.gauges(
            Stability::Alpha,
            "statefulset_controller_statefulset_max_unavailable",
            labels,
            "Number of pods of a StatefulSet that may be unavailable in a rollout",
        )?;
        let unavailable = metrics.gauges(
            Stability::Alpha,
            "statefulset_controller_statefulset_unavailable_replicas",
            labels,
            "Number of pods of a StatefulSet that are missing or not available",
        )?;
        let resources = [("", "pods"), ("", "persistentvolumeclaims"), ("apps", "statefulsets")];
        stale_syncs::register(metrics, "statefulset_controller_stale_sync_skips_total", &resources)?;
        Ok(Self { max_unavailable, unavailable })
    }

    /// Sets the number of pods that are unavailable, if it is known, and the number that may be.
    pub(super) fn observe(&self, set: &StatefulSet, unavailable: Option<usize>) {
        let labels = || labels(&set.metadata.key, set.pod_management_policy);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let allowed = max_unavailable(&set.update_strategy, set.replicas);
        self.max_unavailable.of(labels()).set(number(allowed));
        if let Some(unavailable) = unavailable {
            self.unavailable.of(labels()).set(number(unavailable));
        }
    }

    /// Removes the metrics of a `StatefulSet` that does not exist any more.
    pub(super) fn forget(&self, set: &ObjectKey) {
        for policy in [PodManagementPolicy::OrderedReady, PodManagementPolicy::Parallel] {
            self.max_unavailable.remove(labels(set, policy));
            self.unavailable.remove(labels(set, policy));
        }
    }
}

fn labels(set: &ObjectKey, policy: PodManagementPolicy) -> [String; 3] {
    let policy = match policy {
        PodManagementPolicy::OrderedReady => "OrderedReady",
        PodManagementPolicy::Parallel => "Parallel",
    };
    [set.namespace().unwrap_or_default(), set.name(), policy].map(str::to_owned)
}
