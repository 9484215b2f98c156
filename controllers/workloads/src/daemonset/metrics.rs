//! The metrics of this controller.

use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;

/// Registers the metrics, by the names of upstream.
///
/// A key waits for its own writes, so that no reconcile is skipped: the counters stay 0.
pub(super) fn register(manager: &kcm_framework::Metrics) {
    manager.register(|registry| {
        let skips: Family<[(&'static str, &'static str); 2], Counter> = Family::default();
        for (group, resource) in [("", "pods"), ("apps", "daemonsets")] {
            drop(skips.get_or_create(&[("group", group), ("resource", resource)]));
        }
        // The text format appends `_total`.
        registry.register(
            "daemonset_controller_stale_sync_skips",
            "[ALPHA] How many reconciles of daemon sets were skipped because a cache was stale",
            skips,
        );
    });
}
