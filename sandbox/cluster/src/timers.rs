//! Deadlines by key, the earliest first. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// At most one deadline per key; equal deadlines are due in the order of their keys.
#[derive(Debug)]
pub(crate) struct Timers<K> {
    by_time: BTreeSet<(Duration, K)>,
    by_key: BTreeMap<K, Duration>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Timers<K> {
    /// Sets or replaces the deadline of a key; `None` removes it.
    pub(crate) fn set(&mut self, key: &K, at: Option<Duration>) {
        if let Some(old) = self.by_key.remove(key) {
            self.by_time.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// Sets the deadline of a key unless it has an earlier one.
    pub(crate) fn set_earlier(&mut self, key: &K, at: Duration) {
        if self.by_key.get(key).is_none_or(|current| at < *current) {
            self.set(key, Some(at));
        }
    }

    /// Takes the first key whose deadline has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<K> {
        if self.next()? > now { None } else { self.pop() }
    }

    /// Takes the first key, due or not.
    pub(crate) fn pop(&mut self) -> Option<K> {
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Returns the number of deadlines.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the earliest deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_last_deadline_of_a_key_counts() {
        let mut timers = Timers::default();
        timers.set(&"a", Some(at(1)));
        timers.set(&"b", Some(at(2)));
        timers.set(&"a", Some(at(3)));
        assert_eq!(timers.pop_due(at(1)), None);
        assert_eq!((timers.next(), timers.pop_due(at(9)), timers.pop_due(at(9))), (Some(at(2)), Some("b"), Some("a")));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_removed_deadline_is_never_due() {
        let mut timers = Timers::default();
        timers.set(&"a", Some(at(1)));
        timers.set(&"a", None);
        assert_eq!(timers.pop_due(at(9)), None);
    }

    #[test]
    fn an_earlier_deadline_is_kept() {
        let mut timers = Timers::default();
        timers.set_earlier(&"a", at(5));
        timers.set_earlier(&"a", at(7));
        assert_eq!(timers.next(), Some(at(5)));
        timers.set_earlier(&"a", at(3));
        assert_eq!(timers.next(), Some(at(3)));
    }
}
