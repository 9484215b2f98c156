//! The last states of objects that cannot be decoded any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::{ObjectKey, Uid, View};
use parking_lot::Mutex;

use crate::change::Change;
use crate::store::SortedChunks;
use crate::undecodable::UndecodableObjects;

/// The last states of the objects that were in the cache and cannot be decoded any more.
///
/// Event handlers know these objects, so they are notified of their deletion. It costs one state of each such object; an
/// object that never could be decoded has none.
pub(crate) struct LastStates<V>(Mutex<BTreeMap<ObjectKey, Arc<V>>>);

impl<V> Default for LastStates<V> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<V: View> LastStates<V> {
    /// Applies a change of which event handlers are notified.
    pub(crate) fn follow(&self, change: &Change<V>) {
        let mut states = self.0.lock();
        match change {
            Change::Undecodable { last } => drop(states.insert(last.meta().key.clone(), Arc::clone(last))),
            Change::Added(_) | Change::Updated { .. } | Change::Deleted { .. } => {
                // Nearly always there is none.
                if !states.is_empty() {
                    states.remove(change.key());
                }
            }
        }
    }

    pub(crate) fn take(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.0.lock().remove(key)
    }

    /// Takes the state of another object of that name than the one with `uid`: it was deleted.
    pub(crate) fn take_other(&self, key: &ObjectKey, uid: &Uid) -> Option<Arc<V>> {
        let states = &mut *self.0.lock();
        if states.get(key)?.meta().uid == *uid { None } else { states.remove(key) }
    }

    pub(crate) fn take_all(&self) -> Vec<Arc<V>> {
        std::mem::take(&mut *self.0.lock()).into_values().collect()
    }

    /// Takes the states of the objects that a list does not have.
    pub(crate) fn take_unlisted(&self, objects: &SortedChunks<V>, undecodable: &UndecodableObjects) -> Vec<Arc<V>> {
        let is_listed = |key: &ObjectKey, last: &Arc<V>| {
            objects.find(key).is_some_and(|listed| listed.meta().uid == last.meta().uid)
                || undecodable.may_hold(last.meta())
        };
        self.0.lock().extract_if(.., |key, last| !is_listed(key, last)).map(|(_, last)| last).collect()
    }
}
