//! The store: objects by key and the indexes over them, behind one lock.
//!
//! Readers clone `Arc`s under the lock. No event handler runs under it; index functions do, so they must be pure
//! functions of their object.
//!
//! # Memory
//! Beside the object itself (an `Arc` adds 16 bytes to it) the store keeps 20 to 30 bytes per object: the set is keyed
//! by the key inside the object, not by a copy, and the order of keys takes 8 bytes. Each index adds 8 bytes per object
//! and entry, and 32 bytes and the index key per distinct key; up to two objects of one index key need no allocation.
//! Memory is given back when something shrinks.

mod index;
mod replacement;
mod sorted_chunks;
#[cfg(test)]
mod tests;

use std::any::TypeId;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use kcm_api::{Meta, ObjectKey, View};
use parking_lot::RwLock;

use crate::change::Change;

use index::{AnyIndex, IndexMap, IndexUser};
pub use index::{Index, IndexPanicked};
pub(crate) use replacement::Replacement;
pub(crate) use sorted_chunks::SortedChunks;

/// A store of objects by key, with indexes over them.
pub struct Store<V> {
    contents: RwLock<Contents<V>>,
}

struct Contents<V> {
    objects: HashSet<ByKey<V>>,
    /// The same objects in the order of keys.
    sorted: SortedChunks<V>,
    /// A slot keeps its position. A slot whose index was dropped is used again.
    indexes: Vec<Option<IndexSlot<V>>>,
    /// The objects that a new index lacks, because its function panicked for them.
    unindexed: Vec<(Arc<V>, IndexPanicked)>,
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
        Self { contents: RwLock::new(Contents::empty()) }
    }

    /// The object with that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.contents.read().objects.get(key).map(|ByKey(object)| Arc::clone(object))
    }

    /// All objects, sorted by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        self.contents.read().sorted.objects()
    }

    /// Calls `each` with every object, in the order of keys. Copies nothing.
    ///
    /// The store takes no change meanwhile, so `each` must only read the object.
    pub fn for_each(&self, each: impl FnMut(&Arc<V>)) {
        self.contents.read().sorted.iter().for_each(each);
    }

    /// The first `most` objects whose key comes after `key`, or the first of all.
    pub(crate) fn slice_after(&self, key: Option<&ObjectKey>, most: usize) -> Vec<Arc<V>> {
        self.contents.read().sorted.after(key).take(most).cloned().collect()
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
    ///
    /// # Errors
    /// If the function of an index panics for the object. The store does not change.
    pub fn put(&self, object: Arc<V>) -> Result<Put<V>, IndexPanicked> {
        self.contents.write().put(object)
    }

    /// Removes and returns the object with that key.
    pub fn remove(&self, key: &ObjectKey) -> Option<Arc<V>> {
        let mut contents = self.contents.write();
        let removed = contents.remove(key);
        contents.shrink();
        removed
    }

    /// Replaces the contents by `all`, and returns the changes. An object for which the function of an index panics is left
    /// out.
    ///
    /// Readers see the store before or after, never between. Deletions come first, then additions and updates, each
    /// sorted by key; an object in the same version is no change.
    pub fn replace(&self, all: Vec<Arc<V>>) -> Vec<Change<V>> {
        self.apply(self.changes_to(&all.into_iter().collect()), |_, _| {})
    }

    /// Applies changes in one step, and returns them. An object for which the function of an index panics is handed to
    /// `refused`, and is missing from the store then.
    pub(crate) fn apply(
        &self,
        changes: Vec<Change<V>>,
        mut refused: impl FnMut(&Arc<V>, IndexPanicked),
    ) -> Vec<Change<V>> {
        let mut contents = self.contents.write();
        let applied = changes.into_iter().filter_map(|change| {
            let new = match &change {
                Change::Added(new) | Change::Updated { new, .. } => new,
                Change::Undecodable { last } | Change::Deleted { last, .. } => {
                    contents.remove(&last.meta().key);
                    return Some(change);
                }
            };
            match contents.put(Arc::clone(new)) {
                Ok(_) => Some(change),
                Err(panicked) => {
                    refused(new, panicked);
                    contents.remove(&new.meta().key);
                    change.without_new()
                }
            }
        });
        let applied = applied.collect();
        contents.shrink();
        applied
    }

    /// The changes that turn the contents into `all`: deletions, then additions and updates, each sorted by key.
    pub(crate) fn changes_to(&self, all: &SortedChunks<V>) -> Vec<Change<V>> {
        let contents = self.contents.read();
        let (mut vanished, mut newer) = (Vec::new(), Vec::new());
        let mut known = contents.sorted.iter().peekable();
        let deleted = |last: &Arc<V>| Change::missed_deletion(Arc::clone(last));
        for new in all.iter() {
            // Unchanged objects are the same allocation, so that most keys need no comparison.
            if known.next_if(|old| Arc::ptr_eq(old, new)).is_some() {
                continue;
            }
            let key = &new.meta().key;
            while let Some(old) = known.next_if(|old| old.meta().key < *key) {
                vanished.push(deleted(old));
            }
            let old = known.next_if(|old| old.meta().key == *key);
            newer.extend(Put::of(old, new).into_changes(Arc::clone(new)));
        }
        vanished.extend(known.map(deleted));
        vanished.append(&mut newer);
        vanished
    }

    /// Takes the objects that a new index lacks, because its function panicked for them.
    pub(crate) fn take_unindexed(&self) -> Vec<(Arc<V>, IndexPanicked)> {
        if self.contents.read().unindexed.is_empty() {
            return Vec::new();
        }
        std::mem::take(&mut self.contents.write().unindexed)
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
            let index = contents.built(Box::new(IndexMap::<V, K>::new(name, keys)));
            contents.indexes[slot] = Some(IndexSlot { identity, user: Arc::downgrade(&user), index });
            user
        });
        Index::new(user)
    }

    /// The objects of a namespace, sorted by key.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        self.contents.read().sorted.in_namespace(namespace).cloned().collect()
    }

    /// Calls `each` with every object of a namespace, in the order of keys. Copies nothing.
    ///
    /// The store takes no change meanwhile, so `each` must only read the object.
    pub fn for_each_in_namespace(&self, namespace: &str, each: impl FnMut(&Arc<V>)) {
        self.contents.read().sorted.in_namespace(namespace).for_each(each);
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
    fn empty() -> Self {
        Self { objects: HashSet::new(), sorted: SortedChunks::new(), indexes: Vec::new(), unindexed: Vec::new() }
    }

    /// A slot without an index.
    fn free_slot(&mut self) -> usize {
        self.indexes.iter().position(Option::is_none).unwrap_or_else(|| {
            self.indexes.push(None);
            self.indexes.len() - 1
        })
    }

    /// Fills an empty index with the objects in the store.
    fn built(&mut self, mut index: Box<dyn AnyIndex<V>>) -> Box<dyn AnyIndex<V>> {
        for object in self.sorted.iter() {
            match index.prepare(object) {
                Ok(()) => index.update(None, Some(object)),
                Err(panicked) => self.unindexed.push((Arc::clone(object), panicked)),
            }
        }
        index
    }

    fn put(&mut self, object: Arc<V>) -> Result<Put<V>, IndexPanicked> {
        let old = self.objects.get(&object.meta().key).map(|ByKey(old)| old);
        let put = Put::of(old, &object);
        if matches!(put, Put::Unchanged) {
            return Ok(put);
        }
        // All keys are known before anything changes, so that a panic leaves no half of a change.
        let mut indexes = self.indexes.iter_mut().flatten();
        indexes.try_for_each(|slot| slot.index.prepare(&object))?;
        let old = old.cloned();
        for slot in self.indexes.iter_mut().flatten() {
            slot.index.update(old.as_ref(), Some(&object));
        }
        match &old {
            Some(old) => self.sorted.replace(old, &object),
            None => self.sorted.insert(&object),
        }
        self.objects.replace(ByKey(object));
        Ok(put)
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<V>> {
        let ByKey(old) = self.objects.take(key)?;
        self.sorted.remove(&old);
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
    /// The result of putting `new` in the place of `old`.
    fn of(old: Option<&Arc<V>>, new: &Arc<V>) -> Self {
        match old {
            None => Self::Added,
            Some(old) if is_same_version(old.meta(), new.meta()) => Self::Unchanged,
            Some(old) if old.meta().uid == new.meta().uid => Self::Updated { old: Arc::clone(old) },
            Some(old) => Self::Replaced { old: Arc::clone(old) },
        }
    }

    /// The changes of which event handlers are notified after `new` was put.
    pub(crate) fn into_changes(self, new: Arc<V>) -> impl Iterator<Item = Change<V>> {
        let (first, second) = match self {
            Self::Unchanged => (None, None),
            Self::Added => (Some(Change::Added(new)), None),
            Self::Updated { old } => (Some(Change::Updated { old, new }), None),
            Self::Replaced { old } => (Some(Change::missed_deletion(old)), Some(Change::Added(new))),
        };
        first.into_iter().chain(second)
    }
}
