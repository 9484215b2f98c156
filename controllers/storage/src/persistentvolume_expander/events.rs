//! The events about claims.

use kcm_framework::events::{Event, EventText};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimEvent<'a> {
    /// The CSI driver that serves the volumes of an in-tree plugin expands the volume.
    Migrated { plugin: &'a str },
    /// An external controller expands the volume.
    External,
    /// The resizer could not be written into the claim.
    NoResizer { error: &'a str },
    /// A raw block volume has its new size.
    Resized { claim: String },
    /// The expansion of a flex volume could not be recorded.
    Failed { error: &'a str },
}

const EXTERNAL_EXPANDING: &str = "ExternalExpanding";

impl Event for ClaimEvent<'_> {
    fn text(&self) -> EventText<'_> {
        match self {
            Self::Migrated { plugin } => EventText::normal(
                EXTERNAL_EXPANDING,
                format!("CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"),
            ),
            Self::External => {
                EventText::normal(EXTERNAL_EXPANDING, "waiting for an external controller to expand this PVC")
            }
            Self::NoResizer { error } => EventText::warning(EXTERNAL_EXPANDING, *error),
            Self::Resized { claim } => {
                EventText::normal("VolumeResizeSuccessful", format!("ExpandVolume succeeded for volume {claim}"))
            }
            Self::Failed { error } => EventText::warning("VolumeResizeFailed", *error),
        }
    }
}
