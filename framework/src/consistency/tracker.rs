//! Connects [`PendingWrites`] to one queue, the caches of its loop, and the API server.

use std::sync::Arc;

use kcm_api::{ObjectKey, PartialObjectMeta, ResourceVersion, Uid, View as _};
use kcm_informers::{Cache, ObjectState};
use kcm_workqueue::Queue;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::pending_writes::{CacheIndex, LiveCheck, LiveState, PendingWrite, PendingWrites};
use crate::client::{ApiClient, ApiError, Cause, ListOptions};
use crate::queue_key::QueueKey;

/// Parks keys until their own writes have come back, and wakes them on the event that settles the last mark.
pub(crate) struct Tracker<K> {
    queue: Queue<K>,
    caches: Arc<[Arc<dyn Cache>]>,
    // The cache that holds the objects that keys name, by its position.
    primary: Option<usize>,
    marks: Mutex<PendingWrites<K>>,
    added: Notify,
}

impl<K: QueueKey> Tracker<K> {
    pub(crate) fn new(queue: Queue<K>, caches: Arc<[Arc<dyn Cache>]>, primary: Option<usize>) -> Arc<Self> {
        let marks = Mutex::new(PendingWrites::new(caches.len()));
        let tracker = Arc::new(Self { queue, caches, primary, marks, added: Notify::new() });
        for (index, cache) in tracker.caches.iter().enumerate() {
            let tracker = Arc::downgrade(&tracker);
            cache.on_progress(Box::new(move |progress| {
                let Some(tracker) = tracker.upgrade() else { return };
                let mut marks = tracker.marks.lock();
                if marks.is_empty() {
                    return;
                }
                let mut woken = marks.observed(index, progress.observed);
                if let Some(uid) = progress.ended {
                    woken.extend(marks.ended(index, uid));
                    if tracker.primary == Some(index) {
                        woken.extend(marks.owner_ended(uid, |key| tracker.owner(key).as_ref() != Some(uid)));
                    }
                }
                drop(marks);
                tracker.wake(woken);
            }));
        }
        tracker
    }

    /// The object that `key` names, and the cache that holds it.
    pub(crate) fn object(&self, key: &K) -> Option<(CacheIndex, ObjectKey)> {
        Some((self.primary?, key.object()?.clone()))
    }

    /// The identity of the object that `key` names, as the cache shows it.
    fn owner(&self, key: &K) -> Option<Uid> {
        let cache = &self.caches[self.primary?];
        cache.object_state(key.object()?).map(|identity| identity.uid)
    }

    /// Ends the handling of `key`, which left `marks` on behalf of `owner`: it is parked until they are settled.
    pub(crate) fn finish(&self, key: &K, owner: Option<&Uid>, marks: &[PendingWrite]) {
        if marks.is_empty() {
            self.queue.done(key);
            return;
        }
        // Parked before the marks are known, so that the event that settles them finds it parked.
        self.queue.park(key);
        let mut woken = Vec::new();
        let mut state = self.marks.lock();
        // Made again since the first write: its end has been reported already, and found no marks to take along.
        let is_another = owner.is_some() && self.owner(key).as_ref() != owner;
        if !is_another && state.add(key, owner, marks.to_vec(), Instant::now()) {
            // The events may have come before the answers.
            for mark in marks {
                match mark {
                    PendingWrite::Version { cache, .. } => {
                        woken.extend(state.observed(*cache, &self.caches[*cache].last_sync_resource_version()));
                    }
                    PendingWrite::Deletion { cache, object, uid } => {
                        let still_there = self.caches[*cache]
                            .object_state(object)
                            .is_some_and(|identity| identity.uid == *uid && !identity.terminating);
                        if !still_there {
                            woken.extend(state.ended(*cache, uid));
                        }
                    }
                    PendingWrite::OutcomeUnknown { .. } => {}
                }
            }
            drop(state);
            self.added.notify_one();
        } else {
            woken.push(key.clone());
        }
        self.wake(woken);
    }

    fn wake(&self, keys: Vec<K>) {
        for key in keys {
            self.queue.unpark(&key);
        }
    }

    /// Asks the API server about marks that are old or whose answer was lost; runs for ever.
    pub(crate) async fn check_pending_writes(&self, live: &ApiClient) {
        loop {
            let due = self.marks.lock().next_check();
            match due {
                None => self.added.notified().await,
                Some(due) => tokio::select! {
                    () = self.added.notified() => continue,
                    () = tokio::time::sleep_until(due) => {}
                },
            }
            let checks = self.marks.lock().due(Instant::now());
            for check in checks {
                // Those before it took their time: the cache may have caught up by now.
                let is_needed = self.marks.lock().needs(&check);
                if is_needed {
                    self.check(live, &check).await;
                }
            }
        }
    }

    async fn check(&self, live: &ApiClient, check: &LiveCheck<K>) {
        let begun = Instant::now();
        let cache = &self.caches[check.cache];
        match look(live, cache.as_ref(), &check.object).await {
            Ok((list_version, live)) => {
                let mut marks = self.marks.lock();
                // Read under the lock: what the cache takes in from here on is reported after the new marks are known.
                let cached = cache.object_state(&check.object);
                let mut woken = marks.looked(check, begun, &LiveState { list_version, live, cached });
                woken.extend(marks.observed(check.cache, &cache.last_sync_resource_version()));
                drop(marks);
                self.wake(woken);
            }
            Err(error) => {
                tracing::warn!(key = %check.key, object = %check.object, error = &error as &dyn std::error::Error,
                    "Cannot check a write that has not come back; the key stays parked and the check is repeated");
            }
        }
    }
}

// A list and not a get: the manager may list everything, but not every role may get.
async fn look(
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
        // What broke this connection says nothing of the next, and the next look is half a minute away.
        Err(error) if error.is_connection_failure() => list().await?,
        answer => answer?,
    };
    // At most one object has that name. What cannot be read must not pass for an object that is not there.
    let unreadable = |error| ApiError::new(format!("read {} \"{object}\"", cache.resource()), Cause::Decode(error));
    if list.resource_version.is_unset() {
        return Err(unreadable(serde::de::Error::custom("the answer is no list: it has no resourceVersion")));
    }
    let live = list.items.first().map(|item| PartialObjectMeta::decode(item.get())).transpose();
    let live = live.map_err(|error| unreadable(error.into()))?;
    let live = live.map(|object| ObjectState::from(object.meta()));
    Ok((list.resource_version, live))
}
