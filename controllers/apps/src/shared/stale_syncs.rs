//! The metric of syncs that are skipped because a cache is stale.

use kcm_framework::Metrics;
use kcm_framework::metrics::{MetricError, Stability};

/// Registers the counter `name` with a series for each resource, which is a group and a name.
///
/// The counters stay 0: a key waits for its own writes, so no sync is skipped.
pub(crate) fn register(
    metrics: &Metrics,
    name: &'static str,
    resources: &[(&'static str, &'static str)],
) -> Result<(), MetricError> {
    let help = "Syncs that were skipped because a cache was stale; always 0, as keys wait for their own writes";
    let skips = metrics.counters(Stability::Alpha, name, ["group", "resource"], help)?;
    for (group, resource) in resources {
        drop(skips.of([*group, *resource]));
    }
    Ok(())
}
