//! Keys that are reconciled again when an undecodable object changes.

use std::collections::{BTreeMap, BTreeSet};

use kcm_api::ObjectKey;

use crate::consistency::pending_writes::CacheIndex;

/// An undecodable object for which a key waits: its cache and its key.
pub(super) type Blocker = (CacheIndex, ObjectKey);

/// The keys that were reconciled and wait for undecodable objects, which they looked up. A key may wait for several.
pub(super) struct Awaiting<K> {
    objects: BTreeMap<K, BTreeSet<Blocker>>,
    keys: BTreeMap<Blocker, BTreeSet<K>>,
}

impl<K: Ord + Clone> Awaiting<K> {
    pub(super) const fn new() -> Self {
        Self { objects: BTreeMap::new(), keys: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, key: &K, object: Blocker) {
        self.objects.entry(key.clone()).or_default().insert(object.clone());
        self.keys.entry(object).or_default().insert(key.clone());
    }

    /// The key waits for nothing any more.
    pub(super) fn forget(&mut self, key: &K) {
        for object in self.objects.remove(key).into_iter().flatten() {
            if let Some(keys) = self.keys.get_mut(&object) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&object);
                }
            }
        }
    }

    /// Takes the keys that wait for the object.
    pub(super) fn take(&mut self, object: &Blocker) -> BTreeSet<K> {
        let keys = self.keys.get(object).cloned().unwrap_or_default();
        for key in &keys {
            self.forget(key);
        }
        keys
    }

    /// Number of keys that wait.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The first key that matches and the first object that it waits for.
    pub(super) fn find(&self, matches: impl Fn(&K) -> bool) -> Option<&Blocker> {
        self.objects.iter().find(|(key, _)| matches(key))?.1.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> Blocker {
        (0, ObjectKey::cluster_scoped(name))
    }

    #[test]
    fn a_key_waits_for_several_objects_and_is_taken_once() {
        let mut awaiting = Awaiting::new();
        for (key, name) in [(1, "a"), (1, "b"), (2, "b"), (3, "c")] {
            awaiting.insert(&key, object(name));
        }
        assert_eq!((awaiting.len(), awaiting.find(|key| *key == 2)), (3, Some(&object("b"))));
        assert_eq!(awaiting.take(&object("b")), [1, 2].into());
        assert_eq!(awaiting.take(&object("a")), [].into(), "it is reconciled already");
        awaiting.forget(&3);
        assert_eq!((awaiting.len(), awaiting.keys.len(), awaiting.take(&object("c"))), (0, 0, [].into()));
    }
}
