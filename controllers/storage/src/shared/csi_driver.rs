//! The view of CSI drivers.

use kcm_framework::api::Resource;

kcm_framework::api::view! {
    /// A CSI driver that is installed in the cluster.
    pub(crate) struct CsiDriver {
        resource: Resource::cluster_scoped("storage.k8s.io", "v1", "csidrivers", "CSIDriver");

        "spec" @ 2 {
            /// `spec.attachRequired`. A driver without the field needs attachments.
            pub(crate) attach_required: Option<bool> = "attachRequired" @ 1;
            let selinux_mount: Option<bool> = "seLinuxMount" @ 8;
            /// `true` if the driver mounts volumes with a label.
            pub(crate) mounts_with_label: bool = selinux_mount.unwrap_or_default();
        }
    }
}
