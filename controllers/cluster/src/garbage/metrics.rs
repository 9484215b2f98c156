//! The metrics of this controller.

use kcm_framework::prometheus_client::metrics::counter::Counter;

/// How often the informers of the resources could not be brought into line with discovery.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    /// Discovery found nothing, or resources did not sync in time.
    pub(super) resources_sync_errors: Counter,
}

impl Metrics {
    /// Registers the metrics, by the names of upstream.
    pub(super) fn register(manager: &kcm_framework::Metrics) -> Self {
        manager.register(|registry| {
            let resources_sync_errors = Counter::default();
            registry.register(
                // The text format appends `_total`.
                "garbagecollector_controller_resources_sync_error",
                "[ALPHA] How often discovery found no resource, or resources did not sync in time",
                resources_sync_errors.clone(),
            );
            Self { resources_sync_errors }
        })
    }
}
