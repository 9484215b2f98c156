//! The state that the reflector and the handles of an informer share, and the order of each step.
//!
//! Each step changes the cache and its indexes, notifies the event handlers, moves the last sync resource version, and
//! then calls hooks and wakes waiters. The order is in [`SharedInformer::step`].

use std::cell::RefCell;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kcm_api::{DecodeContext, Meta, ObjectKey, Resource, ResourceVersion, Uid, View};
use parking_lot::{Mutex, ReentrantMutex};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::availability::Availability;
use crate::cache::{Cache, ObjectState};
use crate::change::{Change, Origin};
use crate::event_handlers::{EventHandlers, Handler, HandlerOptions, HandlerRegistration, Report};
use crate::list_options::ListOptions;
use crate::metrics::Metrics;
use crate::progress_hooks::{HookRegistration, ProgressHook, ProgressHooks};
use crate::status::{InformerStatus, Record, UndecodableObjects};
use crate::store::Store;

pub(crate) struct SharedInformer<V> {
    pub(crate) resource: Resource,
    pub(crate) list_options: ListOptions,
    pub(crate) decode_context: Arc<DecodeContext>,
    pub(crate) metrics: Arc<dyn Metrics>,
    pub(crate) store: Arc<Store<V>>,
    pub(crate) record: Mutex<Record>,
    pub(crate) availability: Availability,
    /// Held from before the cache changes until all event handlers are notified. Reentrant only so that a handler that
    /// adds a handler causes a clear panic instead of a deadlock.
    handlers: ReentrantMutex<RefCell<EventHandlers<V>>>,
    hooks: Arc<ProgressHooks>,
    observed: watch::Sender<ResourceVersion>,
    synced: watch::Sender<bool>,
    /// Notified when an event handler is added, which may have a resync period.
    pub(crate) rescheduled: Notify,
}

/// An object that could not be decoded.
#[derive(Debug)]
pub(crate) struct Undecodable {
    pub(crate) meta: Option<Box<Meta>>,
    pub(crate) error: String,
}

/// The objects of a list that is not complete yet.
pub(crate) struct Staged<V> {
    pub(crate) objects: Vec<Arc<V>>,
    pub(crate) undecodable_objects: UndecodableObjects,
}

impl<V> Default for Staged<V> {
    fn default() -> Self {
        Self { objects: Vec::new(), undecodable_objects: UndecodableObjects::default() }
    }
}

impl<V: View> SharedInformer<V> {
    pub(crate) fn new(
        resource: Resource,
        list_options: ListOptions,
        decode_context: Arc<DecodeContext>,
        metrics: Arc<dyn Metrics>,
    ) -> Self {
        Self {
            resource,
            list_options,
            decode_context,
            metrics,
            store: Arc::new(Store::new()),
            record: Mutex::new(Record::new()),
            availability: Availability::new(),
            handlers: ReentrantMutex::new(RefCell::new(EventHandlers::new())),
            hooks: Arc::default(),
            observed: watch::Sender::new(ResourceVersion::default()),
            synced: watch::Sender::new(false),
            rescheduled: Notify::new(),
        }
    }

    /// Applies an addition or a change.
    pub(crate) fn put(&self, object: Arc<V>) {
        let version = object.meta().resource_version.clone();
        self.record.lock().undecodable_objects.forget(&object.meta().key);
        self.step(Some(version), Origin::Live, || self.store.put(Arc::clone(&object)).into_changes(object).collect());
    }

    /// Applies a deletion; `last` is the last state of the object.
    pub(crate) fn remove(&self, last: Arc<V>) {
        let Meta { key, uid, resource_version: version, .. } = last.meta();
        let (key, uid, version) = (key.clone(), uid.clone(), version.clone());
        self.record.lock().undecodable_objects.forget(&key);
        self.step_and_end(Some(version), Some(&uid), || {
            let removed = self.store.remove(&key)?;
            let final_state_known = removed.meta().uid == uid;
            Some(Change::Deleted { last: if final_state_known { last } else { removed }, final_state_known })
        });
    }

    /// Applies a change of an object that cannot be decoded: its old state stays.
    pub(crate) fn put_undecodable(&self, undecodable: Undecodable) {
        let Undecodable { meta, error } = undecodable;
        self.record.lock().undecodable_objects.note(meta.as_ref().map(|meta| &meta.key), error);
        self.step(meta.map(|meta| meta.resource_version), Origin::Live, Vec::new);
    }

    /// Applies a deletion of an object whose last state cannot be decoded.
    pub(crate) fn remove_undecodable(&self, undecodable: Undecodable) {
        let Some(meta) = undecodable.meta else {
            self.put_undecodable(undecodable);
            return;
        };
        self.record.lock().undecodable_objects.forget(&meta.key);
        self.step_and_end(Some(meta.resource_version), Some(&meta.uid), || {
            Some(Change::Deleted { last: self.store.remove(&meta.key)?, final_state_known: false })
        });
    }

    /// Replaces the contents of the cache by a complete list at that version.
    pub(crate) fn commit(&self, staged: Staged<V>, version: ResourceVersion) {
        let first = self.last_sync_resource_version().is_unset();
        {
            let mut record = self.record.lock();
            record.lists += 1;
            record.undecodable_objects = staged.undecodable_objects.clone();
        }
        self.metrics.listed(!first);
        let origin = if first { Origin::Initial } else { Origin::Live };
        self.step(Some(version), origin, || {
            self.store.replace(staged.objects, |key| staged.undecodable_objects.contains(key))
        });
    }

    /// Moves the last sync resource version, as a bookmark does.
    pub(crate) fn advance(&self, version: ResourceVersion) {
        self.step(Some(version), Origin::Live, Vec::new);
    }

    /// Empties the cache, as all objects of a resource go with it. The next list is the first again.
    pub(crate) fn empty(&self) {
        let mut ended = Vec::new();
        self.record.lock().undecodable_objects = UndecodableObjects::default();
        self.notify(Origin::Live, || self.store.replace(Vec::new(), |_| false), &mut ended);
        self.synced.send_replace(false);
        self.observed.send_replace(ResourceVersion::default());
        self.hooks.call(ResourceVersion::default, &ended, &self.report());
    }

    fn step_and_end(
        &self,
        version: Option<ResourceVersion>,
        uid: Option<&Uid>,
        change: impl FnOnce() -> Option<Change<V>>,
    ) {
        let mut ended = Vec::new();
        self.notify(Origin::Live, || change().into_iter().collect(), &mut ended);
        // A deleted object that the cache never held counts too.
        ended.extend(uid.filter(|uid| !ended.contains(uid)).cloned());
        self.progress(version, &ended);
    }

    /// Takes a step: cache, event handlers, last sync resource version, hooks.
    fn step(&self, version: Option<ResourceVersion>, origin: Origin, change_cache: impl FnOnce() -> Vec<Change<V>>) {
        let mut ended = Vec::new();
        self.notify(origin, change_cache, &mut ended);
        self.progress(version, &ended);
    }

    fn notify(&self, origin: Origin, change_cache: impl FnOnce() -> Vec<Change<V>>, ended: &mut Vec<Uid>) {
        self.with_handlers(|handlers, report| {
            for change in change_cache() {
                handlers.notify(&change, origin, report);
                ended.extend(ended_by(&change).cloned());
            }
        });
    }

    fn progress(&self, version: Option<ResourceVersion>, ended: &[Uid]) {
        let complete = {
            let record = self.record.lock();
            record.lists > 0 && record.undecodable_objects.is_empty()
        };
        if complete && let Some(version) = version {
            self.observed.send_replace(version);
        }
        if complete {
            self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
        self.hooks.call(|| self.last_sync_resource_version(), ended, &self.report());
    }

    pub(crate) fn add_event_handler(&self, options: HandlerOptions, handler: Handler<V>) -> HandlerRegistration {
        let id = self.with_handlers(|handlers, report| {
            let initial = self.store.list().into_iter().map(Change::Added);
            handlers.add(options, handler, initial, report)
        });
        self.rescheduled.notify_one();
        id
    }

    pub(crate) fn remove_event_handler(&self, id: HandlerRegistration) {
        let removed = self.with_handlers(|handlers, _| handlers.remove(id));
        // Dropped without the lock: it may own registrations with this informer, which end with it.
        drop(removed);
    }

    pub(crate) fn next_resync(&self) -> Option<Instant> {
        self.with_handlers(|handlers, _| handlers.next_resync())
    }

    pub(crate) fn resync(&self, now: Instant) {
        let everything = || {
            let objects = self.store.list().into_iter();
            objects.map(|object| Change::Updated { old: Arc::clone(&object), new: object }).collect()
        };
        self.with_handlers(|handlers, report| handlers.resync(now, everything, report));
    }

    fn with_handlers<R>(&self, act: impl FnOnce(&mut EventHandlers<V>, &Report<'_>) -> R) -> R {
        let handlers = self.handlers.lock();
        let mut handlers = handlers.try_borrow_mut().expect(
            "an event handler must not add handlers to, or remove handlers from, the informer that notifies it",
        );
        act(&mut handlers, &self.report())
    }

    fn report(&self) -> Report<'_> {
        Report { resource: &self.resource, metrics: &*self.metrics }
    }

    pub(crate) async fn wait_for_resource_version(&self, version: &ResourceVersion) {
        // A version that does not compare must not block; before the first list the version is unset.
        let reached =
            |observed: &ResourceVersion| !observed.is_unset() && observed.is_at_least(version).unwrap_or(true);
        let outcome = self.observed.subscribe().wait_for(reached).await.map(drop);
        outcome.expect("the sender must live as long as the informer");
    }
}

/// The object that this change deletes, or shows terminating for the first time.
fn ended_by<V: View>(change: &Change<V>) -> Option<&Uid> {
    let ended = match change {
        Change::Added(new) => new.meta().is_terminating().then_some(new),
        Change::Updated { old, new } => (new.meta().is_terminating() && !old.meta().is_terminating()).then_some(new),
        Change::Deleted { last, .. } => Some(last),
    };
    ended.map(|object| &object.meta().uid)
}

impl<V: View> Cache for SharedInformer<V> {
    fn resource(&self) -> &Resource {
        &self.resource
    }

    fn list_options(&self) -> &ListOptions {
        &self.list_options
    }

    fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    fn status(&self) -> InformerStatus {
        let synced = self.has_synced();
        let objects = self.store.len();
        let last_sync_resource_version = self.last_sync_resource_version();
        let record = self.record.lock();
        InformerStatus {
            resource: self.resource.clone(),
            list_options: self.list_options.clone(),
            view: std::any::type_name::<V>(),
            also_watched_as: Vec::new(),
            phase: record.phase(),
            phase_for: record.phase_for(),
            synced,
            reason: record.reason(synced),
            last_error: record.last_error.clone(),
            objects,
            undecodable: record.undecodable_objects.len(),
            lists: record.lists,
            last_sync_resource_version,
        }
    }

    fn last_sync_resource_version(&self) -> ResourceVersion {
        self.observed.borrow().clone()
    }

    fn object_state(&self, key: &ObjectKey) -> Option<ObjectState> {
        self.store.get(key).map(|object| ObjectState::from(object.meta()))
    }

    fn matching(&self, options: &ListOptions) -> Vec<(ObjectKey, ObjectState)> {
        let objects = self.store.list().into_iter();
        let matching = objects.filter(|object| options.covers(object.meta()));
        matching.map(|object| (object.meta().key.clone(), ObjectState::from(object.meta()))).collect()
    }

    fn covers(&self, meta: &Meta) -> bool {
        self.list_options.covers(meta)
    }

    fn on_progress(&self, hook: ProgressHook) -> HookRegistration {
        self.hooks.add(hook)
    }

    fn wait_synced(&self) -> BoxFuture<'static, ()> {
        let mut synced = self.synced.subscribe();
        async move {
            if synced.wait_for(|synced| *synced).await.is_err() {
                // The informer was dropped before it synced.
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}
