//! The settings of this controller.

use kcm_framework::config::{GoDuration, Row, Section, Setting, Value};

const SECTION: Section = Section::new("Persistentvolume-attach-detach-controller", "AttachDetachController");
const VOLUMES: Section =
    Section::new("Persistentvolume-binder-controller", "PersistentVolumeBinderController.VolumeConfiguration");

/// Attachments are verified when they change, so that no period is needed.
pub(super) const SYNC_PERIOD: Setting<GoDuration> = SECTION
    .duration("attach-detach-reconcile-sync-period", "ReconcilerSyncLoopPeriod", GoDuration::from_secs(60))
    .check(a_second)
    .help("No effect. Volume attachments are verified when they change.");
pub(super) const DISABLE_VERIFICATION: Setting<bool> = SECTION
    .bool("disable-attach-detach-reconcile-sync", "DisableAttachDetachReconcilerSync", false)
    .help("Do not verify the attachments of volumes that a node reports. Wrong attachments then stay.");
pub(super) const DISABLE_FORCE_DETACH: Setting<bool> = SECTION
    .bool("disable-force-detach-on-timeout", "disableForceDetachOnTimeout", false)
    .help(
        "Never force-detach volumes from a node that does not unmount them. Recover such a node with the out-of-service \
         taint.",
    );
pub(super) const FLEX_DIRECTORY: Setting<String> = VOLUMES
    .string("flex-volume-plugin-dir", "FlexVolumePluginDir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")
    .help(
        "Directory of FlexVolume plugins. Plugins are not executed: a pod whose volume needs one of them gets an event \
         that the volume is not attached.",
    );

/// The rows of the settings.
pub(super) const ROWS: &[Row] =
    &[SYNC_PERIOD.row(), DISABLE_VERIFICATION.row(), DISABLE_FORCE_DETACH.row(), FLEX_DIRECTORY.row()];

fn a_second(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::Duration(period) if *period >= GoDuration::from_secs(1));
    if fits { Ok(()) } else { Err("must be at least 1s".to_owned()) }
}
