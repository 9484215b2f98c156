//! The keys of the queue.

use std::fmt;

use kcm_framework::QueueKey;
use kcm_framework::api::ObjectKey;

/// A Pod or a group whose claims are created and reserved, or a claim that is released.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Pod(ObjectKey),
    Group(ObjectKey),
    Claim(ObjectKey),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(pod) => write!(f, "pod:{pod}"),
            Self::Group(group) => write!(f, "podgroup:{group}"),
            Self::Claim(claim) => write!(f, "claim:{claim}"),
        }
    }
}

impl QueueKey for Key {
    /// The primary cache holds Pods.
    fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::Group(_) | Self::Claim(_) => None,
        }
    }
}
