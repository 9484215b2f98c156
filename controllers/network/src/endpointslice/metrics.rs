//! The metrics of this controller.

use std::collections::HashMap;
use std::sync::Arc;

use kcm_api::ObjectKey;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use parking_lot::Mutex;

use super::hints::distribution::TrafficDistribution;
use crate::shared::slices::{Efficiency, Operation, Totals};

/// Upstream's default buckets.
const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The labels of a metric that has none. As upstream's, it is not shown before it is set.
type NoLabels = [(&'static str, &'static str); 0];

/// What the metrics show.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    added: Family<NoLabels, Histogram>,
    removed: Family<NoLabels, Histogram>,
    endpoints_desired: Family<NoLabels, Gauge>,
    slices: Family<NoLabels, Gauge>,
    slices_desired: Family<NoLabels, Gauge>,
    changes: Family<[(&'static str, &'static str); 1], Counter>,
    changed_per_sync: Family<[(&'static str, &'static str); 2], Histogram>,
    syncs: Family<[(&'static str, &'static str); 1], Counter>,
    services_by_distribution: Family<[(&'static str, &'static str); 1], Gauge>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    totals: Totals,
    distributions: HashMap<ObjectKey, TrafficDistribution>,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let per_sync: fn() -> Histogram = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
            let by_default: fn() -> Histogram = || Histogram::new(DEFAULT_BUCKETS);
            let metrics = Self {
                added: Family::new_with_constructor(per_sync),
                removed: Family::new_with_constructor(per_sync),
                endpoints_desired: Family::default(),
                slices: Family::default(),
                slices_desired: Family::default(),
                changes: Family::default(),
                changed_per_sync: Family::new_with_constructor(by_default),
                syncs: Family::default(),
                services_by_distribution: Family::default(),
                state: Arc::default(),
            };
            let registry = registry.sub_registry_with_prefix("endpoint_slice_controller");
            registry.register(
                "endpoints_added_per_sync",
                "[BETA] How many endpoints one sync of a service added",
                metrics.added.clone(),
            );
            registry.register(
                "endpoints_removed_per_sync",
                "[BETA] How many endpoints one sync of a service removed",
                metrics.removed.clone(),
            );
            registry.register(
                "endpoints_desired",
                "[BETA] How many endpoints all services should have",
                metrics.endpoints_desired.clone(),
            );
            registry.register(
                "num_endpoint_slices",
                "[BETA] How many endpoint slices all services have",
                metrics.slices.clone(),
            );
            registry.register(
                "desired_endpoint_slices",
                "[BETA] How many endpoint slices there would be, were all of them full",
                metrics.slices_desired.clone(),
            );
            registry.register(
                "changes",
                "[ALPHA] How often endpoint slices were created, updated and deleted",
                metrics.changes.clone(),
            );
            registry.register(
                "endpointslices_changed_per_sync",
                "[ALPHA] How many endpoint slices one sync of a service wrote",
                metrics.changed_per_sync.clone(),
            );
            registry.register(
                "syncs",
                "[ALPHA] How many syncs of services there were, by their result",
                metrics.syncs.clone(),
            );
            registry.register(
                "services_count_by_traffic_distribution",
                "[BETA] How many services there are with each traffic distribution",
                metrics.services_by_distribution.clone(),
            );
            metrics
        })
    }

    /// Counts a sync of a service.
    pub(super) fn synced(&self, has_failed: bool) {
        self.syncs.get_or_create(&[("result", if has_failed { "error" } else { "success" })]).inc();
    }

    /// Counts what one family of a service gains and loses.
    #[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
    pub(super) fn planned(&self, added: usize, removed: usize) {
        self.added.get_or_create(&[]).observe(added as f64);
        self.removed.get_or_create(&[]).observe(removed as f64);
    }

    /// Counts a written slice.
    pub(super) fn changed(&self, operation: Operation) {
        self.changes.get_or_create(&[("operation", operation.as_str())]).inc();
    }

    /// Counts the slices of one family that were written.
    #[expect(clippy::cast_precision_loss, reason = "numbers of slices are small")]
    pub(super) fn wrote(&self, by_topology: bool, distribution: Option<TrafficDistribution>, slices: usize) {
        let topology = if by_topology { "Auto" } else { "Disabled" };
        let distribution = distribution.map_or("", TrafficDistribution::as_str);
        let labels = [("topology", topology), ("traffic_distribution", distribution)];
        self.changed_per_sync.get_or_create(&labels).observe(slices as f64);
    }

    /// Sets what there is of a service.
    pub(super) fn set(&self, service: &ObjectKey, totals: Efficiency, distribution: Option<TrafficDistribution>) {
        let mut state = self.state.lock();
        let sum = state.totals.set(service, totals);
        self.show(sum);
        let before = match distribution {
            Some(distribution) => state.distributions.insert(service.clone(), distribution),
            None => state.distributions.remove(service),
        };
        self.count_distribution(before, -1);
        self.count_distribution(distribution, 1);
    }

    /// Takes away a service that was deleted.
    pub(super) fn remove(&self, service: &ObjectKey) {
        let mut state = self.state.lock();
        if let Some(sum) = state.totals.remove(service) {
            self.show(sum);
        }
        let before = state.distributions.remove(service);
        self.count_distribution(before, -1);
    }

    fn show(&self, sum: Efficiency) {
        self.endpoints_desired.get_or_create(&[]).set(sum.endpoints);
        self.slices.get_or_create(&[]).set(sum.slices);
        self.slices_desired.get_or_create(&[]).set(sum.desired_slices);
    }

    fn count_distribution(&self, distribution: Option<TrafficDistribution>, change: i64) {
        if let Some(distribution) = distribution {
            let labels = [("traffic_distribution", distribution.as_str())];
            self.services_by_distribution.get_or_create(&labels).inc_by(change);
        }
    }
}
