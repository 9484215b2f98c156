//! Keys that are not reconciled while an object that they are about cannot be decoded.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use kcm_api::ObjectKey;
use kcm_informers::{Cache, HookRegistration, UndecodableObject};
use kcm_workqueue::{Priority, Queue};
use parking_lot::Mutex;

use crate::consistency::Primary;
use crate::queue_key::QueueKey;

/// Holds back the keys whose object, or an object that it controls, cannot be decoded: such an object is missing from
/// its cache, and a reconcile would take it for deleted.
///
/// A key that is held back is enqueued again when nothing that it is about is undecodable any more.
pub(super) struct UndecodableGuard<K> {
    queue: Queue<K>,
    caches: Arc<[Arc<dyn Cache>]>,
    primary: Primary,
    /// The keys that are held back, each with the object that was logged.
    held: Mutex<BTreeMap<K, ObjectKey>>,
    /// The hooks end with the guard.
    _hooks: Vec<HookRegistration>,
}

impl<K: QueueKey> UndecodableGuard<K> {
    /// A guard for a loop that reads `caches`, of which `primary` hold the objects of its keys.
    pub(super) fn new(queue: Queue<K>, caches: Arc<[Arc<dyn Cache>]>, primary: Primary) -> Arc<Self> {
        Arc::new_cyclic(|guard: &Weak<Self>| {
            let hooks = caches.iter().map(|cache| {
                let guard = Weak::clone(guard);
                cache.on_progress(Box::new(move |progress| {
                    if progress.undecodable_changed
                        && let Some(guard) = guard.upgrade()
                    {
                        guard.release();
                    }
                }))
            });
            let hooks = hooks.collect();
            Self { queue, caches, primary, held: Mutex::default(), _hooks: hooks }
        })
    }

    /// Returns `true` if `key` must not be reconciled now. Each such key is logged once.
    pub(super) fn holds(&self, key: &K) -> bool {
        let Some((cache, object)) = self.undecodable(key) else {
            self.held.lock().remove(key);
            return false;
        };
        let logged = self.held.lock().insert(key.clone(), object.key.clone());
        // The hook may have found the key not held yet.
        if self.undecodable(key).is_none() {
            self.held.lock().remove(key);
            return false;
        }
        if logged.as_ref() != Some(&object.key) {
            tracing::warn!(
                %key, resource = %cache.resource(), object = %object.key, error = object.error,
                "Object cannot be decoded; its key is not reconciled until the object can be decoded",
            );
        }
        true
    }

    /// Number of keys that are held back.
    pub(super) fn held(&self) -> usize {
        self.held.lock().len()
    }

    /// Returns the reason why a key that matches is held back, or `None` if no such key is held back.
    pub(super) fn reason(&self, matches: impl Fn(&K) -> bool) -> Option<String> {
        let key = self.held.lock().keys().find(|key| matches(key)).cloned()?;
        let (cache, object) = self.undecodable(&key)?;
        Some(format!("{} {} cannot be decoded: {}", cache.resource(), object.key, object.error))
    }

    /// The object that holds `key` back.
    fn undecodable(&self, key: &K) -> Option<(&dyn Cache, Arc<UndecodableObject>)> {
        let object = key.object()?;
        let primary = &*self.caches[self.primary.cache_of(object, &self.caches)?];
        if let Some(own) = primary.undecodable(object) {
            return Some((primary, own));
        }
        let uid = primary.object_state(object)?.uid;
        self.caches.iter().find_map(|cache| {
            let dependent = cache.undecodable_objects().into_iter().find(|dependent| dependent.is_controlled_by(&uid));
            Some((&**cache, dependent?))
        })
    }

    fn release(&self) {
        let released: Vec<K> = {
            let mut held = self.held.lock();
            let keys: Vec<K> = held.keys().filter(|key| self.undecodable(key).is_none()).cloned().collect();
            keys.into_iter().inspect(|key| drop(held.remove(key))).collect()
        };
        for key in released {
            self.queue.add(key, Priority::Live);
        }
    }
}
