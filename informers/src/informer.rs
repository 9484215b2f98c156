//! The informer handle.

use std::hash::Hash;
use std::sync::Arc;

use kcm_api::{Meta, ObjectKey, Resource, ResourceVersion, View};

use crate::cache::Cache;
use crate::change::{Change, Origin};
use crate::event_handlers::{HandlerOptions, HandlerRegistration};
use crate::list_options::ListOptions;
use crate::registrations::HandlerRegistrations;
use crate::shared_informer::SharedInformer;
use crate::status::InformerStatus;
use crate::store::Index;

/// An informer: a cache of one resource that is kept up to date, with event handlers for changes.
///
/// Created by a [`Factory`](crate::Factory), and shared by all users of the same resource, view and list options. Cheap
/// to clone. The crate documentation has its contract.
pub struct Informer<V> {
    shared: Arc<SharedInformer<V>>,
    registrations: Option<HandlerRegistrations>,
}

impl<V> Clone for Informer<V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), registrations: self.registrations.clone() }
    }
}

impl<V: View> Informer<V> {
    pub(crate) const fn new(shared: Arc<SharedInformer<V>>) -> Self {
        Self { shared, registrations: None }
    }

    /// The same informer, which records the event handlers added through this handle.
    pub(crate) fn with_registrations(&self, registrations: Option<&HandlerRegistrations>) -> Self {
        Self { shared: Arc::clone(&self.shared), registrations: registrations.cloned() }
    }

    /// The object with that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.shared.store.get(key)
    }

    /// All objects, sorted by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        self.shared.store.list()
    }

    /// The objects of a namespace, sorted by key; the first call creates the index.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        self.shared.store.in_namespace(namespace)
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.store.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.store.is_empty()
    }

    /// The index of that name, by the keys that `keys` returns for each object.
    ///
    /// `keys` must be a pure function of its object: it runs under the lock of the cache. It may return an `Option`, an
    /// array or a `Vec`. A second call with the same name returns the same index, with the function of the first.
    ///
    /// # Panics
    /// When an index of that name has keys of another type.
    pub fn index<K, I>(&self, name: &'static str, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Index<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        self.shared.store.index(name, keys)
    }

    /// Adds an event handler, which is notified of the objects in the cache and then of every change, in order.
    ///
    /// It is notified of the objects in the cache before this returns, on the caller's thread, and of later changes on
    /// the task of the informer, which waits for it: a handler only enqueues keys.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn add_event_handler(
        &self,
        options: HandlerOptions,
        handler: impl FnMut(&Change<V>, Origin) + Send + 'static,
    ) -> HandlerRegistration {
        let registration = self.shared.add_event_handler(options, Box::new(handler));
        if let Some(registrations) = &self.registrations {
            let shared = Arc::clone(&self.shared);
            registrations.record(move || shared.remove_event_handler(registration));
        }
        registration
    }

    /// Removes an event handler. It is not called again after this returns.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn remove_event_handler(&self, registration: HandlerRegistration) {
        self.shared.remove_event_handler(registration);
    }

    /// Whether the informer has synced: its cache has held all objects once.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        Cache::has_synced(&*self.shared)
    }

    /// Waits until the cache has synced; for ever, if the informer is stopped before.
    pub async fn wait_synced(&self) {
        self.shared.wait_synced().await;
    }

    /// The resource version up to which the cache has applied all changes; unset until the first list is complete.
    #[must_use]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.shared.last_sync_resource_version()
    }

    /// Waits until the cache has applied all changes up to `version`; for ever, if the informer is stopped before.
    ///
    /// A version that does not compare does not block.
    pub async fn wait_for_resource_version(&self, version: &ResourceVersion) {
        self.shared.wait_for_resource_version(version).await;
    }

    /// The resource that is listed and watched.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.shared.resource
    }

    /// The list options.
    #[must_use]
    pub fn list_options(&self) -> &ListOptions {
        &self.shared.list_options
    }

    /// Whether an object with that metadata matches the list options.
    #[must_use]
    pub fn covers(&self, meta: &Meta) -> bool {
        self.shared.covers(meta)
    }

    /// The status of the informer.
    #[must_use]
    pub fn status(&self) -> InformerStatus {
        self.shared.status()
    }

    /// The informer as a [`Cache`], independent of its view.
    #[must_use]
    pub fn cache(&self) -> Arc<dyn Cache> {
        Arc::clone(&self.shared) as Arc<dyn Cache>
    }
}
