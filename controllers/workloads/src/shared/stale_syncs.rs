//! The metric of syncs that are skipped because a cache is stale.

use kcm_framework::prometheus_client::metrics::counter::Counter;
use kcm_framework::prometheus_client::metrics::family::Family;
use kcm_framework::prometheus_client::registry::Registry;

/// Registers `PREFIX_stale_sync_skips_total` with a series for each resource, which is a group and a name.
///
/// The counters stay 0: a key waits for its own writes, so that no sync is skipped.
pub(crate) fn register(registry: &mut Registry, prefix: &str, resources: &[(&'static str, &'static str)]) {
    let skips: Family<[(&'static str, &'static str); 2], Counter> = Family::default();
    for (group, resource) in resources {
        drop(skips.get_or_create(&[("group", *group), ("resource", *resource)]));
    }
    registry.register(
        // The text format appends `_total`.
        format!("{prefix}_stale_sync_skips"),
        "[ALPHA] Syncs that were skipped because a cache was stale; always 0, as keys wait for their own writes",
        skips,
    );
}
