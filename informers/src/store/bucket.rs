//! The objects under one key of an index.

use std::sync::Arc;

use kcm_api::{ObjectKey, View};
use smallvec::SmallVec;

/// Objects sorted by key; up to two lie inline, in the three words that a `Vec` would take.
pub(super) struct Bucket<V>(SmallVec<[Arc<V>; 2]>);

impl<V: View> Bucket<V> {
    pub(super) const fn new() -> Self {
        Self(SmallVec::new_const())
    }

    pub(super) fn objects(&self) -> &[Arc<V>] {
        &self.0
    }

    /// Puts an object in place of the one with its key.
    pub(super) fn put(&mut self, object: &Arc<V>) {
        match self.position(&object.meta().key) {
            Ok(at) => self.0[at] = Arc::clone(object),
            Err(at) => self.0.insert(at, Arc::clone(object)),
        }
    }

    /// Removes the object with that key; whether the bucket is empty now.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> bool {
        if let Ok(at) = self.position(key) {
            self.0.remove(at);
            if self.0.spilled() && self.0.len() <= self.0.capacity() / 4 {
                self.0.shrink_to_fit();
            }
        }
        self.0.is_empty()
    }

    fn position(&self, key: &ObjectKey) -> Result<usize, usize> {
        // Lists come in the order of keys, so the end is where most additions go.
        match self.0.last() {
            Some(last) if last.meta().key < *key => Err(self.0.len()),
            Some(_) | None => self.0.binary_search_by(|object| object.meta().key.cmp(key)),
        }
    }
}
