//! The metrics of this controller.

use std::collections::HashMap;

use kcm_framework::api::ObjectKey;
use kcm_framework::metrics::{
    Counters, DEFAULT_BUCKETS, Gauges, Histograms, MetricError, Stability, exponential_buckets,
};
use parking_lot::Mutex;

use super::hints::distribution::TrafficDistribution;
use crate::shared::slices::{Efficiency, Operation, Totals};

/// Upstream exposes no metric before it is set, so metrics without labels are families.
#[derive(Debug)]
pub(super) struct Metrics {
    added: Histograms<0>,
    removed: Histograms<0>,
    endpoints_desired: Gauges<0>,
    slices: Gauges<0>,
    slices_desired: Gauges<0>,
    changes: Counters<1>,
    changed_per_sync: Histograms<2>,
    syncs: Counters<1>,
    services_by_distribution: Gauges<1>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    totals: Totals,
    distributions: HashMap<ObjectKey, TrafficDistribution>,
    /// The number of services by distribution, in the order of its declaration.
    counts: [i64; 3],
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let per_sync = exponential_buckets(2.0, 2.0, 15);
        Ok(Self {
            added: metrics.histograms(
                Stability::Beta,
                "endpoint_slice_controller_endpoints_added_per_sync",
                [],
                per_sync.clone(),
                "Endpoints that one reconcile of a Service added",
            )?,
            removed: metrics.histograms(
                Stability::Beta,
                "endpoint_slice_controller_endpoints_removed_per_sync",
                [],
                per_sync,
                "Endpoints that one reconcile of a Service removed",
            )?,
            endpoints_desired: metrics.gauges(
                Stability::Beta,
                "endpoint_slice_controller_endpoints_desired",
                [],
                "Desired endpoints of all Services",
            )?,
            slices: metrics.gauges(
                Stability::Beta,
                "endpoint_slice_controller_num_endpoint_slices",
                [],
                "EndpointSlices of all Services",
            )?,
            slices_desired: metrics.gauges(
                Stability::Beta,
                "endpoint_slice_controller_desired_endpoint_slices",
                [],
                "EndpointSlices that would be enough if all were full",
            )?,
            changes: metrics.counters(
                Stability::Alpha,
                "endpoint_slice_controller_changes_total",
                ["operation"],
                "EndpointSlices that were created, updated and deleted",
            )?,
            changed_per_sync: metrics.histograms(
                Stability::Alpha,
                "endpoint_slice_controller_endpointslices_changed_per_sync",
                ["topology", "traffic_distribution"],
                DEFAULT_BUCKETS,
                "EndpointSlices that one reconcile of a Service wrote",
            )?,
            syncs: metrics.counters(
                Stability::Alpha,
                "endpoint_slice_controller_syncs_total",
                ["result"],
                "Reconciles of Services by their result",
            )?,
            services_by_distribution: metrics.gauges(
                Stability::Beta,
                "endpoint_slice_controller_services_count_by_traffic_distribution",
                ["traffic_distribution"],
                "Services with each traffic distribution",
            )?,
            state: Mutex::default(),
        })
    }

    pub(super) fn synced(&self, has_failed: bool) {
        self.syncs.of([if has_failed { "error" } else { "success" }]).inc();
    }

    /// Observes the endpoints that one family of a service gains and loses.
    #[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
    pub(super) fn planned(&self, added: usize, removed: usize) {
        self.added.get().observe(added as f64);
        self.removed.get().observe(removed as f64);
    }

    pub(super) fn changed(&self, operation: Operation) {
        self.changes.of([operation.as_str()]).inc();
    }

    /// Observes the number of slices of one family that were written.
    #[expect(clippy::cast_precision_loss, reason = "numbers of slices are small")]
    pub(super) fn wrote(&self, by_topology: bool, distribution: Option<TrafficDistribution>, slices: usize) {
        let topology = if by_topology { "Auto" } else { "Disabled" };
        let distribution = distribution.map_or("", TrafficDistribution::as_str);
        self.changed_per_sync.of([topology, distribution]).observe(slices as f64);
    }

    /// Sets the numbers of a service.
    pub(super) fn set(&self, service: &ObjectKey, totals: Efficiency, distribution: Option<TrafficDistribution>) {
        let mut state = self.state.lock();
        let sum = state.totals.set(service, totals);
        self.show(sum);
        let before = match distribution {
            Some(distribution) => state.distributions.insert(service.clone(), distribution),
            None => state.distributions.remove(service),
        };
        self.count_services(before, -1, &mut state);
        self.count_services(distribution, 1, &mut state);
    }

    /// Removes a service that was deleted.
    pub(super) fn remove(&self, service: &ObjectKey) {
        let mut state = self.state.lock();
        if let Some(sum) = state.totals.remove(service) {
            self.show(sum);
        }
        let before = state.distributions.remove(service);
        self.count_services(before, -1, &mut state);
    }

    fn show(&self, sum: Efficiency) {
        self.endpoints_desired.get().set(sum.endpoints);
        self.slices.get().set(sum.slices);
        self.slices_desired.get().set(sum.desired_slices);
    }

    /// Counts services of a distribution. The gauge is set and not changed, because it outlives this value when the
    /// controller is initialized again.
    fn count_services(&self, distribution: Option<TrafficDistribution>, change: i64, state: &mut State) {
        if let Some(distribution) = distribution {
            let count = &mut state.counts[distribution as usize];
            *count += change;
            self.services_by_distribution.of([distribution.as_str()]).set(*count);
        }
    }
}
