//! The changes of which event handlers are notified.

use std::sync::Arc;

use kcm_api::ObjectKey;

use crate::object_meta::ObjectMeta;

/// A change of one object in a cache.
///
/// Old and new of an [`Updated`](Self::Updated) always have the same uid: a recreated object is a deletion and an
/// addition.
#[derive(Debug)]
pub enum Change<V: ?Sized> {
    /// The object was not in the cache before.
    Added(Arc<V>),
    /// The object changed; in a resync both are the same.
    Updated {
        /// The object before the change.
        old: Arc<V>,
        /// The object after the change.
        new: Arc<V>,
    },
    /// The object cannot be decoded any more, and has left the cache. It still exists.
    ///
    /// `Added` follows when it can be decoded again, `Deleted` when it is deleted. So a handler that counts objects must
    /// remember which it has counted out already.
    Undecodable {
        /// The last state that could be decoded.
        last: Arc<V>,
    },
    /// The object was deleted, or left the selector.
    Deleted {
        /// The last known state.
        last: Arc<V>,
        /// Whether `last` is the final state. It is not when the watch missed the deletion (client-go:
        /// `DeletedFinalStateUnknown`).
        final_state_known: bool,
    },
}

impl<V: ?Sized> Change<V> {
    /// The current state of the object, or its last one.
    #[must_use]
    pub const fn object(&self) -> &Arc<V> {
        match self {
            Self::Added(object)
            | Self::Updated { new: object, .. }
            | Self::Undecodable { last: object }
            | Self::Deleted { last: object, .. } => object,
        }
    }
}

impl<V> Change<V> {
    /// The deletion of an object whose final state is not known.
    pub(crate) const fn missed_deletion(last: Arc<V>) -> Self {
        Self::Deleted { last, final_state_known: false }
    }

    /// Returns `true` if the object leaves the cache.
    pub(crate) const fn ends(&self) -> bool {
        match self {
            Self::Added(_) | Self::Updated { .. } => false,
            Self::Undecodable { .. } | Self::Deleted { .. } => true,
        }
    }

    /// An end like this one, or a deletion, with an earlier state of the object.
    pub(crate) const fn of(&self, last: Arc<V>) -> Self {
        match self {
            Self::Undecodable { .. } => Self::Undecodable { last },
            Self::Added(_) | Self::Updated { .. } | Self::Deleted { .. } => Self::missed_deletion(last),
        }
    }

    /// The change without its new state, for which the function of an index has panicked: the object counts as
    /// undecodable.
    pub(crate) fn without_new(self) -> Option<Self> {
        match self {
            Self::Added(_) => None,
            Self::Updated { old, new: _ } => Some(Self::Undecodable { last: old }),
            Self::Undecodable { .. } | Self::Deleted { .. } => Some(self),
        }
    }
}

impl<V: ObjectMeta + ?Sized> Change<V> {
    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.object().metadata().key
    }
}

impl<V: ?Sized> Clone for Change<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(Arc::clone(object)),
            Self::Updated { old, new } => Self::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Undecodable { last } => Self::Undecodable { last: Arc::clone(last) },
            Self::Deleted { last, final_state_known } => {
                Self::Deleted { last: Arc::clone(last), final_state_known: *final_state_known }
            }
        }
    }
}

/// Why an event handler is notified of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The object was in the cache when the handler was added, or in the first list of the informer.
    Initial,
    /// The object was created, updated or deleted.
    Live,
    /// Nothing changed: the resync period of the handler has passed.
    Resync,
}
