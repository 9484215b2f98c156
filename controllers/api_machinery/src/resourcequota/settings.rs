//! The settings.

use kcm_framework::config::gates::{
    DRA_EXTENDED_RESOURCE, IN_PLACE_POD_VERTICAL_SCALING, POD_LEVEL_RESOURCES,
    POD_LEVEL_RESOURCES_FIX_KUBELET_QOS_CLASS, RECOVER_VOLUME_EXPANSION_FAILURE, VOLUME_ATTRIBUTES_CLASS,
};
use kcm_framework::config::{Gate, GoDuration, Section, Setting, Workers};

const SECTION: Section = Section::new("Resourcequota-controller", "ResourceQuotaController");

/// The workers of each of the two loops.
pub(super) const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-resource-quota-syncs", "ConcurrentResourceQuotaSyncs", "ResourceQuotas", 5);

pub(super) const SYNC_PERIOD: Setting<GoDuration> = SECTION
    .duration("resource-quota-sync-period", "ResourceQuotaSyncPeriod", GoDuration::from_secs(5 * 60))
    .help("Interval at which the usage of every ResourceQuota is counted again. 0: never.");

/// The feature gates that usage depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a field for each gate")]
pub(super) struct Gates {
    /// `DRAExtendedResource`: resource claims count as the extended resources of their device classes.
    pub(super) dra_extended_resource: bool,
    /// `InPlacePodVerticalScaling`: the status of containers counts.
    pub(super) in_place_resize: bool,
    /// `PodLevelResources`: `spec.resources` of Pods counts.
    pub(super) pod_level_resources: bool,
    /// `PodLevelResourcesFixKubeletQOSClass`: `spec.resources` of a Pod decides on its quality of service only if it names
    /// CPU, memory or huge pages.
    pub(super) pod_level_qos_fix: bool,
    /// `RecoverVolumeExpansionFailure`: the allocated size of a claim counts.
    pub(super) recover_volume_expansion: bool,
    /// `VolumeAttributesClass`: claims are selected by their class.
    pub(super) volume_attributes_class: bool,
}

impl Gates {
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            dra_extended_resource: gate(&DRA_EXTENDED_RESOURCE),
            in_place_resize: gate(&IN_PLACE_POD_VERTICAL_SCALING),
            pod_level_resources: gate(&POD_LEVEL_RESOURCES),
            pod_level_qos_fix: gate(&POD_LEVEL_RESOURCES_FIX_KUBELET_QOS_CLASS),
            recover_volume_expansion: gate(&RECOVER_VOLUME_EXPANSION_FAILURE),
            volume_attributes_class: gate(&VOLUME_ATTRIBUTES_CLASS),
        }
    }
}
