//! The store: objects by key and the indexes over them, behind one lock.
//!
//! Readers clone `Arc`s under the lock. No event handler runs under it; index functions do, so they must be pure
//! functions of their object.
//!
//! # Memory
//! Beside the object itself (an `Arc` adds 16 bytes to it) the store keeps 10 to 20 bytes per object: the set is keyed
//! by the key inside the object, not by a copy. Each index adds 8 bytes per object and entry, and 32 bytes and the
//! index key per distinct key; up to two objects of one index key need no allocation. What shrinks gives memory back.

mod index;
mod sorted_chunks;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kcm_api::{InternedStr, Meta, ObjectKey, View};
use parking_lot::RwLock;

use crate::change::Change;

pub use index::Index;
use index::{AnyIndex, IndexMap};

/// A store of objects by key, with indexes over them.
pub struct Store<V> {
    contents: RwLock<Contents<V>>,
}

struct Contents<V> {
    objects: HashSet<ByKey<V>>,
    indexes: Vec<(&'static str, Box<dyn AnyIndex<V>>)>,
}

/// An object that is hashed by its own key, so that no copy of the key is stored.
struct ByKey<V>(Arc<V>);

impl<V: View> Borrow<ObjectKey> for ByKey<V> {
    fn borrow(&self) -> &ObjectKey {
        &self.0.meta().key
    }
}

impl<V: View> PartialEq for ByKey<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0.meta().key == other.0.meta().key
    }
}

impl<V: View> Eq for ByKey<V> {}

impl<V: View> Hash for ByKey<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.meta().key.hash(state);
    }
}

/// The result of putting an object into a store.
#[derive(Debug)]
pub enum Put<V> {
    /// The store already holds the object in this version.
    Unchanged,
    /// The store held no object of that key.
    Added,
    /// The store held another version of the object.
    Updated {
        /// The previous version.
        old: Arc<V>,
    },
    /// The store held another object of that key, with another uid.
    Replaced {
        /// The previous object.
        old: Arc<V>,
    },
}

/// Whether both are the same object in the same version.
pub(crate) fn is_same_version(a: &Meta, b: &Meta) -> bool {
    a.uid == b.uid && a.resource_version == b.resource_version && !a.resource_version.is_unset()
}

impl<V: View> Store<V> {
    /// An empty store without indexes.
    #[must_use]
    pub fn new() -> Self {
        Self { contents: RwLock::new(Contents { objects: HashSet::new(), indexes: Vec::new() }) }
    }

    /// The object with that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.contents.read().objects.get(key).map(|ByKey(object)| Arc::clone(object))
    }

    /// All objects, sorted by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        let mut objects: Vec<_> = self.contents.read().objects.iter().map(|ByKey(object)| Arc::clone(object)).collect();
        sort_by_key(&mut objects);
        objects
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts an object, which replaces the object of its key; the version that the store already holds changes nothing.
    pub fn put(&self, object: Arc<V>) -> Put<V> {
        self.contents.write().put(object)
    }

    /// Removes and returns the object with that key.
    pub fn remove(&self, key: &ObjectKey) -> Option<Arc<V>> {
        let mut contents = self.contents.write();
        let removed = contents.remove(key);
        contents.shrink();
        removed
    }

    /// Replaces the contents by `all`, except for keys that `keep` selects, and returns the changes.
    ///
    /// Readers see the store before or after, never between. Deletions come first, then additions and updates, each
    /// sorted by key; an object in the same version is no change.
    pub fn replace(&self, mut all: Vec<Arc<V>>, keep: impl Fn(&ObjectKey) -> bool) -> Vec<Change<V>> {
        sort_by_key(&mut all);
        // Of two objects of one key the later stays, as if they were put one after the other.
        let mut fresh: Vec<Arc<V>> = Vec::with_capacity(all.len());
        for object in all {
            match fresh.last_mut() {
                Some(last) if last.meta().key == object.meta().key => *last = object,
                Some(_) | None => fresh.push(object),
            }
        }

        let mut contents = self.contents.write();
        let additional = fresh.len().saturating_sub(contents.objects.len());
        contents.objects.reserve(additional);
        let mut newer = Vec::new();
        for object in &fresh {
            newer.extend(contents.put(Arc::clone(object)).into_changes(Arc::clone(object)));
        }

        let mut vanished = Vec::new();
        if contents.objects.len() > fresh.len() {
            let is_fresh = |key: &ObjectKey| fresh.binary_search_by(|object| object.meta().key.cmp(key)).is_ok();
            let objects = contents.objects.iter().map(|ByKey(object)| object);
            let gone = objects.filter(|object| !is_fresh(&object.meta().key) && !keep(&object.meta().key));
            vanished.extend(gone.cloned());
            sort_by_key(&mut vanished);
        }
        for object in &vanished {
            contents.remove(&object.meta().key);
        }
        let changes =
            vanished.into_iter().map(|last| Change::Deleted { last, final_state_known: false }).chain(newer).collect();
        contents.shrink();
        changes
    }

    /// The index of that name, created from the contents of the store where there is none yet.
    ///
    /// # Panics
    /// When an index of that name has keys of another type.
    pub fn index<K, I>(
        self: &Arc<Self>,
        name: &'static str,
        keys: impl Fn(&V) -> I + Send + Sync + 'static,
    ) -> Index<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        let position = |contents: &Contents<V>| contents.indexes.iter().position(|(known, _)| *known == name);
        // Called at each read of a namespace, so an existing index must not block other readers.
        let known = position(&self.contents.read());
        let slot = known.unwrap_or_else(|| {
            let contents = &mut *self.contents.write();
            position(contents).unwrap_or_else(|| {
                let mut made = IndexMap::<V, K>::new(name, keys);
                made.rebuild(&mut contents.objects.iter().map(|ByKey(object)| object));
                contents.indexes.push((name, Box::new(made)));
                contents.indexes.len() - 1
            })
        });
        let is_of_that_type = self.contents.read().indexes[slot].1.as_any().is::<IndexMap<V, K>>();
        assert!(is_of_that_type, "the index {name:?} has keys of another type than asked for");
        Index::new(Arc::clone(self), slot)
    }

    /// The objects of a namespace, sorted by key; the first call creates the index.
    #[must_use]
    pub fn in_namespace(self: &Arc<Self>, namespace: &str) -> Vec<Arc<V>> {
        self.index("namespace", |object: &V| object.meta().key.namespace().map(InternedStr::from)).get(namespace)
    }

    /// Rebuilds all indexes, which a panic may have left incomplete.
    pub(crate) fn rebuild_indexes(&self) {
        let Contents { objects, indexes } = &mut *self.contents.write();
        for (_, index) in indexes {
            index.rebuild(&mut objects.iter().map(|ByKey(object)| object));
        }
    }

    fn read_index<K: 'static, R>(&self, slot: usize, read: impl FnOnce(&IndexMap<V, K>) -> R) -> R {
        let contents = self.contents.read();
        let index = contents.indexes[slot].1.as_any().downcast_ref();
        read(index.expect("an index handle must have been made for the type of the index"))
    }
}

impl<V: View> Default for Store<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: View> Contents<V> {
    fn put(&mut self, object: Arc<V>) -> Put<V> {
        let old = match self.objects.get(&object.meta().key) {
            Some(ByKey(old)) if is_same_version(old.meta(), object.meta()) => return Put::Unchanged,
            Some(ByKey(old)) => Some(Arc::clone(old)),
            None => None,
        };
        for (_, index) in &mut self.indexes {
            index.update(old.as_ref(), Some(&object));
        }
        let uid = object.meta().uid.clone();
        self.objects.replace(ByKey(object));
        match old {
            None => Put::Added,
            Some(old) if old.meta().uid == uid => Put::Updated { old },
            Some(old) => Put::Replaced { old },
        }
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<V>> {
        let ByKey(old) = self.objects.take(key)?;
        for (_, index) in &mut self.indexes {
            index.update(Some(&old), None);
        }
        Some(old)
    }

    fn shrink(&mut self) {
        const SMALLEST: usize = 64;
        if self.objects.capacity() > SMALLEST && self.objects.len() < self.objects.capacity() / 4 {
            self.objects.shrink_to(self.objects.len() * 2);
        }
    }
}

impl<V: View> Put<V> {
    /// The changes of which event handlers are notified after `new` was put.
    pub(crate) fn into_changes(self, new: Arc<V>) -> impl Iterator<Item = Change<V>> {
        let (first, second) = match self {
            Self::Unchanged => (None, None),
            Self::Added => (Some(Change::Added(new)), None),
            Self::Updated { old } => (Some(Change::Updated { old, new }), None),
            Self::Replaced { old } => {
                (Some(Change::Deleted { last: old, final_state_known: false }), Some(Change::Added(new)))
            }
        };
        first.into_iter().chain(second)
    }
}

fn sort_by_key<V: View>(objects: &mut [Arc<V>]) {
    // Stable: `replace` relies on the order of those with one key.
    objects.sort_by(|a, b| a.meta().key.cmp(&b.meta().key));
}
