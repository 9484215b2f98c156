//! The keys of the queue.

use std::fmt;

use kcm_framework::QueueKey;
use kcm_framework::api::ObjectKey;

/// A pod whose volumes are looked up, a volume that is attached and detached, or a node whose report is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Pod(ObjectKey),
    /// Unique name of a volume.
    Volume(Box<str>),
    /// Name of a node.
    Node(Box<str>),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(pod) => write!(f, "pod:{pod}"),
            Self::Volume(name) => write!(f, "volume:{name}"),
            Self::Node(name) => write!(f, "node:{name}"),
        }
    }
}

impl QueueKey for Key {
    /// The primary cache holds pods.
    fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::Volume(_) | Self::Node(_) => None,
        }
    }
}
