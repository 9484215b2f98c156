//! The metric of this controller, which a scrape reads from the conflicts in memory.

use std::sync::{Arc, Weak};

use kcm_framework::api::ObjectKey;
use kcm_framework::metrics::{MetricError, Stability};
use parking_lot::Mutex;

use super::uses::Uses;

const LABELS: [&str; 7] =
    ["property", "pod1_namespace", "pod1_name", "pod1_value", "pod2_namespace", "pod2_name", "pod2_value"];

/// Shows the conflicts of `uses` in each scrape, until the controller stops.
pub(super) fn register(metrics: &kcm_framework::Metrics, uses: &Arc<Mutex<Uses>>) -> Result<(), MetricError> {
    let uses: Weak<Mutex<Uses>> = Arc::downgrade(uses);
    metrics.gauges_at_scrape(
        Stability::Alpha,
        "selinux_warning_controller_selinux_volume_conflict",
        LABELS,
        "Conflicts of two Pods that use one volume",
        move || {
            let Some(uses) = uses.upgrade() else { return Vec::new() };
            let uses = uses.lock();
            let namespace = |pod: &ObjectKey| pod.namespace().unwrap_or_default().to_owned().into();
            let name = |pod: &ObjectKey| pod.name().to_owned().into();
            let sample = |conflict: &super::conflict::Conflict| {
                let labels = [
                    conflict.property.name().into(),
                    namespace(&conflict.pod),
                    name(&conflict.pod),
                    conflict.value.to_string().into(),
                    namespace(&conflict.other),
                    name(&conflict.other),
                    conflict.other_value.to_string().into(),
                ];
                (labels, 1)
            };
            uses.conflicts().into_iter().map(sample).collect()
        },
    )
}
