//! What subscribers are told.

use std::sync::Arc;

use kcm_api::{ObjectKey, View};

/// A change of one object in a cache.
///
/// Old and new of an [`Updated`](Self::Updated) always have the same uid: an object that was deleted and made again
/// under its name between two looks is told as a removal and an addition.
#[derive(Debug)]
pub enum Change<V> {
    /// The object was not in the cache before.
    Added(Arc<V>),
    /// The object changed; in a resync both are the same.
    Updated {
        /// What the cache held before.
        old: Arc<V>,
        /// What it holds now.
        new: Arc<V>,
    },
    /// The object is gone.
    Deleted {
        /// The last state known.
        last: Arc<V>,
        /// Whether that is the state in which it was deleted; not so when the deletion itself was missed.
        final_state_known: bool,
    },
}

impl<V> Change<V> {
    /// The object as it is now, or as it last was.
    #[must_use]
    pub const fn object(&self) -> &Arc<V> {
        match self {
            Self::Added(object) | Self::Updated { new: object, .. } | Self::Deleted { last: object, .. } => object,
        }
    }
}

impl<V: View> Change<V> {
    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.object().meta().key
    }
}

impl<V> Clone for Change<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(Arc::clone(object)),
            Self::Updated { old, new } => Self::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Deleted { last, final_state_known } => {
                Self::Deleted { last: Arc::clone(last), final_state_known: *final_state_known }
            }
        }
    }
}

/// Why a subscriber is told of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The object was there when the subscriber began to listen, or when the informer first synced.
    Initial,
    /// The object changed.
    Live,
    /// Nothing changed: the subscriber's resync period has passed.
    Resync,
}
