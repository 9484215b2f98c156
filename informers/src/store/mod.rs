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

use std::any::TypeId;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use kcm_api::{InternedStr, Meta, ObjectKey, View};
use parking_lot::RwLock;

use crate::change::Change;

pub use index::Index;
use index::{AnyIndex, IndexMap, IndexUser};

/// A store of objects by key, with indexes over them.
pub struct Store<V> {
    contents: RwLock<Contents<V>>,
}

struct Contents<V> {
    objects: HashSet<ByKey<V>>,
    /// A slot keeps its position. A slot whose index was dropped is used again.
    indexes: Vec<Option<IndexSlot<V>>>,
    /// The slot of the index by namespace, once there is one.
    by_namespace: Option<usize>,
}

struct IndexSlot<V> {
    /// The name and the type of the function, if other users of the same function may share the index.
    identity: Option<(&'static str, TypeId)>,
    user: Weak<IndexUser<V>>,
    index: Box<dyn AnyIndex<V>>,
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
        /// The object before the update.
        old: Arc<V>,
    },
    /// The store held another object of that key, with another uid.
    Replaced {
        /// The object with the other uid.
        old: Arc<V>,
    },
}

/// Returns `true` if both are the same object in the same version.
pub(crate) fn is_same_version(a: &Meta, b: &Meta) -> bool {
    a.uid == b.uid && a.resource_version == b.resource_version && !a.resource_version.is_unset()
}

impl<V: View> Store<V> {
    /// An empty store without indexes.
    #[must_use]
    pub fn new() -> Self {
        let contents = Contents { objects: HashSet::new(), indexes: Vec::new(), by_namespace: None };
        Self { contents: RwLock::new(contents) }
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

    /// Number of objects in the cache.
    #[must_use]
    pub fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    /// Returns `true` if the cache has no objects.
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

    /// Replaces the contents by `all`, and returns the changes.
    ///
    /// Readers see the store before or after, never between. Deletions come first, then additions and updates, each
    /// sorted by key; an object in the same version is no change.
    pub fn replace(&self, mut all: Vec<Arc<V>>) -> Vec<Change<V>> {
        sort_by_key(&mut all);
        // If two objects have one key, the later one is kept, as if they were put one after the other.
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
            let gone = objects.filter(|object| !is_fresh(&object.meta().key));
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

    /// An index by the keys that `keys` returns for each object.
    ///
    /// Indexes of the same name and the same function are one; a function that captures values is always another. The
    /// index is dropped with its last handle.
    pub fn index<K, I, F>(self: &Arc<Self>, name: &'static str, keys: F) -> Index<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
        F: Fn(&V) -> I + Send + Sync + 'static,
    {
        let identity = (size_of::<F>() == 0).then(|| (name, TypeId::of::<F>()));
        let contents = &mut *self.contents.write();
        let mut slots = contents.indexes.iter().flatten();
        let known = identity.and_then(|_| slots.find(|slot| slot.identity == identity)?.user.upgrade());
        let user = known.unwrap_or_else(|| {
            let slot = contents.free_slot();
            let user = Arc::new(IndexUser::new(self, slot));
            let index = contents.built(IndexMap::<V, K>::new(name, keys));
            contents.indexes[slot] = Some(IndexSlot { identity, user: Arc::downgrade(&user), index });
            user
        });
        Index::new(user)
    }

    /// The objects of a namespace, sorted by key; the first call creates the index, which stays.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        // An existing index must not block other readers.
        let known = self.contents.read().by_namespace;
        let slot = known.unwrap_or_else(|| self.contents.write().namespace_index());
        self.read_index(slot, |index: &IndexMap<V, InternedStr>| index.objects(namespace))
    }

    /// Rebuilds all indexes, which a panic may have left incomplete.
    pub(crate) fn rebuild_indexes(&self) {
        let Contents { objects, indexes, by_namespace: _ } = &mut *self.contents.write();
        for slot in indexes.iter_mut().flatten() {
            slot.index.rebuild(&mut objects.iter().map(|ByKey(object)| object));
        }
    }

    fn read_index<K: 'static, R>(&self, slot: usize, read: impl FnOnce(&IndexMap<V, K>) -> R) -> R {
        let contents = self.contents.read();
        let index = contents.indexes[slot].as_ref().and_then(|slot| slot.index.as_any().downcast_ref());
        read(index.expect("a slot must hold the index that it was taken for, until its last handle is dropped"))
    }
}

impl<V> Store<V> {
    /// Drops the index of a slot.
    fn drop_index(&self, slot: usize) {
        let dropped = self.contents.write().indexes[slot].take();
        // Dropped without the lock: the function of an index may own anything.
        drop(dropped);
    }
}

impl<V: View> Default for Store<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: View> Contents<V> {
    /// A slot without an index.
    fn free_slot(&mut self) -> usize {
        self.indexes.iter().position(Option::is_none).unwrap_or_else(|| {
            self.indexes.push(None);
            self.indexes.len() - 1
        })
    }

    /// An index of the objects in the store.
    fn built(&self, mut index: impl AnyIndex<V> + 'static) -> Box<dyn AnyIndex<V>> {
        index.rebuild(&mut self.objects.iter().map(|ByKey(object)| object));
        Box::new(index)
    }

    fn namespace_index(&mut self) -> usize {
        self.by_namespace.unwrap_or_else(|| {
            let slot = self.free_slot();
            let namespace = |object: &V| object.meta().key.namespace().map(InternedStr::from);
            let index = self.built(IndexMap::<V, InternedStr>::new("namespace", namespace));
            self.indexes[slot] = Some(IndexSlot { identity: None, user: Weak::new(), index });
            *self.by_namespace.insert(slot)
        })
    }

    fn put(&mut self, object: Arc<V>) -> Put<V> {
        let old = match self.objects.get(&object.meta().key) {
            Some(ByKey(old)) if is_same_version(old.meta(), object.meta()) => return Put::Unchanged,
            Some(ByKey(old)) => Some(Arc::clone(old)),
            None => None,
        };
        for slot in self.indexes.iter_mut().flatten() {
            slot.index.update(old.as_ref(), Some(&object));
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
        for slot in self.indexes.iter_mut().flatten() {
            slot.index.update(Some(&old), None);
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
    // Stable: `replace` relies on the order of objects with one key.
    objects.sort_by(|a, b| a.meta().key.cmp(&b.meta().key));
}
