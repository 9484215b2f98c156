//! A write that the caches do not show yet.

use kcm_api::{ObjectKey, ResourceVersion, Uid};
use tokio::time::Instant;

/// The position of a cache in the list of its loop.
pub type CacheIndex = usize;

/// A write that is not confirmed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingWrite {
    /// The write succeeded. It is confirmed when the cache has reached `version`.
    Version {
        /// The cache of the written resource.
        cache: CacheIndex,
        /// The object written, for a live check.
        object: ObjectKey,
        /// The resource version in the response.
        version: ResourceVersion,
    },
    /// The API server accepted a deletion. It is confirmed when the object is deleted or terminating in the cache.
    Deletion {
        /// The cache of the resource of the deleted object.
        cache: CacheIndex,
        /// The object deleted, for a live check.
        object: ObjectKey,
        /// The uid of the object.
        uid: Uid,
    },
    /// The response was lost, so the outcome is unknown. A live list that begins after `deadline` shows it.
    OutcomeUnknown {
        /// The cache of the written resource.
        cache: CacheIndex,
        /// The object written; without a name if the API server chooses it.
        object: ObjectKey,
        /// The uid of the object, if the write was a deletion.
        deleted: Option<Uid>,
        /// When the request can no longer take effect: the API server has timed it out, or has refused its repetition.
        deadline: Instant,
    },
}

impl PendingWrite {
    /// The cache that shows it.
    pub(super) const fn cache(&self) -> CacheIndex {
        match self {
            Self::Version { cache, .. } | Self::Deletion { cache, .. } | Self::OutcomeUnknown { cache, .. } => *cache,
        }
    }

    pub(super) const fn object(&self) -> &ObjectKey {
        match self {
            Self::Version { object, .. } | Self::Deletion { object, .. } | Self::OutcomeUnknown { object, .. } => {
                object
            }
        }
    }
}

/// Returns `true` if the write can be confirmed: a version that is not a decimal does not compare with others.
pub(super) fn can_be_confirmed(write: &PendingWrite) -> bool {
    match write {
        PendingWrite::Version { version, .. } => is_decimal(version),
        PendingWrite::Deletion { .. } | PendingWrite::OutcomeUnknown { .. } => true,
    }
}

/// Returns `true` if a version compares with others.
pub(super) fn is_decimal(version: &ResourceVersion) -> bool {
    version.compare(version).is_some()
}
