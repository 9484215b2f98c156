//! The causes of keys that wait in a queue.

use std::collections::HashMap;

use kcm_api::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::queue_key::QueueKey;

/// Largest capacity of the map when it is empty, in keys.
const KEPT_CAPACITY: usize = 1024;

/// Why a key is enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerCause {
    /// An event of an object of the cache with that index.
    Event {
        /// The position of the cache in the list of the loop.
        cache: usize,
        /// The kind of event.
        change: ChangeKind,
    },
    /// The last reconcile asked for it.
    Requeue,
    /// The last reconcile failed.
    BackOff,
    /// The last reconcile failed in an outage of the API server, which has ended.
    OutageEnded,
    /// None is recorded: the first list, a resync, or another loop of the controller.
    Unrecorded,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object was added.
    Added,
    /// The object was updated.
    Updated,
    /// The object cannot be decoded any more.
    Undecodable,
    /// The object was deleted.
    Deleted,
}

/// One cause of a key, and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub(super) cause: TriggerCause,
    /// The last object of the cause; `None` if the key names that object.
    pub(super) object: Option<ObjectKey>,
    pub(super) count: u32,
    /// Time at which the key is due, if it was enqueued with a delay.
    pub(super) due: Option<Instant>,
}

impl Trigger {
    /// One occurrence of a cause without an object.
    #[must_use]
    pub const fn of(cause: TriggerCause) -> Self {
        Self { cause, object: None, count: 1, due: None }
    }

    /// The same about an object.
    #[must_use]
    pub fn about(self, object: ObjectKey) -> Self {
        Self { object: Some(object), ..self }
    }

    fn merges_with(&self, cause: TriggerCause, is_delayed: bool) -> bool {
        self.cause == cause && self.due.is_some() == is_delayed
    }
}

/// The causes of the keys of one queue, from the time at which they are enqueued until they are taken.
///
/// A key has one trigger for each cause, with and without a delay, so that its triggers are bounded by the caches of the
/// loop.
pub(crate) struct Triggers<K> {
    is_enabled: bool,
    by_key: Mutex<HashMap<K, Vec<Trigger>>>,
}

impl<K: QueueKey> Triggers<K> {
    /// An empty set of triggers. If not enabled, it stays empty.
    pub(crate) fn new(is_enabled: bool) -> Self {
        Self { is_enabled, by_key: Mutex::default() }
    }

    /// Records why `key` is enqueued, at once or at `due`.
    pub(crate) fn add(&self, key: &K, cause: TriggerCause, object: Option<&ObjectKey>, due: Option<Instant>) {
        if !self.is_enabled {
            return;
        }
        let object = object.filter(|object| key.object() != Some(*object));
        let mut by_key = self.by_key.lock();
        if !by_key.contains_key(key) {
            by_key.insert(key.clone(), Vec::with_capacity(1));
        }
        let Some(triggers) = by_key.get_mut(key) else { return };
        match triggers.iter_mut().find(|trigger| trigger.merges_with(cause, due.is_some())) {
            Some(trigger) => {
                trigger.count = trigger.count.saturating_add(1);
                if trigger.object.as_ref() != object {
                    trigger.object = object.cloned();
                }
                // The queue keeps the earliest of several delays.
                trigger.due = trigger.due.min(due);
            }
            None => triggers.push(Trigger { cause, object: object.cloned(), count: 1, due }),
        }
    }

    /// Takes the triggers of a key that a worker takes at `now`; what is due later stays.
    pub(crate) fn take(&self, key: &K, now: Instant) -> Vec<Trigger> {
        let mut by_key = self.by_key.lock();
        let taken = match by_key.get_mut(key) {
            None => Vec::new(),
            Some(triggers) => {
                let (taken, later) =
                    std::mem::take(triggers).into_iter().partition(|trigger| trigger.due.is_none_or(|due| due <= now));
                *triggers = later;
                taken
            }
        };
        if by_key.get(key).is_some_and(Vec::is_empty) {
            by_key.remove(key);
        }
        if by_key.is_empty() && by_key.capacity() > KEPT_CAPACITY {
            by_key.shrink_to(KEPT_CAPACITY);
        }
        taken
    }

    /// Drops the triggers of all keys.
    pub(crate) fn clear(&self) {
        *self.by_key.lock() = HashMap::new();
    }

    /// The triggers with which keys wait for which `matches` holds.
    pub(crate) fn waiting(&self, matches: impl Fn(&K) -> bool) -> Vec<Trigger> {
        let by_key = self.by_key.lock();
        by_key.iter().filter(|(key, _)| matches(key)).flat_map(|(_, triggers)| triggers.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const POD_UPDATED: TriggerCause = TriggerCause::Event { cache: 1, change: ChangeKind::Updated };
    const POD_DELETED: TriggerCause = TriggerCause::Event { cache: 1, change: ChangeKind::Deleted };
    const SET_UPDATED: TriggerCause = TriggerCause::Event { cache: 0, change: ChangeKind::Updated };

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("shop", name)
    }

    fn causes(triggers: &[Trigger]) -> Vec<(TriggerCause, Option<&str>, u32)> {
        triggers
            .iter()
            .map(|trigger| (trigger.cause, trigger.object.as_ref().map(ObjectKey::name), trigger.count))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn causes_survive_the_merging_of_keys_with_their_counts_and_last_objects() {
        let triggers = Triggers::new(true);
        let web = key("web");
        for pod in ["a", "b", "c"] {
            triggers.add(&web, POD_UPDATED, Some(&key(pod)), None);
        }
        triggers.add(&web, SET_UPDATED, Some(&web), None);
        triggers.add(&web, POD_DELETED, Some(&key("a")), None);
        triggers.add(&key("other"), POD_UPDATED, Some(&key("d")), None);
        let taken = triggers.take(&web, Instant::now());
        assert_eq!(causes(&taken), [(POD_UPDATED, Some("c"), 3), (SET_UPDATED, None, 1), (POD_DELETED, Some("a"), 1)]);
        assert!(triggers.take(&web, Instant::now()).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_cause_stays_until_it_is_due_and_the_earliest_delay_counts() {
        let triggers = Triggers::new(true);
        let (web, now) = (key("web"), Instant::now());
        let seconds = Duration::from_secs;
        triggers.add(&web, POD_UPDATED, Some(&key("a")), Some(now + seconds(9)));
        triggers.add(&web, POD_UPDATED, Some(&key("b")), Some(now + seconds(5)));
        triggers.add(&web, POD_UPDATED, Some(&key("c")), None);
        assert_eq!(causes(&triggers.take(&web, now)), [(POD_UPDATED, Some("c"), 1)]);
        let early = now + seconds(5) - Duration::from_millis(1);
        assert!(triggers.take(&web, early).is_empty());
        let taken = triggers.take(&web, now + seconds(5));
        assert_eq!(causes(&taken), [(POD_UPDATED, Some("b"), 2)]);
        assert!(triggers.by_key.lock().is_empty());
    }

    #[test]
    fn nothing_is_recorded_where_it_is_disabled() {
        let triggers = Triggers::new(false);
        triggers.add(&key("web"), POD_UPDATED, Some(&key("a")), None);
        assert!(triggers.by_key.lock().is_empty());
        assert!(triggers.take(&key("web"), Instant::now()).is_empty());
    }
}
