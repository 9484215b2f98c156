//! Informers of metadata, served from whatever cache holds the objects.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kcm_api::{Meta, ObjectKey, View};

use crate::cache::Cache;
use crate::change::{Change, Origin};
use crate::event_handlers::{HandlerOptions, HandlerRegistration};
use crate::list_options::ListOptions;
use crate::object_meta::ObjectMeta;
use crate::registrations::Recorder;
use crate::shared_informer::SharedInformer;

/// A change of an object of any view.
pub type MetadataChange = Change<dyn ObjectMeta>;

type MetadataHandler = Box<dyn FnMut(&MetadataChange, Origin) + Send>;

/// An informer of the metadata of a resource (client-go: `metadatainformer`).
///
/// Created by [`Factory::metadata_informer`](crate::Factory::metadata_informer). It is a view over the cache of an
/// informer that holds the objects anyway, of any view, or else over a cache of their metadata only: nothing is held
/// twice. [`Meta::annotations`] has what that view keeps. An object that cannot be decoded as that view is missing here
/// as well, and [`Cache::undecodable_objects`] of [`cache`](Self::cache) has its metadata.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct MetadataInformer {
    source: Arc<dyn MetadataSource>,
    /// The selection, if the cache holds more objects.
    within: Option<ListOptions>,
    recorder: Recorder,
}

impl MetadataInformer {
    pub(crate) fn new(source: Arc<dyn MetadataSource>, list_options: ListOptions, recorder: Recorder) -> Self {
        let within = (*source.as_cache().list_options() != list_options).then_some(list_options);
        Self { source, within, recorder }
    }

    /// The object with that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<dyn ObjectMeta>> {
        self.source.get(key).filter(|object| self.selects(object.metadata()))
    }

    /// All objects, sorted by key.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<dyn ObjectMeta>> {
        self.source.list(&|meta| self.selects(meta))
    }

    /// Adds an event handler, as [`Informer::add_event_handler`](crate::Informer::add_event_handler) does. An object that
    /// leaves or enters the list options is a deletion or an addition.
    ///
    /// # Panics
    /// When called from within a handler of the informer that holds the objects.
    pub fn add_event_handler(
        &self,
        options: HandlerOptions,
        mut handler: impl FnMut(&MetadataChange, Origin) + Send + 'static,
    ) -> HandlerRegistration {
        let within = self.within.clone();
        let registration = self.source.add_event_handler(
            options,
            Box::new(move |change, origin| match &within {
                None => handler(change, origin),
                Some(within) => {
                    if let Some(change) = narrowed(change, within) {
                        handler(&change, origin);
                    }
                }
            }),
        );
        let source = Arc::downgrade(&self.source);
        self.recorder.record(move || {
            if let Some(source) = source.upgrade() {
                source.remove_event_handler(registration);
            }
        });
        registration
    }

    /// Returns `true` if the cache has synced and the event handler was notified of all objects that it held.
    #[must_use]
    pub fn handler_has_synced(&self, registration: HandlerRegistration) -> bool {
        self.source.handler_has_synced(registration)
    }

    /// Waits until [`handler_has_synced`](Self::handler_has_synced); for ever, if the informer is stopped before.
    #[must_use]
    pub fn wait_handler_synced(&self, registration: HandlerRegistration) -> BoxFuture<'static, ()> {
        Arc::clone(&self.source).wait_handler_synced(registration)
    }

    /// Removes an event handler. It is not called again after this returns.
    ///
    /// # Panics
    /// When called from within a handler of the informer that holds the objects.
    pub fn remove_event_handler(&self, registration: HandlerRegistration) {
        self.source.remove_event_handler(registration);
    }

    /// The cache that holds the objects, which may hold more than the list options select.
    #[must_use]
    pub fn cache(&self) -> Arc<dyn Cache> {
        Arc::clone(&self.source).into_cache()
    }

    fn selects(&self, meta: &Meta) -> bool {
        self.within.as_ref().is_none_or(|within| within.covers(meta) == Some(true))
    }
}

/// The part of a change within the list options.
fn narrowed(change: &MetadataChange, within: &ListOptions) -> Option<MetadataChange> {
    let selects = |object: &Arc<dyn ObjectMeta>| within.covers(object.metadata()) == Some(true);
    match change {
        Change::Added(object) => selects(object).then(|| change.clone()),
        Change::Undecodable { last } | Change::Deleted { last, .. } => selects(last).then(|| change.clone()),
        Change::Updated { old, new } => match (selects(old), selects(new)) {
            (true, true) => Some(change.clone()),
            (false, true) => Some(Change::Added(Arc::clone(new))),
            (true, false) => Some(Change::Deleted { last: Arc::clone(old), final_state_known: true }),
            (false, false) => None,
        },
    }
}

/// An informer of any view, as a source of metadata.
pub(crate) trait MetadataSource: Send + Sync {
    fn get(&self, key: &ObjectKey) -> Option<Arc<dyn ObjectMeta>>;
    /// The objects with metadata for which `selects` holds, sorted by key.
    fn list(&self, selects: &dyn Fn(&Meta) -> bool) -> Vec<Arc<dyn ObjectMeta>>;
    fn handler_has_synced(&self, registration: HandlerRegistration) -> bool;
    fn wait_handler_synced(self: Arc<Self>, registration: HandlerRegistration) -> BoxFuture<'static, ()>;
    fn add_event_handler(&self, options: HandlerOptions, handler: MetadataHandler) -> HandlerRegistration;
    fn remove_event_handler(&self, registration: HandlerRegistration);
    fn as_cache(&self) -> &dyn Cache;
    fn into_cache(self: Arc<Self>) -> Arc<dyn Cache>;
}

impl<V: View> MetadataSource for SharedInformer<V> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<dyn ObjectMeta>> {
        self.store.get(key).map(any_view)
    }

    fn list(&self, selects: &dyn Fn(&Meta) -> bool) -> Vec<Arc<dyn ObjectMeta>> {
        let mut selected = Vec::new();
        self.store.for_each(|object| {
            if selects(object.meta()) {
                selected.push(any_view(Arc::clone(object)));
            }
        });
        selected
    }

    fn handler_has_synced(&self, registration: HandlerRegistration) -> bool {
        Self::handler_has_synced(self, registration)
    }

    fn wait_handler_synced(self: Arc<Self>, registration: HandlerRegistration) -> BoxFuture<'static, ()> {
        async move { Self::wait_handler_synced(&self, registration).await }.boxed()
    }

    fn add_event_handler(&self, options: HandlerOptions, mut handler: MetadataHandler) -> HandlerRegistration {
        let handler = Box::new(move |change: &Change<V>, origin: Origin| handler(&of_any_view(change), origin));
        Self::add_event_handler(self, options, handler)
    }

    fn remove_event_handler(&self, registration: HandlerRegistration) {
        Self::remove_event_handler(self, registration);
    }

    fn as_cache(&self) -> &dyn Cache {
        self
    }

    fn into_cache(self: Arc<Self>) -> Arc<dyn Cache> {
        self
    }
}

fn any_view<V: View>(object: Arc<V>) -> Arc<dyn ObjectMeta> {
    object
}

fn of_any_view<V: View>(change: &Change<V>) -> MetadataChange {
    let any = |object: &Arc<V>| any_view(Arc::clone(object));
    match change {
        Change::Added(object) => Change::Added(any(object)),
        Change::Updated { old, new } => Change::Updated { old: any(old), new: any(new) },
        Change::Undecodable { last } => Change::Undecodable { last: any(last) },
        Change::Deleted { last, final_state_known } => {
            Change::Deleted { last: any(last), final_state_known: *final_state_known }
        }
    }
}
