//! The state that the reflector and the handles of an informer share, and the order of each step.
//!
//! Each step changes the cache and its indexes, notifies the event handlers, moves the last sync resource version, and
//! then calls hooks and wakes waiters. The order is in [`SharedInformer::step`].

use std::cell::RefCell;
use std::hash::Hash;
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
use crate::currency::Currency;
use crate::event_handlers::{EventHandlers, Handler, HandlerOptions, HandlerRegistration, Report, Unshown};
use crate::last_states::LastStates;
use crate::list_options::ListOptions;
use crate::lookup::Lookup;
use crate::metrics::Metrics;
use crate::moments::{Moment, Moments};
use crate::progress_hooks::{HookRegistration, ProgressHook, ProgressHooks};
use crate::status::{InformerStatus, Record};
use crate::store::{Index, IndexPanicked, SortedChunks, Store};
use crate::undecodable::{SharedUndecodable, Undecodable, UndecodableObject, UndecodableObjects};

/// The state of an informer that does not depend on the type of its objects.
pub(crate) struct InformerState {
    pub(crate) resource: Resource,
    pub(crate) list_options: ListOptions,
    pub(crate) decode_context: Arc<DecodeContext>,
    pub(crate) metrics: Arc<dyn Metrics>,
    pub(crate) record: Mutex<Record>,
    pub(crate) availability: Availability,
    pub(crate) currency: Currency,
    /// Notified when there is other work than events: an event handler was added or is shown all objects again, or a new
    /// index lacks objects.
    pub(crate) rescheduled: Notify,
    /// Notified when event handlers were shown more objects.
    shown: Notify,
    /// Notified when the storage of the API server may have gone back.
    pub(crate) rollback_suspected: Arc<Notify>,
}

pub(crate) struct SharedInformer<V> {
    pub(crate) state: Arc<InformerState>,
    pub(crate) store: Arc<Store<V>>,
    pub(crate) undecodable: SharedUndecodable,
    pub(crate) last_states: LastStates<V>,
    /// Held from before the cache changes until all event handlers are notified. Reentrant only so that a handler that
    /// adds a handler causes a clear panic instead of a deadlock.
    handlers: ReentrantMutex<RefCell<EventHandlers<V>>>,
    unshown: Unshown,
    hooks: Arc<ProgressHooks>,
    observed: watch::Sender<ResourceVersion>,
    synced: watch::Sender<bool>,
}

/// The objects of a list that is not complete yet.
pub(crate) struct Staged<V> {
    pub(crate) objects: SortedChunks<V>,
    pub(crate) undecodable_objects: UndecodableObjects,
}

impl<V: View> Default for Staged<V> {
    fn default() -> Self {
        Self { objects: SortedChunks::new(), undecodable_objects: UndecodableObjects::default() }
    }
}

/// An object for which the function of an index has panicked, as an undecodable object.
pub(crate) fn unindexed<V: View>(object: &Arc<V>, panicked: &IndexPanicked) -> Undecodable {
    let meta = object.meta();
    Undecodable::Named(Arc::new(UndecodableObject {
        key: meta.key.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        meta: Some(meta.clone()),
        error: panicked.to_string(),
    }))
}

impl<V: View> SharedInformer<V> {
    pub(crate) fn new(
        resource: Resource,
        list_options: ListOptions,
        decode_context: Arc<DecodeContext>,
        metrics: Arc<dyn Metrics>,
        (moments, rollback_suspected): (Moments, Arc<Notify>),
    ) -> Self {
        let state = InformerState {
            resource,
            list_options,
            decode_context,
            metrics,
            record: Mutex::new(Record::new()),
            availability: Availability::new(),
            currency: Currency::new(moments),
            rescheduled: Notify::new(),
            shown: Notify::new(),
            rollback_suspected,
        };
        let unshown = Unshown::default();
        Self {
            state: Arc::new(state),
            store: Arc::new(Store::new()),
            undecodable: SharedUndecodable::default(),
            last_states: LastStates::default(),
            handlers: ReentrantMutex::new(RefCell::new(EventHandlers::new(unshown.clone()))),
            unshown,
            hooks: Arc::default(),
            observed: watch::Sender::new(ResourceVersion::default()),
            synced: watch::Sender::new(false),
        }
    }

    /// Applies an addition or a change.
    ///
    /// An object for which the function of an index panics would be missing from the index, so that its owner would create
    /// it again: it counts as undecodable.
    pub(crate) fn put(&self, object: &Arc<V>) {
        let version = object.meta().resource_version.clone();
        self.state.currency.saw(&version);
        let mut ended = Vec::new();
        let mut refused = None;
        let change_cache = || match self.store.put(Arc::clone(object)) {
            Ok(put) => {
                self.undecodable.forget(&object.meta().key);
                let earlier = self.last_states.take_other(&object.meta().key, &object.meta().uid);
                earlier.map(Change::missed_deletion).into_iter().chain(put.into_changes(Arc::clone(object))).collect()
            }
            Err(panicked) => {
                refused = Some(panicked);
                Vec::new()
            }
        };
        self.notify(Origin::Live, change_cache, &mut ended);
        match refused {
            None => self.progress(Some(version), &ended),
            Some(panicked) => self.put_undecodable(unindexed(object, &panicked)),
        }
    }

    /// Applies a deletion; `last` is the last state of the object.
    pub(crate) fn remove(&self, last: Arc<V>) {
        let Meta { key, uid, resource_version: version, .. } = last.meta();
        let (key, uid, version) = (key.clone(), uid.clone(), version.clone());
        self.state.currency.saw(&version);
        self.step_and_end(Some(version), Some(&uid), || {
            self.undecodable.forget(&key);
            let removed = self.store.remove(&key).or_else(|| self.last_states.take(&key))?;
            let final_state_known = removed.meta().uid == uid;
            Some(Change::Deleted { last: if final_state_known { last } else { removed }, final_state_known })
        });
    }

    /// Applies a change of an object that cannot be decoded: it leaves the cache, because nothing may be decided by its
    /// old state.
    ///
    /// Its last state is kept until it can be decoded or is deleted, so that its deletion is notified.
    pub(crate) fn put_undecodable(&self, undecodable: Undecodable) {
        let version = undecodable.resource_version();
        self.put_undecodable_at(version, undecodable);
    }

    fn put_undecodable_at(&self, version: Option<ResourceVersion>, undecodable: Undecodable) {
        if let Some(version) = &version {
            self.state.currency.saw(version);
        }
        let Undecodable::Named(object) = &undecodable else {
            self.note(undecodable);
            return self.step(version, Origin::Live, Vec::new);
        };
        let object = Arc::clone(object);
        let terminating = object.is_terminating().then_some(&object.uid);
        self.step_and_end(version, terminating, || {
            // Noted before the cache loses it, so that a reader finds it in one of both.
            self.note(undecodable);
            match self.store.remove(&object.key) {
                Some(last) if object.may_be(&last.meta().uid) => Some(Change::Undecodable { last }),
                Some(last) => Some(Change::missed_deletion(last)),
                None if object.uid.is_unset() => None,
                None => self.last_states.take_other(&object.key, &object.uid).map(Change::missed_deletion),
            }
        });
    }

    /// Applies a deletion of an object whose last state cannot be decoded.
    pub(crate) fn remove_undecodable(&self, undecodable: Undecodable) {
        let version = undecodable.resource_version();
        if let Some(version) = &version {
            self.state.currency.saw(version);
        }
        let Undecodable::Named(object) = undecodable else {
            self.note(undecodable);
            return self.step(version, Origin::Live, Vec::new);
        };
        self.step_and_end(version, Some(&object.uid), || {
            self.undecodable.forget(&object.key);
            let last = self.store.remove(&object.key).or_else(|| self.last_states.take(&object.key))?;
            Some(Change::missed_deletion(last))
        });
    }

    /// An index of the cache. An object for which `keys` panics leaves the cache.
    pub(crate) fn index<K, I, F>(&self, name: &'static str, keys: F) -> Index<V, K>
    where
        K: Eq + Hash + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = K>,
        F: Fn(&V) -> I + Send + Sync + 'static,
    {
        let index = self.store.index(name, keys);
        self.state.rescheduled.notify_one();
        index
    }

    /// Moves the last sync resource version, as a bookmark does.
    pub(crate) fn advance(&self, version: ResourceVersion) {
        self.step(Some(version), Origin::Live, Vec::new);
    }

    /// Empties the cache, as all objects of a resource go with it. The next list is the first again.
    pub(crate) fn empty(&self) {
        let mut ended = Vec::new();
        let empty = || {
            let mut changes =
                self.undecodable.replace(UndecodableObjects::default(), || self.store.replace(Vec::new()));
            changes.extend(self.last_states.take_all().into_iter().map(Change::missed_deletion));
            changes
        };
        self.notify(Origin::Live, empty, &mut ended);
        self.synced.send_replace(false);
        self.observed.send_replace(ResourceVersion::default());
        self.state.currency.emptied();
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
                self.last_states.follow(&change);
                handlers.notify(&change, origin, report);
                ended.extend(Self::ended_by(&change).cloned());
            }
        });
    }

    pub(crate) fn progress(&self, version: Option<ResourceVersion>, ended: &[Uid]) {
        if let Some(version) = version {
            self.observed.send_replace(version);
        }
        if self.synced.send_if_modified(|synced| !std::mem::replace(synced, true)) {
            tracing::info!(v = 2, resource = %self.state.resource, "Caches populated");
        }
        self.call_hooks(ended);
    }

    pub(crate) fn call_hooks(&self, ended: &[Uid]) {
        let undecodable_changed = self.undecodable.take_changed();
        self.hooks.call(|| self.last_sync_resource_version(), ended, &undecodable_changed, &self.report());
    }

    /// The object that this change deletes, or shows terminating for the first time.
    pub(crate) fn ended_by(change: &Change<V>) -> Option<&Uid> {
        let ended = match change {
            Change::Added(new) => new.meta().is_terminating().then_some(new),
            Change::Updated { old, new } => {
                (new.meta().is_terminating() && !old.meta().is_terminating()).then_some(new)
            }
            Change::Undecodable { .. } => None,
            Change::Deleted { last, .. } => Some(last),
        };
        ended.map(|object| &object.meta().uid)
    }

    /// The object with that key, or what is known of it if it cannot be decoded.
    pub(crate) fn lookup(&self, key: &ObjectKey) -> Lookup<V> {
        if let Some(object) = self.store.get(key) {
            return Lookup::Found(object);
        }
        if let Some(object) = self.undecodable.get(key) {
            return Lookup::Undecodable(object);
        }
        // It may have become decodable between the two.
        self.store.get(key).map_or(Lookup::Absent, Lookup::Found)
    }

    pub(crate) fn note(&self, undecodable: Undecodable) {
        let (key, error) = match &undecodable {
            Undecodable::Named(object) => (Some(object.key.clone()), object.error.clone()),
            Undecodable::Nameless(error) => (None, error.clone()),
        };
        if self.undecodable.note(undecodable) {
            self.report_undecodable(key.as_ref(), &error);
        }
    }

    pub(crate) fn report_undecodable(&self, key: Option<&ObjectKey>, error: &str) {
        self.state.metrics.undecodable();
        let key = key.map(tracing::field::display);
        tracing::error!(resource = %self.state.resource, key, error, "Object cannot be decoded");
    }

    pub(crate) fn add_event_handler(&self, options: HandlerOptions, handler: Handler<V>) -> HandlerRegistration {
        let id = self.with_handlers(|handlers, report| handlers.add(options, handler, &self.store, report));
        self.state.rescheduled.notify_one();
        id
    }

    pub(crate) fn remove_event_handler(&self, id: HandlerRegistration) {
        let removed = self.with_handlers(|handlers, _| handlers.remove(id));
        // Dropped without the lock: it may own registrations with this informer, which end with it.
        drop(removed);
    }

    /// Shows all objects to a handler again, in slices on the task of the informer.
    pub(crate) fn show_again(&self, id: HandlerRegistration) {
        self.with_handlers(|handlers, _| handlers.show_again(id));
        self.state.rescheduled.notify_one();
    }

    /// When [`work`](Self::work) has something to do next.
    pub(crate) fn next_work(&self) -> Option<Instant> {
        self.with_handlers(|handlers, _| handlers.next_work())
    }

    /// Takes one step of what is to be done beside events. Returns `true` if there is more to do now.
    pub(crate) fn work(&self, now: Instant) -> bool {
        for (object, panicked) in self.store.take_unindexed() {
            let is_current = |known: Arc<V>| Arc::ptr_eq(&known, &object);
            if self.store.get(&object.meta().key).is_some_and(is_current) {
                self.put_undecodable_at(None, unindexed(&object, &panicked));
            }
        }
        let has_more = self.with_handlers(|handlers, report| handlers.work(now, &self.store, report));
        self.state.shown.notify_waiters();
        has_more
    }

    /// Returns `true` if the cache has synced, and the handler was notified of all its objects.
    pub(crate) fn handler_has_synced(&self, id: HandlerRegistration) -> bool {
        self.has_synced() && !self.unshown.contains(id)
    }

    /// Waits until the cache has synced, and the handler was notified of all its objects.
    pub(crate) async fn wait_handler_synced(&self, id: HandlerRegistration) {
        self.wait_synced().await;
        loop {
            let mut shown = std::pin::pin!(self.state.shown.notified());
            // Before looking, so that no notification is missed.
            shown.as_mut().enable();
            if !self.unshown.contains(id) {
                return;
            }
            shown.await;
        }
    }

    pub(crate) fn with_handlers<R>(&self, act: impl FnOnce(&mut EventHandlers<V>, &Report<'_>) -> R) -> R {
        let handlers = self.handlers.lock();
        let mut handlers = handlers.try_borrow_mut().expect(
            "an event handler must not add handlers to, or remove handlers from, the informer that notifies it",
        );
        act(&mut handlers, &self.report())
    }

    /// The last sync resource version, as it moves.
    pub(crate) fn versions(&self) -> watch::Receiver<ResourceVersion> {
        self.observed.subscribe()
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
            confirmed_ago: record.confirmed_ago(),
            has_bookmarks: record.has_bookmarks(),
            last_sync_resource_version,
        }
    }

    fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.store.for_each(|object| bytes += object.bytes());
        bytes
    }

    fn last_sync_resource_version(&self) -> ResourceVersion {
        self.observed.borrow().clone()
    }

    fn object_state(&self, key: &ObjectKey) -> Option<ObjectState> {
        let cached = self.store.get(key).map(|object| ObjectState::from(object.meta()));
        cached.or_else(|| self.undecodable.get(key).map(|object| ObjectState::from(&*object)))
    }

    fn matching(&self, options: &ListOptions) -> Vec<(ObjectKey, ObjectState)> {
        let mut matching = Vec::new();
        self.store.for_each(|object| {
            if options.covers(object.meta()) == Some(true) {
                matching.push((object.meta().key.clone(), ObjectState::from(object.meta())));
            }
        });
        matching
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

    fn is_current(&self, since: Moment) -> bool {
        *self.state.currency.as_of().borrow() >= since
    }

    fn wait_current(&self, since: Moment) -> BoxFuture<'static, ()> {
        let mut as_of = self.state.currency.as_of();
        async move {
            if as_of.wait_for(|as_of| *as_of >= since).await.is_err() {
                // The informer was dropped.
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }

    fn handed_over(&self) -> ResourceVersion {
        self.state.currency.handed_over()
    }
}
