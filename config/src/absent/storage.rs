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
        ],
    },
    AbsentSettings {
        controller: "persistentvolume-binder-controller",
        rows: &[
            Row::new("enable-dynamic-provisioning", "Persistentvolume-binder-controller", Initial::Bool(true)).path("PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning").help("Provision volumes for claims.").without_effect(),
            Row::new("enable-hostpath-provisioner", "Persistentvolume-binder-controller", Initial::Bool(false)).path("PersistentVolumeBinderController.VolumeConfiguration.EnableHostPathProvisioning").help("Provision volumes as directories of a host. For tests on a single node.").without_effect(),
            Row::new("flex-volume-plugin-dir", "Persistentvolume-binder-controller", Initial::String("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")).path("PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir").help("Directory of FlexVolume plugins.").without_effect(),
            Row::new("pv-recycler-increment-timeout-nfs", "Persistentvolume-binder-controller", Initial::Int32(30)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutNFS").help("Seconds per GiB that the time limit of an NFS recycler pod grows.").without_effect(),
            Row::new("pv-recycler-minimum-timeout-hostpath", "Persistentvolume-binder-controller", Initial::Int32(60)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutHostPath").help("Minimum time limit of a hostPath recycler pod, in seconds.").without_effect(),
            Row::new("pv-recycler-minimum-timeout-nfs", "Persistentvolume-binder-controller", Initial::Int32(300)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutNFS").help("Minimum time limit of an NFS recycler pod, in seconds.").without_effect(),
            Row::new("pv-recycler-pod-template-filepath-hostpath", "Persistentvolume-binder-controller", Initial::String("")).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathHostPath").help("File with the hostPath recycler pod. Empty: the default pod.").without_effect(),
            Row::new("pv-recycler-pod-template-filepath-nfs", "Persistentvolume-binder-controller", Initial::String("")).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathNFS").help("File with the NFS recycler pod. Empty: the default pod.").without_effect(),
            Row::new("pv-recycler-timeout-increment-hostpath", "Persistentvolume-binder-controller", Initial::Int32(30)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutHostPath").help("Seconds per GiB that the time limit of a hostPath recycler pod grows.").without_effect(),
            Row::new("pvclaimbinder-sync-period", "Persistentvolume-binder-controller", Initial::Duration(GoDuration::from_secs(15))).path("PersistentVolumeBinderController.PVClaimBinderSyncPeriod").help("Interval at which all volumes and claims are checked again.").without_effect(),
            Row::in_file("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MaximumRetry", "Persistentvolume-binder-controller", Initial::Int32(3)).help("Attempts to recycle a volume.").without_effect(),
        ],
    },
];

fn a_second(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::Duration(period) if *period >= GoDuration::from_secs(1));
    if fits { Ok(()) } else { Err("must be at least 1s".to_owned()) }
}
