//! The changes for which an event handler has panicked.

use std::collections::BTreeMap;
use std::time::Duration;

use kcm_api::{ObjectKey, View};
use tokio::time::Instant;

use crate::change::{Change, Origin};

/// Time after which a handler is notified again of a change for which it has panicked. It doubles with each panic.
const FIRST_RETRY: Duration = Duration::from_secs(1);

const LONGEST_RETRY: Duration = Duration::from_mins(5);

/// Largest number of changes that are repeated in one step.
const RETRIES: usize = 64;

/// The changes that one handler has missed: at most one for each object, of which later changes become a part.
pub(crate) struct Missed<V>(BTreeMap<ObjectKey, MissedChange<V>>);

struct MissedChange<V> {
    change: Option<Change<V>>,
    origin: Origin,
    due: Instant,
    delay: Duration,
}

impl<V> Default for Missed<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: View> Missed<V> {
    /// Keeps a change for which the handler has just panicked. Returns the time until it is repeated.
    pub(crate) fn add(&mut self, change: Change<V>, origin: Origin, now: Instant) -> Duration {
        let delay = match self.0.get(change.key()) {
            Some(earlier) => (earlier.delay * 2).min(LONGEST_RETRY),
            None => FIRST_RETRY,
        };
        let key = change.key().clone();
        self.0.insert(key, MissedChange { change: Some(change), origin, due: now + delay, delay });
        delay
    }

    /// Forgets the missed change of an object whose later change the handler has taken.
    pub(crate) fn succeeded(&mut self, key: &ObjectKey) {
        if !self.0.is_empty() {
            self.0.remove(key);
        }
    }

    /// Returns what the handler must be notified of instead of `change`: the missed change of that object and this one.
    /// `None` if it has missed none.
    pub(crate) fn merged(&mut self, change: &Change<V>) -> Option<Vec<Change<V>>> {
        if self.0.is_empty() {
            return None;
        }
        let missed = self.0.get_mut(change.key())?.change.take()?;
        Some(match (missed, change) {
            (Change::Added(_), Change::Updated { new, .. }) => vec![Change::Added(new.clone())],
            (Change::Updated { old, .. }, Change::Updated { new, .. }) => {
                vec![Change::Updated { old, new: new.clone() }]
            }
            (missed, change) => vec![missed, change.clone()],
        })
    }

    /// Takes the first changes that are due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(Change<V>, Origin)> {
        let due = self.0.values_mut().filter(|missed| missed.due <= now).take(RETRIES);
        due.filter_map(|missed| Some((missed.change.take()?, missed.origin))).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|missed| missed.due).min()
    }
}
