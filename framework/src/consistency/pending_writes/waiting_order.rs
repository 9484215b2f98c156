//! The orders in which waiting keys are found: by the time of their live check, and by the object for which they wrote.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use kcm_api::Uid;
use tokio::time::Instant;

/// The waiting keys by time and by owner, so that neither the next check nor the end of an object costs a look at each
/// of them.
#[derive(Debug, Clone)]
pub(super) struct WaitingOrder<K> {
    by_check: BTreeSet<(Instant, K)>,
    by_owner: HashMap<Uid, Vec<K>>,
}

impl<K: Clone + Ord + Eq + Hash> WaitingOrder<K> {
    pub(super) fn new() -> Self {
        Self { by_check: BTreeSet::new(), by_owner: HashMap::new() }
    }

    pub(super) fn insert(&mut self, key: &K, owner: Option<&Uid>, check_at: Instant) {
        self.by_check.insert((check_at, key.clone()));
        if let Some(owner) = owner {
            self.by_owner.entry(owner.clone()).or_default().push(key.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &K, owner: Option<&Uid>, check_at: Instant) {
        self.by_check.remove(&(check_at, key.clone()));
        if let Some(owner) = owner
            && let Some(keys) = self.by_owner.get_mut(owner)
        {
            keys.retain(|waiting| waiting != key);
            if keys.is_empty() {
                self.by_owner.remove(owner);
            }
        }
    }

    /// Moves the live check of `key` from one time to another.
    pub(super) fn reschedule(&mut self, key: &K, from: Instant, to: Instant) {
        if from != to {
            self.by_check.remove(&(from, key.clone()));
            self.by_check.insert((to, key.clone()));
        }
    }

    pub(super) fn next_check(&self) -> Option<Instant> {
        self.by_check.first().map(|(at, _)| *at)
    }

    /// Returns the keys whose live check is due at `now`, sorted.
    pub(super) fn due(&self, now: Instant) -> BTreeSet<K> {
        self.by_check.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| key.clone()).collect()
    }

    /// Returns the keys that wait for writes that were made for the object `owner`.
    pub(super) fn of_owner(&self, owner: &Uid) -> &[K] {
        self.by_owner.get(owner).map_or(&[], Vec::as_slice)
    }
}
