//! The informer handle.

use std::hash::Hash;
use std::sync::Arc;

use kcm_api::{Meta, ObjectKey, Resource, ResourceVersion, View};

use crate::cache::Cache;
use crate::change::{Change, Origin};
use crate::event_handlers::{HandlerOptions, HandlerRegistration};
use crate::list_options::ListOptions;
use crate::lookup::Lookup;
use crate::registrations::Recorder;
use crate::shared_informer::SharedInformer;
use crate::status::InformerStatus;
use crate::store::Index;
use crate::undecodable::UndecodableObject;

/// An informer: a cache of one resource that is kept up to date, with event handlers for changes.
///
/// Created by a [`Factory`](crate::Factory), and shared by all users of the same resource, view and list options. Cheap
/// to clone. The crate documentation has its contract.
pub struct Informer<V> {
    shared: Arc<SharedInformer<V>>,
    recorder: Recorder,
}

impl<V> Clone for Informer<V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), recorder: self.recorder.clone() }
    }
}

impl<V: View> Informer<V> {
    /// A handle that records its registrations.
    pub(crate) const fn new(shared: Arc<SharedInformer<V>>, recorder: Recorder) -> Self {
        Self { shared, recorder }
    }

    /// The object with that key.
    ///
    /// `None` also if the object cannot be decoded. A controller that decides by the absence of an object calls
    /// [`lookup`](Self::lookup) instead.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.shared.store.get(key)
    }

    /// The object with that key: found, absent, or undecodable.
    #[must_use]
    pub fn lookup(&self, key: &ObjectKey) -> Lookup<V> {
        self.shared.lookup(key)
    }

    /// All objects, sorted by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<V>> {
        self.shared.store.list()
    }

    /// Calls `each` with every object, in the order of keys. Copies nothing, so it is cheaper than [`list`](Self::list).
    ///
    /// The cache takes no change meanwhile, so `each` must only read the object.
    pub fn for_each(&self, each: impl FnMut(&Arc<V>)) {
        self.shared.store.for_each(each);
    }

    /// The objects of a namespace, sorted by key.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        self.shared.store.in_namespace(namespace)
    }

    /// Calls `each` with every object of a namespace, in the order of keys. Copies nothing, so it is cheaper than
    /// [`in_namespace`](Self::in_namespace) for a reader that needs few of the objects.
    ///
    /// The cache takes no change meanwhile, so `each` must only read the object.
    pub fn for_each_in_namespace(&self, namespace: &str, each: impl FnMut(&Arc<V>)) {
        self.shared.store.for_each_in_namespace(namespace, each);
    }

    /// The object with that key, if it cannot be decoded and so is not in the cache.
    #[must_use]
    pub fn undecodable(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
        Cache::undecodable(&*self.shared, key)
    }

    /// The objects that cannot be decoded, sorted by key; see [`Cache::undecodable_objects`].
    #[must_use]
    pub fn undecodable_objects(&self) -> Vec<Arc<UndecodableObject>> {
        Cache::undecodable_objects(&*self.shared)
    }

    /// Number of objects in the cache.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.store.len()
    }

    /// Returns `true` if the cache has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.store.is_empty()
    }

    /// An index by the keys that `keys` returns for each object; `name` is for logs.
    ///
    /// `keys` must be a pure function of its object: it runs under the lock of the cache. It may return an `Option`, an
    /// array or a `Vec`. A call with the same name and the same function returns the same index. A function that
    /// captures values always gets an index of its own, because its values may differ. An index is dropped with its
    /// last handle: keep one for as long as it is read, as each new index is computed from all objects.
    pub fn index<K, I, F>(&self, name: &'static str, keys: F) -> Index<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
        F: Fn(&V) -> I + Send + Sync + 'static,
    {
        self.shared.index(name, keys)
    }

    /// Adds an event handler, which is notified of the objects in the cache and then of every change, in order.
    ///
    /// It is notified of the first objects in the cache before this returns, on the caller's thread, and of the rest and of
    /// changes on the task of the informer, which waits for it: a handler only enqueues keys. A change of an object that
    /// it has not been notified of yet goes before the rest. It is removed with the
    /// [`Registrations`](crate::Registrations) of this handle, if it has any.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn add_event_handler(
        &self,
        options: HandlerOptions,
        handler: impl FnMut(&Change<V>, Origin) + Send + 'static,
    ) -> HandlerRegistration {
        let registration = self.shared.add_event_handler(options, Box::new(handler));
        let shared = Arc::downgrade(&self.shared);
        self.recorder.record(move || {
            if let Some(shared) = shared.upgrade() {
                shared.remove_event_handler(registration);
            }
        });
        registration
    }

    /// Returns `true` if the informer has synced and the event handler was notified of all objects that its cache held
    /// (client-go: `HasSynced` of the registration).
    #[must_use]
    pub fn handler_has_synced(&self, registration: HandlerRegistration) -> bool {
        self.shared.handler_has_synced(registration)
    }

    /// Notifies an event handler of all objects in the cache again, as added and with [`Origin::Initial`], in slices on the
    /// task of the informer. Changes go on meanwhile, and are not held back.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn notify_again(&self, registration: HandlerRegistration) {
        self.shared.show_again(registration);
    }

    /// Removes an event handler. It is not called again after this returns.
    ///
    /// # Panics
    /// When called from within a handler of the same informer.
    pub fn remove_event_handler(&self, registration: HandlerRegistration) {
        self.shared.remove_event_handler(registration);
    }

    /// Returns `true` if the informer has synced: its cache has held all objects once, since the resource is served.
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
        &self.shared.state.resource
    }

    /// The list options of the informer.
    #[must_use]
    pub fn list_options(&self) -> &ListOptions {
        &self.shared.state.list_options
    }

    /// Returns `true` if an object with that metadata matches the list options, and `None` if the metadata do not
    /// decide that.
    #[must_use]
    pub fn covers(&self, meta: &Meta) -> Option<bool> {
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
