//! The settings.

use kcm_config::gates::{
    DRA_EXTENDED_RESOURCE, IN_PLACE_POD_VERTICAL_SCALING, POD_LEVEL_RESOURCES, RECOVER_VOLUME_EXPANSION_FAILURE,
    VOLUME_ATTRIBUTES_CLASS,
};
use kcm_config::{Gate, GoDuration, Initial, Row, checks};
use kcm_framework::SettingsSection;
use serde::Deserialize;

/// How many quotas each of both loops reconciles at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-resource-quota-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, "Resourcequota-controller", Initial::Int32(5))
        .path("ResourceQuotaController.ConcurrentResourceQuotaSyncs")
        .help("How many resource quotas are worked on at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded(),
    Row::new("resource-quota-sync-period", "Resourcequota-controller", Initial::Duration(GoDuration::from_secs(5 * 60)))
        .path("ResourceQuotaController.ResourceQuotaSyncPeriod")
        .help("How often the usage of every quota is counted again; 0 for never."),
];

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    /// The resync period.
    #[serde(rename = "ResourceQuotaSyncPeriod")]
    pub(super) sync_period: GoDuration,
}

impl SettingsSection for Section {
    const SECTION: &str = "ResourceQuotaController";
}

/// The feature gates that usage depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a field for each gate")]
pub(super) struct Gates {
    /// `DRAExtendedResource`: resource claims count as the extended resources of their device classes.
    pub(super) dra_extended_resource: bool,
    /// `InPlacePodVerticalScaling`: the status of containers counts.
    pub(super) in_place_resize: bool,
    /// `PodLevelResources`: `spec.resources` of pods counts.
    pub(super) pod_level_resources: bool,
    /// `RecoverVolumeExpansionFailure`: what was allocated to a claim counts.
    pub(super) recover_volume_expansion: bool,
    /// `VolumeAttributesClass`: claims are selected by their class.
    pub(super) volume_attributes_class: bool,
}

impl Gates {
    /// Reads the gates.
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            dra_extended_resource: gate(&DRA_EXTENDED_RESOURCE),
            in_place_resize: gate(&IN_PLACE_POD_VERTICAL_SCALING),
            pod_level_resources: gate(&POD_LEVEL_RESOURCES),
            recover_volume_expansion: gate(&RECOVER_VOLUME_EXPANSION_FAILURE),
            volume_attributes_class: gate(&VOLUME_ATTRIBUTES_CLASS),
        }
    }
}
