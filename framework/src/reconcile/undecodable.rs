//! Keys that are not reconciled while an object that they are about cannot be decoded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use kcm_api::ObjectKey;
use kcm_informers::{Cache, HookRegistration, UndecodableObject};
use kcm_workqueue::{Priority, Queue};
use parking_lot::Mutex;

use super::awaiting::{Awaiting, Blocker};
use super::session::AwaitedObject;
use crate::consistency::Primary;
use crate::consistency::pending_writes::CacheIndex;
use crate::queue_key::QueueKey;

/// Holds back the keys whose object, or an object that it controls, cannot be decoded: such an object is missing from
/// its cache, and a reconcile would take it for deleted.
///
/// A key that is held back is enqueued again when nothing that it is about is undecodable any more. A change of an
/// undecodable object costs a few lookups for each key that the object holds back, however many others there are.
///
/// Keys that look up other objects are reconciled, and enqueued again when the undecodable objects change that the
/// reconcile has [named](super::Session::requeue_when_decodable).
pub(super) struct UndecodableGuard<K> {
    queue: Queue<K>,
    caches: Arc<[Arc<dyn Cache>]>,
    primary: Primary,
    held: Mutex<Held<K>>,
    /// The hooks end with the guard.
    _hooks: Vec<HookRegistration>,
}

/// The keys that are held back, each by one object that was logged.
struct Held<K> {
    /// The keys that are not held back, and were reconciled without the undecodable objects that they looked up.
    awaiting: Awaiting<K>,
    by_key: BTreeMap<K, Blocker>,
    by_blocker: BTreeMap<Blocker, BTreeSet<K>>,
}

impl<K: QueueKey> Held<K> {
    const fn new() -> Self {
        Self { awaiting: Awaiting::new(), by_key: BTreeMap::new(), by_blocker: BTreeMap::new() }
    }

    /// Holds a key back. Returns `true` if another object, or none, held it back before.
    fn hold(&mut self, key: &K, blocker: Blocker) -> bool {
        if self.by_key.get(key) == Some(&blocker) {
            return false;
        }
        self.forget(key);
        self.by_key.insert(key.clone(), blocker.clone());
        self.by_blocker.entry(blocker).or_default().insert(key.clone());
        true
    }

    fn forget(&mut self, key: &K) {
        let Some(blocker) = self.by_key.remove(key) else { return };
        if let Some(keys) = self.by_blocker.get_mut(&blocker) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_blocker.remove(&blocker);
            }
        }
    }

    /// The keys that the object holds back.
    fn keys_of(&self, blocker: &Blocker) -> Vec<K> {
        self.by_blocker.get(blocker).into_iter().flatten().cloned().collect()
    }
}

impl<K: QueueKey> UndecodableGuard<K> {
    /// A guard for a loop that reads `caches`, of which `primary` hold the objects of its keys.
    pub(super) fn new(queue: Queue<K>, caches: Arc<[Arc<dyn Cache>]>, primary: Primary) -> Arc<Self> {
        Arc::new_cyclic(|guard: &Weak<Self>| {
            let hooks = caches.iter().enumerate().map(|(index, cache)| {
                let guard = Weak::clone(guard);
                cache.on_progress(Box::new(move |progress| {
                    if !progress.undecodable_changed.is_empty()
                        && let Some(guard) = guard.upgrade()
                    {
                        guard.release(index, progress.undecodable_changed);
                    }
                }))
            });
            let hooks = hooks.collect();
            Self { queue, caches, primary, held: Mutex::new(Held::new()), _hooks: hooks }
        })
    }

    /// Returns `true` if `key` must not be reconciled now. Each such key is logged once.
    pub(super) fn holds(&self, key: &K) -> bool {
        // Looked up under the lock: the hook of a change that comes later finds the key held.
        let mut held = self.held.lock();
        held.awaiting.forget(key);
        let Some((cache, object)) = self.undecodable(key) else {
            held.forget(key);
            return false;
        };
        let is_new = held.hold(key, (cache, object.key.clone()));
        drop(held);
        if is_new {
            tracing::warn!(
                %key, resource = %self.caches[cache].resource(), object = %object.key, error = object.error,
                "Object cannot be decoded; its key is not reconciled until the object can be decoded",
            );
        }
        true
    }

    /// Enqueues `key` when one of `objects` changes.
    pub(super) fn await_changes(&self, key: &K, objects: &[AwaitedObject]) {
        if objects.is_empty() {
            return;
        }
        {
            let awaiting = &mut self.held.lock().awaiting;
            for (cache, object) in objects {
                awaiting.insert(key, (*cache, object.key.clone()));
            }
        }
        // Looked up after the key waits: a change that comes later finds it.
        let has_changed =
            |(cache, object): &AwaitedObject| self.caches[*cache].undecodable(&object.key).as_ref() != Some(object);
        if objects.iter().any(has_changed) {
            self.queue.add(key.clone(), Priority::Live);
        }
    }

    /// Number of keys that are held back, or wait for an undecodable object.
    pub(super) fn held(&self) -> usize {
        let held = self.held.lock();
        held.by_key.len() + held.awaiting.len()
    }

    /// Returns the reason why a key that matches is held back or waits. `None` if no such key is.
    pub(super) fn reason(&self, matches: impl Fn(&K) -> bool) -> Option<String> {
        let (held, awaited) = {
            let held = self.held.lock();
            (held.by_key.keys().find(|key| matches(key)).cloned(), held.awaiting.find(&matches).cloned())
        };
        let blocker = held.and_then(|key| self.undecodable(&key));
        let awaited = || awaited.and_then(|(cache, key)| Some((cache, self.caches[cache].undecodable(&key)?)));
        let (cache, object) = blocker.or_else(awaited)?;
        Some(format!("{} {} cannot be decoded: {}", self.caches[cache].resource(), object.key, object.error))
    }

    /// The object that holds `key` back, and the position of its cache.
    fn undecodable(&self, key: &K) -> Option<(CacheIndex, Arc<UndecodableObject>)> {
        let object = key.object()?;
        let primary = self.primary.cache_of(object, &self.caches)?;
        if let Some(own) = self.caches[primary].undecodable(object) {
            return Some((primary, own));
        }
        let uid = self.caches[primary].object_state(object)?.uid;
        let mut caches = self.caches.iter().enumerate();
        caches.find_map(|(index, cache)| Some((index, cache.undecodable_controlled_by(&uid)?)))
    }

    /// Enqueues the keys that one of these objects of a cache held back, and that no object holds back any more. Enqueues
    /// the keys that wait for one of these objects.
    fn release(&self, cache: CacheIndex, changed: &[ObjectKey]) {
        let mut released = Vec::new();
        {
            let mut held = self.held.lock();
            for object in changed {
                released.extend(held.awaiting.take(&(cache, object.clone())));
            }
            for key in changed.iter().flat_map(|object| held.keys_of(&(cache, object.clone()))).collect::<Vec<_>>() {
                if let Some((cache, object)) = self.undecodable(&key) {
                    held.hold(&key, (cache, object.key.clone()));
                } else {
                    held.forget(&key);
                    released.push(key);
                }
            }
        }
        for key in released {
            self.queue.add(key, Priority::Live);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use futures::future::BoxFuture;
    use http::{Request, Response};
    use kcm_api::{DecodeError, KnownView, Meta, Resource, ResourceVersion, Uid, View};
    use kcm_informers::{Factory, FactoryOptions, InformerStatus, ListOptions, Moment, ObjectState, ProgressHook};
    use kcm_workqueue::QueueOptions;
    use kube::client::Body;
    use tokio::sync::Notify;

    use super::*;

    /// A kind whose size must be a number.
    #[derive(serde::Deserialize)]
    struct Widget {
        metadata: Meta,
        #[serde(rename = "size")]
        _size: u32,
    }

    impl View for Widget {
        fn decode(json: &str) -> Result<Self, DecodeError> {
            Ok(serde_json::from_str(json)?)
        }

        fn meta(&self) -> &Meta {
            &self.metadata
        }
    }

    impl KnownView for Widget {
        const RESOURCE: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
    }

    const OBJECTS: u64 = 10_000;

    fn event(kind: &str, number: u64, version: u64, size: &str) -> String {
        let metadata =
            format!(r#"{{"namespace":"a","name":"w{number}","uid":"u{number}","resourceVersion":"{version}"}}"#);
        format!("{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{metadata},\"size\":{size}}}}}\n")
    }

    fn list_of_undecodable_objects() -> String {
        let annotations = r#"{"k8s.io/initial-events-end":"true"}"#;
        let end = format!(r#"{{"metadata":{{"resourceVersion":"{OBJECTS}","annotations":{annotations}}}}}"#);
        let objects = (1..=OBJECTS).map(|number| event("ADDED", number, number, r#""big""#));
        objects.chain([format!("{{\"type\":\"BOOKMARK\",\"object\":{end}}}\n")]).collect()
    }

    /// A server whose objects all cannot be decoded, until `mended` is notified.
    fn client(mended: Arc<Notify>) -> kube::Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_list = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents"));
            let mended = Arc::clone(&mended);
            async move {
                let body = if is_list {
                    list_of_undecodable_objects()
                } else {
                    mended.notified().await;
                    (1..=OBJECTS).map(|number| event("MODIFIED", number, OBJECTS + number, "1")).collect()
                };
                Ok::<_, kube::Error>(Response::new(Body::from(body.into_bytes())))
            }
        });
        kube::Client::new(service, "default")
    }

    /// A cache that counts the objects that are looked up.
    struct Counted {
        cache: Arc<dyn Cache>,
        lookups: AtomicUsize,
    }

    impl Counted {
        fn count(&self, lookups: usize) {
            self.lookups.fetch_add(lookups, Relaxed);
        }
    }

    impl Cache for Counted {
        fn resource(&self) -> &Resource {
            self.cache.resource()
        }

        fn list_options(&self) -> &ListOptions {
            self.cache.list_options()
        }

        fn has_synced(&self) -> bool {
            self.cache.has_synced()
        }

        fn status(&self) -> InformerStatus {
            self.cache.status()
        }

        fn bytes(&self) -> usize {
            self.cache.bytes()
        }

        fn last_sync_resource_version(&self) -> ResourceVersion {
            self.cache.last_sync_resource_version()
        }

        fn object_state(&self, key: &ObjectKey) -> Option<ObjectState> {
            self.count(1);
            self.cache.object_state(key)
        }

        fn matching(&self, options: &ListOptions) -> Vec<(ObjectKey, ObjectState)> {
            self.cache.matching(options)
        }

        fn covers(&self, meta: &Meta) -> Option<bool> {
            self.cache.covers(meta)
        }

        fn undecodable(&self, key: &ObjectKey) -> Option<Arc<UndecodableObject>> {
            self.count(1);
            self.cache.undecodable(key)
        }

        fn undecodable_objects(&self) -> Vec<Arc<UndecodableObject>> {
            let objects = self.cache.undecodable_objects();
            self.count(objects.len());
            objects
        }

        fn undecodable_controlled_by(&self, owner: &Uid) -> Option<Arc<UndecodableObject>> {
            self.count(1);
            self.cache.undecodable_controlled_by(owner)
        }

        fn suspect_rollback(&self) {
            self.cache.suspect_rollback();
        }

        fn on_progress(&self, hook: ProgressHook) -> HookRegistration {
            self.cache.on_progress(hook)
        }

        fn is_current(&self, since: Moment) -> bool {
            self.cache.is_current(since)
        }

        fn wait_current(&self, since: Moment) -> BoxFuture<'static, ()> {
            self.cache.wait_current(since)
        }

        fn handed_over(&self) -> ResourceVersion {
            self.cache.handed_over()
        }

        fn wait_synced(&self) -> futures::future::BoxFuture<'static, ()> {
            self.cache.wait_synced()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ten_thousand_objects_that_hold_keys_back_cost_a_few_lookups_each() {
        let mended = Arc::new(Notify::new());
        let factory = Factory::new(FactoryOptions::new(client(Arc::clone(&mended)), 7));
        let informer = factory.informer::<Widget>(ListOptions::default());
        factory.start();
        informer.wait_synced().await;
        let cache = Arc::new(Counted { cache: informer.cache(), lookups: AtomicUsize::new(0) });
        let caches: Arc<[Arc<dyn Cache>]> = [Arc::clone(&cache) as Arc<dyn Cache>].into();
        let mut primary = Primary::default();
        primary.add(0);
        let queue = Queue::new(QueueOptions::named("test"));
        let guard = UndecodableGuard::new(queue.clone(), caches, primary);
        let keys: Vec<_> = (1..=OBJECTS).map(|number| ObjectKey::namespaced("a", format!("w{number}"))).collect();
        assert!(keys.iter().all(|key| guard.holds(key)));
        mended.notify_one();
        informer.wait_for_resource_version(&(2 * OBJECTS).into()).await;
        assert_eq!(queue.len(), keys.len());
        let lookups = cache.lookups.load(Relaxed);
        assert!(lookups <= 5 * keys.len(), "{lookups} lookups");
        assert!(!keys.iter().any(|key| guard.holds(key)));
    }
}
