//! The tracker of the pending writes of one queue: connects them to the queue, the caches of its loop, and the API
//! server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use kcm_api::{ObjectKey, Uid, View as _};
use kcm_client::ApiClient;
use kcm_informers::{Cache, HookRegistration, ObjectState, Progress};
use kcm_workqueue::Queue;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::live_list::list_objects;
use super::pending_writes::{CacheIndex, LiveCheck, LiveState, PendingWrite, PendingWrites};
use super::primary::Primary;
use crate::queue_key::QueueKey;

/// Parks keys with pending writes, and unparks them on the event that confirms the last one.
pub(crate) struct Tracker<K> {
    queue: Queue<K>,
    caches: Arc<[Arc<dyn Cache>]>,
    primary: Primary,
    writes: Mutex<PendingWrites<K>>,
    added: Notify,
    /// The hooks end with the tracker.
    _hooks: Vec<HookRegistration>,
}

impl<K: QueueKey> Tracker<K> {
    pub(crate) fn new(queue: Queue<K>, caches: Arc<[Arc<dyn Cache>]>, primary: Primary) -> Arc<Self> {
        Arc::new_cyclic(|tracker: &Weak<Self>| {
            let hooks = caches.iter().enumerate().map(|(index, cache)| {
                let tracker = Weak::clone(tracker);
                cache.on_progress(Box::new(move |progress| {
                    if let Some(tracker) = tracker.upgrade() {
                        tracker.progressed(index, progress);
                    }
                }))
            });
            let hooks = hooks.collect();
            let writes = Mutex::new(PendingWrites::new(caches.len()));
            Self { queue, caches, primary, writes, added: Notify::new(), _hooks: hooks }
        })
    }

    /// Confirms what a step of a cache confirms.
    fn progressed(&self, index: CacheIndex, progress: &Progress<'_>) {
        let mut writes = self.writes.lock();
        if writes.is_empty() {
            return;
        }
        let mut released = if progress.resource_version.is_unset() {
            writes.cache_emptied(index)
        } else {
            writes.cache_reached(index, progress.resource_version)
        };
        if let Some(uid) = progress.ended {
            released.extend(writes.object_ended(index, uid));
            if self.primary.contains(index) {
                released.extend(writes.owner_ended(uid, |key| self.owner(key).as_ref() != Some(uid)));
            }
        }
        drop(writes);
        self.unpark(released);
    }

    /// Number of pending writes of all keys.
    pub(crate) fn pending_writes(&self) -> usize {
        self.writes.lock().writes()
    }

    /// The pending writes of `key`, and when a live list checks them.
    pub(crate) fn pending_writes_of(&self, key: &K) -> Option<(Vec<PendingWrite>, Instant)> {
        let writes = self.writes.lock();
        writes.of(key).map(|(writes, check_at)| (writes.to_vec(), check_at))
    }

    /// The object that `key` names, and the cache that holds it.
    pub(crate) fn object(&self, key: &K) -> Option<(CacheIndex, ObjectKey)> {
        let object = key.object()?;
        Some((self.primary.cache_of(object, &self.caches)?, object.clone()))
    }

    /// The uid of the object that `key` names, as the cache shows it.
    fn owner(&self, key: &K) -> Option<Uid> {
        let (cache, object) = self.object(key)?;
        self.caches[cache].object_state(&object).map(|state| state.uid)
    }

    /// Ends the processing of `key`, which wrote `writes` for the object `owner`: it is parked until they are
    /// confirmed.
    pub(crate) fn finish(&self, key: &K, owner: Option<&Uid>, writes: &[PendingWrite]) {
        if writes.is_empty() {
            self.queue.done(key);
            return;
        }
        // Parked before the writes are added, so that the event that confirms them finds it parked.
        self.queue.park(key);
        let mut released = Vec::new();
        let mut state = self.writes.lock();
        // The object was recreated since the first write: the event of its deletion came before its writes were
        // pending.
        let is_another = owner.is_some() && self.owner(key).as_ref() != owner;
        if !is_another && state.add(key, owner, writes.to_vec(), Instant::now()) {
            // The events may have come before the responses.
            for write in writes {
                match write {
                    PendingWrite::Version { cache, .. } => {
                        released.extend(state.cache_reached(*cache, &self.caches[*cache].last_sync_resource_version()));
                    }
                    PendingWrite::Deletion { cache, object, uid } => {
                        let still_there = self.caches[*cache]
                            .object_state(object)
                            .is_some_and(|state| state.uid == *uid && !state.terminating);
                        if !still_there {
                            released.extend(state.object_ended(*cache, uid));
                        }
                    }
                    PendingWrite::OutcomeUnknown { .. } => {}
                }
            }
            drop(state);
            self.added.notify_one();
        } else {
            released.push(key.clone());
        }
        self.unpark(released);
    }

    fn unpark(&self, keys: Vec<K>) {
        for key in keys {
            self.queue.unpark(&key);
        }
    }

    /// Checks by live lists the writes that are pending for long or whose response was lost; never returns.
    pub(crate) async fn check_pending_writes(&self, live: &ApiClient) {
        loop {
            let due = self.writes.lock().next_check();
            match due {
                None => self.added.notified().await,
                Some(due) => tokio::select! {
                    biased;
                    () = self.added.notified() => continue,
                    () = tokio::time::sleep_until(due) => {}
                },
            }
            // A check that fails is repeated half a minute later: too late for the end of an outage.
            live.connection().reachable().await;
            let checks = self.writes.lock().due(Instant::now());
            for ((cache, namespace), mut checks) in by_list(checks) {
                // The checks before it took time: the cache may have caught up by now.
                checks.retain(|check| self.writes.lock().needs(check));
                if !checks.is_empty() {
                    self.check(live, cache, namespace.as_deref(), &checks).await;
                }
            }
        }
    }

    /// Checks pending writes to one resource in one namespace by one list.
    async fn check(&self, live: &ApiClient, index: CacheIndex, namespace: Option<&str>, checks: &[LiveCheck<K>]) {
        let begun = Instant::now();
        let cache = &self.caches[index];
        let names: BTreeSet<&str> = checks.iter().map(|check| check.object.name()).collect();
        match list_objects(live, cache.resource(), namespace, &names).await {
            Ok(list) => {
                let objects = list.objects.iter().map(|(object, _)| (object.metadata.key.name(), object.meta()));
                let live: BTreeMap<&str, ObjectState> =
                    objects.map(|(name, meta)| (name, ObjectState::from(meta))).collect();
                let mut released = Vec::new();
                let mut writes = self.writes.lock();
                for check in checks {
                    // Read under the lock: later events of the cache are reported after the new pending writes are
                    // known.
                    let cached = cache.object_state(&check.object);
                    let live = live.get(check.object.name()).cloned();
                    let state = LiveState { list_version: list.version.clone(), live, cached };
                    released.extend(writes.checked(check, begun, &state));
                }
                released.extend(writes.cache_reached(index, &cache.last_sync_resource_version()));
                drop(writes);
                self.unpark(released);
            }
            Err(error) => {
                let (resource, count) = (cache.resource(), checks.len());
                tracing::warn!(%resource, namespace, count, error = &error as &dyn std::error::Error,
                    "Cannot check pending writes; their keys stay parked and the check is repeated");
            }
        }
    }
}

/// The scope of one list: the resource of a cache, and the namespace of a namespaced resource.
type Listed = (CacheIndex, Option<Box<str>>);

/// The checks by the list that decides them.
fn by_list<K>(checks: Vec<LiveCheck<K>>) -> BTreeMap<Listed, Vec<LiveCheck<K>>> {
    let mut lists: BTreeMap<Listed, Vec<_>> = BTreeMap::new();
    for check in checks {
        lists.entry((check.cache, check.object.namespace().map(Box::from))).or_default().push(check);
    }
    lists
}
