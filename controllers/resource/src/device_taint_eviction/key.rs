//! The keys of the queue.

use std::fmt;

use kcm_framework::QueueKey;
use kcm_framework::api::ObjectKey;

/// A Pod that may be evicted, or a rule whose status is computed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    Rule(ObjectKey),
    Pod(ObjectKey),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(pod) => write!(f, "pod:{pod}"),
            Self::Rule(rule) => write!(f, "rule:{rule}"),
        }
    }
}

impl QueueKey for Key {
    /// The primary cache holds Pods.
    fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::Rule(_) => None,
        }
    }
}
