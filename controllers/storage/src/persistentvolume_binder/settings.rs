//! The settings of this controller.

use kcm_framework::config::{GoDuration, Initial, Row, Section, Setting};

const HELP: &str = "Persistentvolume-binder-controller";
const SECTION: Section = Section::new(HELP, "PersistentVolumeBinderController");
const RECYCLERS: Section =
    Section::new(HELP, "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration");
const VOLUMES: Section = Section::new(HELP, "PersistentVolumeBinderController.VolumeConfiguration");

pub(super) const SYNC_PERIOD: Setting<GoDuration> = SECTION
    .duration("pvclaimbinder-sync-period", "PVClaimBinderSyncPeriod", GoDuration::from_secs(15))
    .help("Interval at which claims and volumes that are not bound are checked again.");
pub(super) const DYNAMIC_PROVISIONING: Setting<bool> = VOLUMES
    .bool("enable-dynamic-provisioning", "EnableDynamicProvisioning", true)
    .help("Have volumes provisioned for claims that no volume matches.");
pub(super) const HOST_PATH_PROVISIONING: Setting<bool> =
    VOLUMES.bool("enable-hostpath-provisioner", "EnableHostPathProvisioning", false).help(
        "Provision volumes as directories in /tmp/hostpath_pv of the machine or container of this program. For tests on a \
         single node.",
    );
pub(super) const NFS_TEMPLATE: Setting<String> = RECYCLERS
    .string("pv-recycler-pod-template-filepath-nfs", "PodTemplateFilePathNFS", "")
    .help("File with the Pod that empties an NFS volume. Empty: the default Pod.");
pub(super) const HOST_PATH_TEMPLATE: Setting<String> = RECYCLERS
    .string("pv-recycler-pod-template-filepath-hostpath", "PodTemplateFilePathHostPath", "")
    .help("File with the Pod that empties a hostPath volume. Empty: the default Pod.");
pub(super) const NFS_MINIMUM: Setting<i32> = RECYCLERS
    .int32("pv-recycler-minimum-timeout-nfs", "MinimumTimeoutNFS", 300)
    .help("Minimum time limit in seconds of a Pod that empties an NFS volume.");
pub(super) const NFS_INCREMENT: Setting<i32> = RECYCLERS
    .int32("pv-recycler-increment-timeout-nfs", "IncrementTimeoutNFS", 30)
    .help("Seconds of the time limit of a Pod that empties an NFS volume for each GiB of the volume.");
pub(super) const HOST_PATH_MINIMUM: Setting<i32> = RECYCLERS
    .int32("pv-recycler-minimum-timeout-hostpath", "MinimumTimeoutHostPath", 60)
    .help("Minimum time limit in seconds of a Pod that empties a hostPath volume.");
pub(super) const HOST_PATH_INCREMENT: Setting<i32> = RECYCLERS
    .int32("pv-recycler-timeout-increment-hostpath", "IncrementTimeoutHostPath", 30)
    .help("Seconds of the time limit of a Pod that empties a hostPath volume for each GiB of the volume.");

/// The number of attempts, which upstream reads nowhere either.
const MAXIMUM_RETRY: Row = Row::in_file(
    "PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MaximumRetry",
    HELP,
    Initial::Int32(3),
)
.help("No effect.");
/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    SYNC_PERIOD.row(),
    DYNAMIC_PROVISIONING.row(),
    HOST_PATH_PROVISIONING.row(),
    NFS_TEMPLATE.row(),
    HOST_PATH_TEMPLATE.row(),
    NFS_MINIMUM.row(),
    NFS_INCREMENT.row(),
    HOST_PATH_MINIMUM.row(),
    HOST_PATH_INCREMENT.row(),
    MAXIMUM_RETRY,
];
