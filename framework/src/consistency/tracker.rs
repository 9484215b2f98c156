//! The tracker of the pending writes of one queue: connects them to the queue, the caches of its loop, and the API
//! server.

use std::sync::{Arc, Weak};

use kcm_api::{ObjectKey, PartialObjectMeta, ResourceVersion, Uid, View as _};
use kcm_informers::{Cache, HookRegistration, ObjectState, Progress};
use kcm_workqueue::Queue;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pending_writes::{CacheIndex, LiveCheck, LiveState, PendingWrite, PendingWrites};
use crate::client::{ApiClient, ApiError, Cause, ListOptions};
use crate::queue_key::QueueKey;

/// Parks keys with pending writes, and unparks them on the event that confirms the last one.
pub(crate) struct Tracker<K> {
    queue: Queue<K>,
    caches: Arc<[Arc<dyn Cache>]>,
    // The position of the cache that holds the objects of the keys.
    primary: Option<usize>,
    writes: Mutex<PendingWrites<K>>,
    added: Notify,
    /// The hooks end with the tracker.
    _hooks: Vec<HookRegistration>,
}

impl<K: QueueKey> Tracker<K> {
    pub(crate) fn new(queue: Queue<K>, caches: Arc<[Arc<dyn Cache>]>, primary: Option<usize>) -> Arc<Self> {
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
            if self.primary == Some(index) {
                released.extend(writes.owner_ended(uid, |key| self.owner(key).as_ref() != Some(uid)));
            }
        }
        drop(writes);
        self.unpark(released);
    }

    /// The object that `key` names, and the cache that holds it.
    pub(crate) fn object(&self, key: &K) -> Option<(CacheIndex, ObjectKey)> {
        Some((self.primary?, key.object()?.clone()))
    }

    /// The uid of the object that `key` names, as the cache shows it.
    fn owner(&self, key: &K) -> Option<Uid> {
        let cache = &self.caches[self.primary?];
        cache.object_state(key.object()?).map(|state| state.uid)
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
                    () = self.added.notified() => continue,
                    () = tokio::time::sleep_until(due) => {}
                },
            }
            // A check that fails is repeated half a minute later: too late for the end of an outage.
            live.connection().reachable().await;
            let checks = self.writes.lock().due(Instant::now());
            for check in checks {
                // The checks before it took time: the cache may have caught up by now.
                let is_needed = self.writes.lock().needs(&check);
                if is_needed {
                    self.check(live, &check).await;
                }
            }
        }
    }

    async fn check(&self, live: &ApiClient, check: &LiveCheck<K>) {
        let begun = Instant::now();
        let cache = &self.caches[check.cache];
        match list_object(live, cache.as_ref(), &check.object).await {
            Ok((list_version, live)) => {
                let mut writes = self.writes.lock();
                // Read under the lock: later events of the cache are reported after the new pending writes are known.
                let cached = cache.object_state(&check.object);
                let mut released = writes.checked(check, begun, &LiveState { list_version, live, cached });
                released.extend(writes.cache_reached(check.cache, &cache.last_sync_resource_version()));
                drop(writes);
                self.unpark(released);
            }
            Err(error) => {
                tracing::warn!(key = %check.key, object = %check.object, error = &error as &dyn std::error::Error,
                    "Cannot check a pending write; the key stays parked and the check is repeated");
            }
        }
    }
}

// A list and not a get: the manager may list everything, but not every role may get.
async fn list_object(
    live: &ApiClient,
    cache: &dyn Cache,
    object: &ObjectKey,
) -> Result<(ResourceVersion, Option<ObjectState>), ApiError> {
    let options = ListOptions {
        field_selector: Some(format!("metadata.name={}", object.name())),
        metadata_only: true,
        ..ListOptions::default()
    };
    let list = || live.list(cache.resource(), object.namespace(), &options);
    let list = match list().await {
        // The next connection may work, and the next check is half a minute away.
        Err(error) if error.is_connection_failure() => list().await?,
        answer => answer?,
    };
    // At most one object has that name. An unreadable response must not count as a missing object.
    let unreadable = |error| ApiError::new(format!("read {} \"{object}\"", cache.resource()), Cause::Decode(error));
    if list.resource_version.is_unset() {
        return Err(unreadable(serde::de::Error::custom("the answer is no list: it has no resourceVersion")));
    }
    let live = list.items.first().map(|item| PartialObjectMeta::decode(item.get())).transpose();
    let live = live.map_err(|error| unreadable(error.into()))?;
    let live = live.map(|object| ObjectState::from(object.meta()));
    Ok((list.resource_version, live))
}
