//! The metrics of this controller.

use crate::shared::stale_syncs;

/// The metrics are registered.
#[derive(Clone)]
struct Registered;

/// Registers the metrics, by the names of upstream.
pub(super) fn register(manager: &kcm_framework::Metrics) {
    let Registered = manager.register(|registry| {
        stale_syncs::register(registry, "daemonset_controller", &[("", "pods"), ("apps", "daemonsets")]);
        Registered
    });
}
