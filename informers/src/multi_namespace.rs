//! Informers of several namespaces, read as one.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use futures::future::join_all;
use kcm_api::{ObjectKey, View};

use crate::informer::Informer;
use crate::lookup::Lookup;
use crate::store::Index;
use crate::undecodable::UndecodableObject;

/// The informers of one resource in several namespaces, read as one cache (controller-runtime: the multi-namespaced
/// cache).
///
/// The API lists one namespace or all, and a role may allow some namespaces alone, so each namespace has an informer of its
/// own. Values that differ between the informers, such as the last sync resource version, are read from
/// [`informers`](Self::informers). Cheap to clone.
///
/// Made of the informers: `[a, b].into_iter().collect()`. An informer that reads all namespaces is left out.
pub struct MultiNamespaceInformer<V> {
    by_namespace: Arc<BTreeMap<String, Informer<V>>>,
}

impl<V> Clone for MultiNamespaceInformer<V> {
    fn clone(&self) -> Self {
        Self { by_namespace: Arc::clone(&self.by_namespace) }
    }
}

impl<V: View> FromIterator<Informer<V>> for MultiNamespaceInformer<V> {
    fn from_iter<I: IntoIterator<Item = Informer<V>>>(informers: I) -> Self {
        let informers = informers.into_iter();
        let by_namespace =
            informers.filter_map(|informer| Some((informer.list_options().namespace.clone()?, informer)));
        Self { by_namespace: Arc::new(by_namespace.collect()) }
    }
}

impl<V: View> MultiNamespaceInformer<V> {
    /// The informer of each namespace, sorted by namespace.
    pub fn informers(&self) -> impl Iterator<Item = &Informer<V>> {
        self.by_namespace.values()
    }

    /// The object with that key; `None` if its namespace is not read.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.informer_of(key.namespace()?)?.get(key)
    }

    /// The object with that key: found, absent, or undecodable. Absent if its namespace is not read.
    #[must_use]
    pub fn lookup(&self, key: &ObjectKey) -> Lookup<V> {
        let informer = key.namespace().and_then(|namespace| self.informer_of(namespace));
        informer.map_or(Lookup::Absent, |informer| informer.lookup(key))
    }

    /// All objects, sorted by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        self.informers().flat_map(Informer::list).collect()
    }

    /// The objects of a namespace, sorted by key; empty if the namespace is not read.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        self.informer_of(namespace).map(Informer::list).unwrap_or_default()
    }

    /// The object with that key, if it cannot be decoded and so is not in the cache.
    #[must_use]
    pub fn undecodable(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
        self.informer_of(key.namespace()?)?.undecodable(key)
    }

    /// Number of objects in all namespaces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.informers().map(Informer::len).sum()
    }

    /// Returns `true` if no namespace has objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.informers().all(Informer::is_empty)
    }

    /// An index over all namespaces; see [`Informer::index`].
    pub fn index<K, I, F>(&self, name: &'static str, keys: F) -> MultiNamespaceIndex<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
        F: Fn(&V) -> I + Clone + Send + Sync + 'static,
    {
        MultiNamespaceIndex(self.informers().map(|informer| informer.index(name, keys.clone())).collect())
    }

    /// Returns `true` if all namespaces have synced.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.informers().all(Informer::has_synced)
    }

    /// Waits until all namespaces have synced; for ever, if an informer is stopped before.
    pub async fn wait_synced(&self) {
        join_all(self.informers().map(Informer::wait_synced)).await;
    }

    fn informer_of(&self, namespace: &str) -> Option<&Informer<V>> {
        self.by_namespace.get(namespace)
    }
}

/// An index of a [`MultiNamespaceInformer`].
pub struct MultiNamespaceIndex<V, K>(Vec<Index<V, K>>);

impl<V, K> Clone for MultiNamespaceIndex<V, K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: View, K: Eq + Hash + 'static> MultiNamespaceIndex<V, K> {
    /// The objects with that key, sorted by their object keys.
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Vec<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.iter().flat_map(|index| index.get(key)).collect()
    }

    /// Number of objects with that index key.
    #[must_use]
    pub fn count<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.0.iter().map(|index| index.count(key)).sum()
    }
}
