//! The handle of an informer.

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

/// A cache of one resource that is kept up to date, and tells of what changes.
///
/// Got from a [`Factory`](crate::Factory), and shared with everybody who asks there for the same. Cheap to clone. What
/// is promised stands on the page of this crate.
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

    /// The same informer, with the subscriptions that are made through this handle noted.
    pub(crate) fn with_registrations(&self, subscriptions: Option<&HandlerRegistrations>) -> Self {
        Self { shared: Arc::clone(&self.shared), registrations: subscriptions.cloned() }
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

    /// The objects of a namespace, sorted by key; the first call makes the index for it.
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

    /// The index of that name, which finds objects by the keys that `keys` gives each of them.
    ///
    /// `keys` must be a plain function of its object: it runs under the lock of the cache. It may return an `Option`,
    /// an array or a `Vec`. The same name twice gives the same index; which function it has is decided by the first.
    ///
    /// # Panics
    /// When the name is taken by an index with keys of another type.
    pub fn index<K, I>(&self, name: &'static str, keys: impl Fn(&V) -> I + Send + Sync + 'static) -> Index<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
    {
        self.shared.store.index(name, keys)
    }

    /// Has `handler` told of what the cache holds, marked as initial, and then of every change, in order.
    ///
    /// What the cache holds is told before this returns, on the caller's thread; all later changes are told on the
    /// task of the informer. A handler does little: it holds up the informer for as long as it takes.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn add_event_handler(
        &self,
        subscription: HandlerOptions,
        handler: impl FnMut(&Change<V>, Origin) + Send + 'static,
    ) -> HandlerRegistration {
        let id = self.shared.add_event_handler(subscription, Box::new(handler));
        if let Some(subscriptions) = &self.registrations {
            let shared = Arc::clone(&self.shared);
            subscriptions.note(move || shared.remove_event_handler(id));
        }
        id
    }

    /// Ends a subscription. Once this has returned the handler is not called again.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn remove_event_handler(&self, subscriber: HandlerRegistration) {
        self.shared.remove_event_handler(subscriber);
    }

    /// Whether the cache has once held everything.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        Cache::has_synced(&*self.shared)
    }

    /// Waits until the cache has synced; for ever, if the informer is stopped before.
    pub async fn wait_synced(&self) {
        self.shared.wait_synced().await;
    }

    /// The version up to which the cache has seen everything; unset until the first list is complete.
    #[must_use]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.shared.last_sync_resource_version()
    }

    /// Waits until the cache has seen everything up to `version`; for ever, if the informer is stopped before.
    ///
    /// A version that does not compare with what was observed does not block.
    pub async fn wait_for_resource_version(&self, version: &ResourceVersion) {
        self.shared.wait_for_resource_version(version).await;
    }

    /// What is listed and watched.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.shared.resource
    }

    /// Which objects of that.
    #[must_use]
    pub fn list_options(&self) -> &ListOptions {
        &self.shared.list_options
    }

    /// Whether the cache holds an object with that metadata when there is one.
    #[must_use]
    pub fn covers(&self, meta: &Meta) -> bool {
        self.shared.covers(meta)
    }

    /// How the informer is doing.
    #[must_use]
    pub fn status(&self) -> InformerStatus {
        self.shared.status()
    }

    /// The same informer, for those who do not care what it holds.
    #[must_use]
    pub fn cache(&self) -> Arc<dyn Cache> {
        Arc::clone(&self.shared) as Arc<dyn Cache>
    }
}
