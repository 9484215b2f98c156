//! The state that the reflector and the handles of an informer share, and the order of each step.
//!
//! Each step changes the cache and its indexes, notifies the event handlers, moves the last sync resource version, and
//! then calls hooks and wakes waiters. The order is in [`SharedInformer::step`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
use crate::status::{InformerStatus, Record};
use crate::store::Store;
use crate::undecodable::{SharedUndecodable, Undecodable, UndecodableObject, UndecodableObjects};

/// The state of an informer that does not depend on the type of its objects.
pub(crate) struct InformerState {
    pub(crate) resource: Resource,
    pub(crate) list_options: ListOptions,
    pub(crate) decode_context: Arc<DecodeContext>,
    pub(crate) metrics: Arc<dyn Metrics>,
    pub(crate) record: Mutex<Record>,
    pub(crate) availability: Availability,
    /// Notified when an event handler is added, which may have a resync period, or when the informer must list again.
    pub(crate) rescheduled: Notify,
    /// Set if the informer must list again.
    pub(crate) must_relist: AtomicBool,
    /// Notified when the storage of the API server may have gone back.
    pub(crate) rollback_suspected: Arc<Notify>,
}

pub(crate) struct SharedInformer<V> {
    pub(crate) state: Arc<InformerState>,
    pub(crate) store: Arc<Store<V>>,
    undecodable: SharedUndecodable,
    /// Held from before the cache changes until all event handlers are notified. Reentrant only so that a handler that
    /// adds a handler causes a clear panic instead of a deadlock.
    handlers: ReentrantMutex<RefCell<EventHandlers<V>>>,
    hooks: Arc<ProgressHooks>,
    observed: watch::Sender<ResourceVersion>,
    synced: watch::Sender<bool>,
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
        rollback_suspected: Arc<Notify>,
    ) -> Self {
        let state = InformerState {
            resource,
            list_options,
            decode_context,
            metrics,
            record: Mutex::new(Record::new()),
            availability: Availability::new(),
            rescheduled: Notify::new(),
            must_relist: AtomicBool::new(false),
            rollback_suspected,
        };
        Self {
            state: Arc::new(state),
            store: Arc::new(Store::new()),
            undecodable: SharedUndecodable::default(),
            handlers: ReentrantMutex::new(RefCell::new(EventHandlers::new())),
            hooks: Arc::default(),
            observed: watch::Sender::new(ResourceVersion::default()),
            synced: watch::Sender::new(false),
        }
    }

    /// Applies an addition or a change.
    pub(crate) fn put(&self, object: Arc<V>) {
        let version = object.meta().resource_version.clone();
        self.step(Some(version), Origin::Live, || {
            let key = object.meta().key.clone();
            let changes = self.store.put(Arc::clone(&object)).into_changes(object).collect();
            self.undecodable.forget(&key);
            changes
        });
    }

    /// Applies a deletion; `last` is the last state of the object.
    pub(crate) fn remove(&self, last: Arc<V>) {
        let Meta { key, uid, resource_version: version, .. } = last.meta();
        let (key, uid, version) = (key.clone(), uid.clone(), version.clone());
        self.step_and_end(Some(version), Some(&uid), || {
            self.undecodable.forget(&key);
            let removed = self.store.remove(&key)?;
            let final_state_known = removed.meta().uid == uid;
            Some(Change::Deleted { last: if final_state_known { last } else { removed }, final_state_known })
        });
    }

    /// Applies a change of an object that cannot be decoded: it leaves the cache, because nothing may be decided by its
    /// old state.
    pub(crate) fn put_undecodable(&self, undecodable: Undecodable) {
        let version = undecodable.resource_version();
        let Undecodable::Named(object) = &undecodable else {
            self.note(undecodable);
            return self.step(version, Origin::Live, Vec::new);
        };
        let (key, terminating) = (object.key.clone(), object.is_terminating().then(|| object.uid.clone()));
        self.step_and_end(version, terminating.as_ref(), || {
            // Noted before the cache loses it, so that a reader finds it in one of both.
            self.note(undecodable);
            Some(Change::Deleted { last: self.store.remove(&key)?, final_state_known: false })
        });
    }

    /// Applies a deletion of an object whose last state cannot be decoded.
    pub(crate) fn remove_undecodable(&self, undecodable: Undecodable) {
        let version = undecodable.resource_version();
        let Undecodable::Named(object) = undecodable else {
            self.note(undecodable);
            return self.step(version, Origin::Live, Vec::new);
        };
        self.step_and_end(version, Some(&object.uid), || {
            self.undecodable.forget(&object.key);
            Some(Change::Deleted { last: self.store.remove(&object.key)?, final_state_known: false })
        });
    }

    /// Replaces the contents of the cache by a complete list at that version.
    pub(crate) fn commit(&self, staged: Staged<V>, version: ResourceVersion) {
        let first = self.last_sync_resource_version().is_unset();
        self.state.record.lock().lists += 1;
        self.state.metrics.listed(!first);
        let Staged { mut objects, undecodable_objects } = staged;
        for (object, error) in self.undecodable.new_of(&undecodable_objects) {
            self.report_undecodable(object.map(|object| object.key.clone()).as_ref(), &error);
        }
        let origin = if first { Origin::Initial } else { Origin::Live };
        self.step(Some(version), origin, || {
            // An object that became undecodable while it was listed.
            objects.retain(|object| undecodable_objects.get(&object.meta().key).is_none());
            self.undecodable.replace(undecodable_objects, || self.store.replace(objects))
        });
    }

    /// Moves the last sync resource version, as a bookmark does.
    pub(crate) fn advance(&self, version: ResourceVersion) {
        self.step(Some(version), Origin::Live, Vec::new);
    }

    /// Empties the cache, as all objects of a resource go with it. The next list is the first again.
    pub(crate) fn empty(&self) {
        let mut ended = Vec::new();
        let empty = || self.undecodable.replace(UndecodableObjects::default(), || self.store.replace(Vec::new()));
        self.notify(Origin::Live, empty, &mut ended);
        self.synced.send_replace(false);
        self.observed.send_replace(ResourceVersion::default());
        self.call_hooks(&ended);
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
                ended.extend(self.ended_by(&change).cloned());
            }
        });
    }

    fn progress(&self, version: Option<ResourceVersion>, ended: &[Uid]) {
        if let Some(version) = version {
            self.observed.send_replace(version);
        }
        if self.synced.send_if_modified(|synced| !std::mem::replace(synced, true)) {
            tracing::info!(v = 2, resource = %self.state.resource, "Caches populated");
        }
        self.call_hooks(ended);
    }

    fn call_hooks(&self, ended: &[Uid]) {
        let undecodable_changed = self.undecodable.take_changed();
        self.hooks.call(|| self.last_sync_resource_version(), ended, &undecodable_changed, &self.report());
    }

    /// The object that this change deletes, or shows terminating for the first time.
    fn ended_by<'a>(&self, change: &'a Change<V>) -> Option<&'a Uid> {
        let ended = match change {
            Change::Added(new) => new.meta().is_terminating().then_some(new),
            Change::Updated { old, new } => {
                (new.meta().is_terminating() && !old.meta().is_terminating()).then_some(new)
            }
            // One that left the cache because it cannot be decoded any more is still there.
            Change::Deleted { last, .. } => {
                let undecodable = self.undecodable.get(&last.meta().key);
                let is_there = undecodable.is_some_and(|object| object.uid == last.meta().uid);
                (!is_there).then_some(last)
            }
        };
        ended.map(|object| &object.meta().uid)
    }

    fn note(&self, undecodable: Undecodable) {
        let (key, error) = match &undecodable {
            Undecodable::Named(object) => (Some(object.key.clone()), object.error.clone()),
            Undecodable::Nameless(error) => (None, error.clone()),
        };
        if self.undecodable.note(undecodable) {
            self.report_undecodable(key.as_ref(), &error);
        }
    }

    fn report_undecodable(&self, key: Option<&ObjectKey>, error: &str) {
        self.state.metrics.undecodable();
        let key = key.map(tracing::field::display);
        tracing::error!(resource = %self.state.resource, key, error, "Object cannot be decoded");
    }

    pub(crate) fn add_event_handler(&self, options: HandlerOptions, handler: Handler<V>) -> HandlerRegistration {
        let id = self.with_handlers(|handlers, report| {
            let initial = self.store.list().into_iter().map(Change::Added);
            handlers.add(options, handler, initial, report)
        });
        self.state.rescheduled.notify_one();
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
        Report { resource: &self.state.resource, metrics: &*self.state.metrics }
    }

    pub(crate) async fn wait_for_resource_version(&self, version: &ResourceVersion) {
        // A version that does not compare must not block; before the first list the version is unset.
        let reached =
            |observed: &ResourceVersion| !observed.is_unset() && observed.is_at_least(version).unwrap_or(true);
        let outcome = self.observed.subscribe().wait_for(reached).await.map(drop);
        outcome.expect("the sender must live as long as the informer");
    }
}

impl<V: View> Cache for SharedInformer<V> {
    fn resource(&self) -> &Resource {
        &self.state.resource
    }

    fn list_options(&self) -> &ListOptions {
        &self.state.list_options
    }

    fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    fn status(&self) -> InformerStatus {
        let synced = self.has_synced();
        let objects = self.store.len();
        let last_sync_resource_version = self.last_sync_resource_version();
        let (undecodable, sentence) = self.undecodable.read(|objects| (objects.len(), objects.sentence()));
        let record = self.state.record.lock();
        InformerStatus {
            resource: self.state.resource.clone(),
            list_options: self.state.list_options.clone(),
            view: std::any::type_name::<V>(),
            also_watched_as: Vec::new(),
            phase: record.phase(),
            phase_for: record.phase_for(),
            synced,
            reason: record.reason(synced, sentence),
            last_error: record.last_error.clone(),
            objects,
            undecodable,
            lists: record.lists,
            last_event_ago: record.last_event_ago(),
            last_sync_resource_version,
        }
    }

    fn bytes(&self) -> usize {
        self.store.list().iter().map(|object| object.bytes()).sum()
    }

    fn last_sync_resource_version(&self) -> ResourceVersion {
        self.observed.borrow().clone()
    }

    fn object_state(&self, key: &ObjectKey) -> Option<ObjectState> {
        let cached = self.store.get(key).map(|object| ObjectState::from(object.meta()));
        cached.or_else(|| self.undecodable.get(key).map(|object| ObjectState::from(&*object)))
    }

    fn matching(&self, options: &ListOptions) -> Vec<(ObjectKey, ObjectState)> {
        let objects = self.store.list().into_iter();
        let matching = objects.filter(|object| options.covers(object.meta()) == Some(true));
        matching.map(|object| (object.meta().key.clone(), ObjectState::from(object.meta()))).collect()
    }

    fn covers(&self, meta: &Meta) -> Option<bool> {
        self.state.list_options.covers(meta)
    }

    fn undecodable(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
        self.undecodable.get(key)
    }

    fn undecodable_objects(&self) -> Vec<Arc<UndecodableObject>> {
        self.undecodable.read(|objects| objects.iter().cloned().collect())
    }

    fn undecodable_controlled_by(&self, owner: &Uid) -> Option<Arc<UndecodableObject>> {
        self.undecodable.read(|objects| objects.controlled_by(owner).cloned())
    }

    fn suspect_rollback(&self) {
        self.state.rollback_suspected.notify_one();
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
