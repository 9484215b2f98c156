//! The caches that hold the objects of the keys of a loop.

use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use kcm_informers::Cache;

use super::pending_writes::CacheIndex;

/// The positions of the caches that hold the objects which keys name: none, one, or one for each of several namespaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Primary(Vec<CacheIndex>);

impl Primary {
    pub(crate) fn add(&mut self, cache: CacheIndex) {
        if !self.contains(cache) {
            self.0.push(cache);
        }
    }

    /// Returns `true` if the cache at that position holds objects that keys name.
    pub(crate) fn contains(&self, cache: CacheIndex) -> bool {
        self.0.contains(&cache)
    }

    /// The position of the cache that holds that object, if it exists.
    pub(crate) fn cache_of(&self, object: &ObjectKey, caches: &[Arc<dyn Cache>]) -> Option<CacheIndex> {
        self.0.iter().copied().find(|cache| caches[*cache].list_options().cover_namespace_of(object))
    }

    /// The resource of the objects that keys name.
    pub(crate) fn resource<'a>(&self, caches: &'a [Arc<dyn Cache>]) -> Option<&'a Resource> {
        self.0.first().map(|cache| caches[*cache].resource())
    }

    /// The primary caches among all caches that a loop reads.
    pub(crate) fn of(&self, caches: &[Arc<dyn Cache>]) -> Vec<Arc<dyn Cache>> {
        self.0.iter().map(|cache| Arc::clone(&caches[*cache])).collect()
    }
}
