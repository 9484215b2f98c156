//! Settings of the controllers of volumes.

use super::AbsentSettings;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "persistentvolume-attach-detach-controller",
        rows: &[
            Row::new("attach-detach-reconcile-sync-period", "Persistentvolume-attach-detach-controller", Initial::Duration(GoDuration::from_secs(60))).path("AttachDetachController.ReconcilerSyncLoopPeriod").help("Interval at which volume attachments are verified, at least 1s.").without_effect().check(a_second),
            Row::new("disable-attach-detach-reconcile-sync", "Persistentvolume-attach-detach-controller", Initial::Bool(false)).path("AttachDetachController.DisableAttachDetachReconcilerSync").help("Do not verify volume attachments. Wrong attachments then stay.").without_effect(),
            Row::new("disable-force-detach-on-timeout", "Persistentvolume-attach-detach-controller", Initial::Bool(false)).path("AttachDetachController.disableForceDetachOnTimeout").help("Never force-detach volumes from a node that does not unmount them. Recover such a node with the out-of-service taint.").without_effect(),
            Row::new("flex-volume-plugin-dir", "Persistentvolume-binder-controller", Initial::String("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")).path("PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir").help("Directory of FlexVolume plugins.").without_effect(),
        ],
    },
];

fn a_second(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::Duration(period) if *period >= GoDuration::from_secs(1));
    if fits { Ok(()) } else { Err("must be at least 1s".to_owned()) }
}
