//! The view of CSI drivers.

use kcm_framework::api::Resource;

kcm_framework::api::view! {
    /// A CSI driver that is installed in the cluster.
    pub(super) struct CsiDriver {
        resource: Resource::cluster_scoped("storage.k8s.io", "v1", "csidrivers", "CSIDriver");

        "spec" @ 2 {
            let selinux_mount: Option<bool> = "seLinuxMount" @ 8;
            /// `true` if the driver mounts volumes with a label.
            pub(super) mounts_with_label: bool = selinux_mount.unwrap_or_default();
        }
    }
}
