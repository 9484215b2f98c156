//! Settings of the controllers of devices.

use super::AbsentSettings;
use crate::checks;
use crate::row::{Initial, Row};

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[AbsentSettings {
    controller: "device-taint-eviction-controller",
    rows: &[Row::new("concurrent-device-taint-eviction-syncs", "Device-taint-eviction-controller", Initial::Int32(8))
        .path("DeviceTaintEvictionController.ConcurrentSyncs")
        .help(workers!("Pods on tainted devices"))
        .without_effect()
        .check(checks::positive)],
}];
