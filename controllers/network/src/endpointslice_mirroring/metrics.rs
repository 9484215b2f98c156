//! The metrics of this controller.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_framework::metrics::{Counters, Gauges, Histograms, MetricError, Stability, exponential_buckets};
use parking_lot::Mutex;

use super::plan::Plan;
use crate::shared::slices::{Efficiency, Operation, Totals};

/// Upstream exposes no metric before it is set, so metrics without labels are families.
#[derive(Debug)]
pub(super) struct Metrics {
    added: Histograms<0>,
    updated: Histograms<0>,
    removed: Histograms<0>,
    skipped: Histograms<0>,
    seconds: Histograms<0>,
    endpoints_desired: Gauges<0>,
    slices: Gauges<0>,
    slices_desired: Gauges<0>,
    changes: Counters<1>,
    totals: Mutex<Totals>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        let per_sync =
            |name, help| metrics.histograms(Stability::Alpha, name, [], exponential_buckets(2.0, 2.0, 15), help);
        let gauges = |name, help| metrics.gauges(Stability::Alpha, name, [], help);
        Ok(Self {
            added: per_sync(
                "endpoint_slice_mirroring_controller_endpoints_added_per_sync",
                "Endpoints that one reconcile of Endpoints added",
            )?,
            updated: per_sync(
                "endpoint_slice_mirroring_controller_endpoints_updated_per_sync",
                "Endpoints that one reconcile of Endpoints updated",
            )?,
            removed: per_sync(
                "endpoint_slice_mirroring_controller_endpoints_removed_per_sync",
                "Endpoints that one reconcile of Endpoints removed",
            )?,
            skipped: per_sync(
                "endpoint_slice_mirroring_controller_addresses_skipped_per_sync",
                "Addresses that one reconcile of Endpoints skipped because they are invalid or too many",
            )?,
            seconds: metrics.histograms(
                Stability::Alpha,
                "endpoint_slice_mirroring_controller_endpoints_sync_duration",
                [],
                exponential_buckets(0.001, 2.0, 15),
                "Seconds that one reconcile of Endpoints took",
            )?,
            endpoints_desired: gauges(
                "endpoint_slice_mirroring_controller_endpoints_desired",
                "Desired mirrored endpoints",
            )?,
            slices: gauges("endpoint_slice_mirroring_controller_num_endpoint_slices", "Mirrored EndpointSlices")?,
            slices_desired: gauges(
                "endpoint_slice_mirroring_controller_desired_endpoint_slices",
                "Mirrored EndpointSlices that would be enough if all were full",
            )?,
            changes: metrics.counters(
                Stability::Alpha,
                "endpoint_slice_mirroring_controller_changes_total",
                ["operation"],
                "Mirrored EndpointSlices that were created, updated and deleted",
            )?,
            totals: Mutex::default(),
        })
    }

    pub(super) fn synced(&self, took: Duration) {
        self.seconds.get().observe(took.as_secs_f64());
    }

    /// Observes the endpoints that slices gain and lose.
    #[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
    pub(super) fn planned(&self, plan: &Plan) {
        self.added.get().observe(plan.added as f64);
        self.updated.get().observe(plan.updated as f64);
        self.removed.get().observe(plan.removed as f64);
        self.skipped.get().observe(plan.skipped as f64);
    }

    pub(super) fn changed(&self, operation: Operation) {
        self.changes.of([operation.as_str()]).inc();
    }

    /// Sets the numbers of endpoints.
    pub(super) fn set(&self, endpoints: &ObjectKey, efficiency: Efficiency) {
        let sum = self.totals.lock().set(endpoints, efficiency);
        self.show(sum);
    }

    /// Removes endpoints that are not mirrored any more.
    pub(super) fn remove(&self, endpoints: &ObjectKey) {
        let sum = self.totals.lock().remove(endpoints);
        if let Some(sum) = sum {
            self.show(sum);
        }
    }

    fn show(&self, sum: Efficiency) {
        self.endpoints_desired.get().set(sum.endpoints);
        self.slices.get().set(sum.slices);
        self.slices_desired.get().set(sum.desired_slices);
    }
}
