//! The result of a look-up.

use std::sync::Arc;

use crate::undecodable::UndecodableObject;

/// The object of a key: found, absent, or undecodable.
///
/// For a controller that decides by the absence of an object. An undecodable object exists, although the cache does not
/// hold it.
#[derive(Debug)]
pub enum Lookup<V> {
    /// The cache holds the object.
    Found(Arc<V>),
    /// There is no such object.
    Absent,
    /// The object exists and cannot be decoded.
    Undecodable(Arc<UndecodableObject>),
}

impl<V> Lookup<V> {
    /// The object, if it was found.
    #[must_use]
    pub fn found(self) -> Option<Arc<V>> {
        match self {
            Self::Found(object) => Some(object),
            Self::Absent | Self::Undecodable(_) => None,
        }
    }

    /// Returns `true` if there is no such object. An undecodable object is not absent.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<V> Clone for Lookup<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Found(object) => Self::Found(Arc::clone(object)),
            Self::Absent => Self::Absent,
            Self::Undecodable(object) => Self::Undecodable(Arc::clone(object)),
        }
    }
}
