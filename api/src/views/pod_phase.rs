//! The phases of a pod.

use serde::Deserialize;

use crate::protobuf::{Kind, ProtobufType};

/// Where in its life a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[non_exhaustive]
pub enum PodPhase {
    /// Not all of its containers have started.
    Pending,
    /// Bound to a node, with a container that runs.
    Running,
    /// All containers ended well and will not be restarted.
    Succeeded,
    /// All containers ended, at least one with a failure.
    Failed,
    /// The node cannot be asked.
    Unknown,
    /// Not said, or a word that we do not know.
    #[default]
    #[serde(other)]
    Other,
}

impl PodPhase {
    /// Returns `true` if all containers have ended for good.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl ProtobufType for PodPhase {
    const KIND: Kind = Kind::Text;
}
