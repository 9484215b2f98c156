//! The views of attachments and of nodes, and the need of CSI drivers for attachments.

use kcm_framework::api::views::AttachedVolume;
use kcm_framework::api::{InternedStr, Resource};

use super::plan::Attachment;
use crate::shared::csi_driver::CsiDriver;

kcm_framework::api::view! {
    /// An attachment of a volume to a node.
    pub(super) struct VolumeAttachment {
        resource: Resource::cluster_scoped("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment");

        "spec" @ 2 {
            /// `spec.attacher`: the name of the CSI driver.
            pub(super) attacher: InternedStr = "attacher" @ 1;
            "source" @ 2 {
                /// `spec.source.persistentVolumeName`, `None` for a volume of a pod.
                pub(super) volume_name: Option<Box<str>> = "persistentVolumeName" @ 1;
            }
            pub(super) node_name: InternedStr = "nodeName" @ 3;
        }
        "status" @ 3 {
            /// `true` if the driver has attached the volume.
            pub(super) attached: bool = "attached" @ 1;
            "attachError" @ 3 {
                /// `status.attachError.message`, `None` if the last attempt did not fail.
                pub(super) attach_error: Option<Box<str>> = "message" @ 2;
            }
            "detachError" @ 4 {
                /// `status.detachError.message`, `None` if the last attempt did not fail.
                pub(super) detach_error: Option<Box<str>> = "message" @ 2;
            }
        }
    }
}

impl VolumeAttachment {
    /// Returns the state that decisions read.
    pub(super) fn state(&self) -> Attachment<'_> {
        Attachment {
            is_attached: self.attached,
            is_deleting: self.metadata.is_terminating(),
            attach_error: self.attach_error.as_deref(),
            detach_error: self.detach_error.as_deref(),
        }
    }
}

/// Returns `true` if volumes of the driver need attachments. A driver without object needs them.
pub(super) fn needs_attachment(driver: Option<&CsiDriver>) -> bool {
    driver.and_then(|driver| driver.attach_required).unwrap_or(true)
}

kcm_framework::api::view! {
    /// A node that is read live before a detach.
    pub(super) struct LiveNode {
        resource: Resource::cluster_scoped("", "v1", "nodes", "Node");

        "status" {
            /// Unique names of the volumes that the kubelet uses: `status.volumesInUse`.
            pub(super) in_use: Vec<String> = "volumesInUse";
            /// Names of the volumes in `status.volumesAttached`.
            pub(super) attached: Vec<AttachedVolume> = "volumesAttached";
        }
    }
}
