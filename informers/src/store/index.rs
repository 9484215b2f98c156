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
use crate::panic_message::panic_message;

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

type KeysOf<V, K> = Arc<dyn Fn(&V, &mut dyn FnMut(K)) + Send + Sync>;

/// An index function panicked, so that the object cannot be found by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the function of the index {index:?} panicked: {panic}")]
pub struct IndexPanicked {
    /// The name of the index.
    pub index: &'static str,
    /// The message of the panic.
    pub panic: String,
}

type Keys<K> = SmallVec<[K; 2]>;

/// An index of one key type; lives inside the store, under its lock.
pub(super) struct IndexMap<V, K> {
    name: &'static str,
    keys: KeysOf<V, K>,
    entries: HashMap<K, SortedChunks<V>>,
    /// The keys of the object that is about to be put.
    prepared: Keys<K>,
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
    /// Computes the keys of `new` for the [`update`](Self::update) that follows. Nothing that readers see changes.
    fn prepare(&mut self, new: &Arc<V>) -> Result<(), IndexPanicked>;
    /// Replaces `old` by `new`, which was prepared; both have the same object key.
    fn update(&mut self, old: Option<&Arc<V>>, new: Option<&Arc<V>>);
    /// Returns an empty index with the same function.
    fn emptied(&self) -> Box<dyn AnyIndex<V>>;
    fn as_any(&self) -> &dyn Any;
}

impl<V: View, K: Eq + Hash + Clone + Send + Sync + 'static> IndexMap<V, K> {
    pub(super) fn new<I>(name: &'static str, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = K>,
    {
        let keys: KeysOf<V, K> = Arc::new(move |object, each| keys(object).into_iter().for_each(each));
        Self { name, keys, entries: HashMap::new(), prepared: Keys::new() }
    }

    fn keys_of(&self, object: &Arc<V>) -> Result<Keys<K>, IndexPanicked> {
        let mut found = Keys::new();
        catch_unwind(AssertUnwindSafe(|| (self.keys)(object, &mut |key| found.push(key))))
            .map(|()| found)
            .map_err(|panic| IndexPanicked { index: self.name, panic: panic_message(&*panic) })
    }

    fn remove(&mut self, key: &K, object: &Arc<V>) {
        let Some(objects) = self.entries.get_mut(key) else { return };
        objects.remove(object);
        if objects.is_empty() {
            self.entries.remove(key);
            self.shrink();
        }
    }

    /// Removes an object whose keys are not known any more, because the function panics now: each entry is searched.
    fn remove_everywhere(&mut self, object: &Arc<V>) {
        self.entries.retain(|_, objects| {
            objects.remove(object);
            !objects.is_empty()
        });
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }
}

impl<V: View, K: Eq + Hash + Clone + Send + Sync + 'static> AnyIndex<V> for IndexMap<V, K> {
    fn prepare(&mut self, new: &Arc<V>) -> Result<(), IndexPanicked> {
        self.prepared = self.keys_of(new)?;
        Ok(())
    }

    fn update(&mut self, old: Option<&Arc<V>>, new: Option<&Arc<V>>) {
        let new_keys = std::mem::take(&mut self.prepared);
        let old_keys = match old.map(|old| (old, self.keys_of(old))) {
            None => Keys::new(),
            Some((_, Ok(keys))) => keys,
            Some((old, Err(_))) => {
                self.remove_everywhere(old);
                Keys::new()
            }
        };
        if let Some(old) = old {
            for key in old_keys.iter().filter(|key| new.is_none() || !new_keys.contains(key)) {
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

    fn emptied(&self) -> Box<dyn AnyIndex<V>> {
        let Self { name, keys, entries: _, prepared: _ } = self;
        Box::new(Self { name, keys: Arc::clone(keys), entries: HashMap::new(), prepared: Keys::new() })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
