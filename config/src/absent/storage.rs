//! Of volumes.

use super::AbsentSettings;
use crate::checks;
use crate::duration::GoDuration;
use crate::row::{Initial, Row};
use crate::value::Value;

/// The settings of each controller.
pub(super) const CONTROLLERS: &[AbsentSettings] = &[
    AbsentSettings {
        controller: "persistentvolume-attach-detach-controller",
        rows: &[
            Row::new("attach-detach-reconcile-sync-period", "Persistentvolume-attach-detach-controller", Initial::Duration(GoDuration::from_secs(60))).path("AttachDetachController.ReconcilerSyncLoopPeriod").help("How often the volumes that should be attached are compared with those that are; at least a second. Longer leaves mistakes unnoticed for longer.").check(a_second),
            Row::new("disable-attach-detach-reconcile-sync", "Persistentvolume-attach-detach-controller", Initial::Bool(false)).path("AttachDetachController.DisableAttachDetachReconcilerSync").help("Do not compare the volumes that should be attached with those that are. Mistakes stay then."),
            Row::new("disable-force-detach-on-timeout", "Persistentvolume-attach-detach-controller", Initial::Bool(false)).path("AttachDetachController.disableForceDetachOnTimeout").help("Do not detach a volume by force when a node does not unmount it in time; a failed node then needs the taint out-of-service."),
        ],
    },
    AbsentSettings {
        controller: "ephemeral-volume-controller",
        rows: &[
            Row::new("concurrent-ephemeralvolume-syncs", "Ephemeral-volume-controller", Initial::Int32(5)).path("EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs").help("How many ephemeral volumes are worked on at once. More is faster, and loads the API server and the network more.").check(checks::positive),
        ],
    },
    AbsentSettings {
        controller: "persistentvolume-binder-controller",
        rows: &[
            Row::new("enable-dynamic-provisioning", "Persistentvolume-binder-controller", Initial::Bool(true)).path("PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning").help("Provision volumes for claims."),
            Row::new("enable-hostpath-provisioner", "Persistentvolume-binder-controller", Initial::Bool(false)).path("PersistentVolumeBinderController.VolumeConfiguration.EnableHostPathProvisioning").help("Provision volumes as folders of a host, for tests on a single node."),
            Row::new("flex-volume-plugin-dir", "Persistentvolume-binder-controller", Initial::String("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")).path("PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir").help("The folder of flex volume plugins."),
            Row::new("pv-recycler-increment-timeout-nfs", "Persistentvolume-binder-controller", Initial::Int32(30)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutNFS").help("By how many seconds a pod that empties an NFS volume may run longer for each GiB."),
            Row::new("pv-recycler-minimum-timeout-hostpath", "Persistentvolume-binder-controller", Initial::Int32(60)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutHostPath").help("How many seconds a pod that empties a host path may run, at least."),
            Row::new("pv-recycler-minimum-timeout-nfs", "Persistentvolume-binder-controller", Initial::Int32(300)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MinimumTimeoutNFS").help("How many seconds a pod that empties an NFS volume may run, at least."),
            Row::new("pv-recycler-pod-template-filepath-hostpath", "Persistentvolume-binder-controller", Initial::String("")).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathHostPath").help("A file with the pod that empties a host path; empty for the default."),
            Row::new("pv-recycler-pod-template-filepath-nfs", "Persistentvolume-binder-controller", Initial::String("")).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathNFS").help("A file with the pod that empties an NFS volume; empty for the default."),
            Row::new("pv-recycler-timeout-increment-hostpath", "Persistentvolume-binder-controller", Initial::Int32(30)).path("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.IncrementTimeoutHostPath").help("By how many seconds a pod that empties a host path may run longer for each GiB."),
            Row::new("pvclaimbinder-sync-period", "Persistentvolume-binder-controller", Initial::Duration(GoDuration::from_secs(15))).path("PersistentVolumeBinderController.PVClaimBinderSyncPeriod").help("How often every claim and volume is looked at again."),
            Row::in_file("PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration.MaximumRetry", "Persistentvolume-binder-controller", Initial::Int32(3)).help("How often the emptying of a volume is tried."),
        ],
    },
];

fn a_second(value: &Value) -> Result<(), String> {
    let fits = matches!(value, Value::Duration(period) if *period >= GoDuration::from_secs(1));
    if fits { Ok(()) } else { Err("must be at least 1s".to_owned()) }
}
