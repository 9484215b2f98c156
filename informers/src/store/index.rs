//! Named indexes: objects by keys computed from them.

use std::any::Any;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kcm_api::View;
use smallvec::SmallVec;

use super::Store;
use super::sorted_chunks::SortedChunks;

/// An index: the objects of a cache by the keys that a function computes.
///
/// It changes together with the cache: an object is visible in both or in neither.
/// It is shared by all handles, and dropped with the last.
pub struct Index<V, K> {
    user: Arc<IndexUser<V>>,
    keys: PhantomData<fn(&K)>,
}

/// The user of an index: all its handles. Dropped, it drops the index.
pub(super) struct IndexUser<V> {
    store: Arc<Store<V>>,
    slot: usize,
}

impl<V> IndexUser<V> {
    pub(super) fn new(store: &Arc<Store<V>>, slot: usize) -> Self {
        Self { store: Arc::clone(store), slot }
    }
}

impl<V> Drop for IndexUser<V> {
    fn drop(&mut self) {
        self.store.drop_index(self.slot);
    }
}

impl<V, K> Clone for Index<V, K> {
    fn clone(&self) -> Self {
        Self { user: Arc::clone(&self.user), keys: PhantomData }
    }
}

impl<V: View, K: Eq + Hash + 'static> Index<V, K> {
    pub(super) const fn new(user: Arc<IndexUser<V>>) -> Self {
        Self { user, keys: PhantomData }
    }

    /// The objects with that key, sorted by their object keys.
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Vec<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.read(|index| index.objects(key))
    }

    /// Number of objects with that index key.
    #[must_use]
    pub fn count<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.read(|index| index.entries.get(key).map_or(0, SortedChunks::len))
    }

    /// Returns `true` if an object with that key matches.
    ///
    /// The cache takes no change meanwhile, so `matches` must only read the object.
    #[must_use]
    pub fn any<Q>(&self, key: &Q, matches: impl FnMut(&V) -> bool) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.read(|index| index.entries.get(key).is_some_and(|objects| objects.any(matches)))
    }

    fn read<R>(&self, read: impl FnOnce(&IndexMap<V, K>) -> R) -> R {
        self.user.store.read_index(self.user.slot, read)
    }
}

type KeysOf<V, K> = Box<dyn Fn(&V, &mut dyn FnMut(K)) + Send + Sync>;

/// An index of one key type; lives inside the store, under its lock.
pub(super) struct IndexMap<V, K> {
    name: &'static str,
    keys: KeysOf<V, K>,
    entries: HashMap<K, SortedChunks<V>>,
}

impl<V: View, K: Eq + Hash> IndexMap<V, K> {
    /// The objects with that key, sorted by their object keys.
    pub(super) fn objects<Q>(&self, key: &Q) -> Vec<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.get(key).map_or_else(Vec::new, SortedChunks::objects)
    }
}

/// An index of any key type.
pub(super) trait AnyIndex<V>: Send + Sync {
    /// Replaces `old` by `new`; both have the same object key.
    fn update(&mut self, old: Option<&Arc<V>>, new: Option<&Arc<V>>);
    /// Rebuilds the index from all objects.
    fn rebuild(&mut self, objects: &mut dyn Iterator<Item = &Arc<V>>);
    fn as_any(&self) -> &dyn Any;
}

impl<V: View, K: Eq + Hash + Clone + Send + Sync + 'static> IndexMap<V, K> {
    pub(super) fn new<I>(name: &'static str, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = K>,
    {
        let keys: KeysOf<V, K> = Box::new(move |object, each| keys(object).into_iter().for_each(each));
        Self { name, keys, entries: HashMap::new() }
    }

    /// The keys of an object. After a panic of the function the object has none, and the cache stays intact.
    fn keys_of(&self, object: &Arc<V>) -> SmallVec<[K; 2]> {
        let mut found = SmallVec::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.keys)(object, &mut |key| found.push(key))));
        if outcome.is_err() {
            tracing::error!(index = self.name, key = %object.meta().key, "Index function panicked");
            found.clear();
        }
        found
    }

    fn remove(&mut self, key: &K, object: &Arc<V>) {
        let Some(objects) = self.entries.get_mut(key) else { return };
        objects.remove(object);
        if objects.is_empty() {
            self.entries.remove(key);
            if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
                self.entries.shrink_to(self.entries.len() * 2);
            }
        }
    }
}

impl<V: View, K: Eq + Hash + Clone + Send + Sync + 'static> AnyIndex<V> for IndexMap<V, K> {
    fn update(&mut self, old: Option<&Arc<V>>, new: Option<&Arc<V>>) {
        let old_keys = old.map(|object| self.keys_of(object)).unwrap_or_default();
        let new_keys = new.map(|object| self.keys_of(object)).unwrap_or_default();
        if let Some(old) = old {
            for key in old_keys.iter().filter(|key| !new_keys.contains(key)) {
                self.remove(key, old);
            }
        }
        let Some(new) = new else { return };
        for key in new_keys {
            let old = old.filter(|_| old_keys.contains(&key));
            let objects = self.entries.entry(key).or_insert_with(SortedChunks::new);
            match old {
                Some(old) => objects.replace(old, new),
                None => objects.insert(new),
            }
        }
    }

    fn rebuild(&mut self, objects: &mut dyn Iterator<Item = &Arc<V>>) {
        self.entries.clear();
        let mut sorted: Vec<_> = objects.collect();
        sorted.sort_by(|a, b| a.meta().key.cmp(&b.meta().key));
        for object in sorted {
            self.update(None, Some(object));
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
