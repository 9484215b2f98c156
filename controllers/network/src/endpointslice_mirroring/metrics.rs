//! The metrics of this controller.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::metrics::gauge::Gauge;
use kcm_framework::prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use parking_lot::Mutex;

use super::plan::Plan;
use crate::shared::slices::{Efficiency, Operation, Totals};

/// The labels of a metric that has none. As upstream's, it is not shown before it is set.
type NoLabels = [(&'static str, &'static str); 0];

/// What the metrics show.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    added: Family<NoLabels, Histogram>,
    updated: Family<NoLabels, Histogram>,
    removed: Family<NoLabels, Histogram>,
    skipped: Family<NoLabels, Histogram>,
    seconds: Family<NoLabels, Histogram>,
    endpoints_desired: Family<NoLabels, Gauge>,
    slices: Family<NoLabels, Gauge>,
    slices_desired: Family<NoLabels, Gauge>,
    changes: Family<[(&'static str, &'static str); 1], Counter>,
    totals: Arc<Mutex<Totals>>,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
            let per_sync: fn() -> Histogram = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
            let metrics = Self {
                added: Family::new_with_constructor(per_sync),
                updated: Family::new_with_constructor(per_sync),
                removed: Family::new_with_constructor(per_sync),
                skipped: Family::new_with_constructor(per_sync),
                seconds: Family::new_with_constructor(seconds),
                endpoints_desired: Family::default(),
                slices: Family::default(),
                slices_desired: Family::default(),
                changes: Family::default(),
                totals: Arc::default(),
            };
            let registry = registry.sub_registry_with_prefix("endpoint_slice_mirroring_controller");
            let histograms = [
                ("endpoints_added_per_sync", "[ALPHA] How many endpoints one sync of Endpoints added", &metrics.added),
                (
                    "endpoints_updated_per_sync",
                    "[ALPHA] How many endpoints one sync of Endpoints updated",
                    &metrics.updated,
                ),
                (
                    "endpoints_removed_per_sync",
                    "[ALPHA] How many endpoints one sync of Endpoints removed",
                    &metrics.removed,
                ),
                (
                    "addresses_skipped_per_sync",
                    "[ALPHA] How many addresses one sync of Endpoints left out, as they are invalid or too many",
                    &metrics.skipped,
                ),
                ("endpoints_sync_duration", "[ALPHA] How long in seconds one sync of Endpoints took", &metrics.seconds),
            ];
            for (name, help, histogram) in histograms {
                registry.register(name, help, histogram.clone());
            }
            let gauges = [
                ("endpoints_desired", "[ALPHA] How many endpoints should be mirrored", &metrics.endpoints_desired),
                ("num_endpoint_slices", "[ALPHA] How many mirrored endpoint slices there are", &metrics.slices),
                (
                    "desired_endpoint_slices",
                    "[ALPHA] How many mirrored endpoint slices there would be, were all of them full",
                    &metrics.slices_desired,
                ),
            ];
            for (name, help, gauge) in gauges {
                registry.register(name, help, gauge.clone());
            }
            registry.register(
                "changes",
                "[ALPHA] How often mirrored endpoint slices were created, updated and deleted",
                metrics.changes.clone(),
            );
            metrics
        })
    }

    /// Counts a sync.
    pub(super) fn synced(&self, took: Duration) {
        self.seconds.get_or_create(&[]).observe(took.as_secs_f64());
    }

    /// Counts what endpoints gain and lose.
    #[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
    pub(super) fn planned(&self, plan: &Plan) {
        self.added.get_or_create(&[]).observe(plan.added as f64);
        self.updated.get_or_create(&[]).observe(plan.updated as f64);
        self.removed.get_or_create(&[]).observe(plan.removed as f64);
        self.skipped.get_or_create(&[]).observe(plan.skipped as f64);
    }

    /// Counts a written slice.
    pub(super) fn changed(&self, operation: Operation) {
        self.changes.get_or_create(&[("operation", operation.as_str())]).inc();
    }

    /// Sets what there is of endpoints.
    pub(super) fn set(&self, endpoints: &ObjectKey, efficiency: Efficiency) {
        let sum = self.totals.lock().set(endpoints, efficiency);
        self.show(sum);
    }

    /// Takes away endpoints that are not mirrored any more.
    pub(super) fn remove(&self, endpoints: &ObjectKey) {
        let sum = self.totals.lock().remove(endpoints);
        if let Some(sum) = sum {
            self.show(sum);
        }
    }

    fn show(&self, sum: Efficiency) {
        self.endpoints_desired.get_or_create(&[]).set(sum.endpoints);
        self.slices.get_or_create(&[]).set(sum.slices);
        self.slices_desired.get_or_create(&[]).set(sum.desired_slices);
    }
}
