//! The state machine of the queue, without clock, lock or async: every input comes with the time at which it happens.
//!
//! Times are durations since the queue was created and never decrease. Each input first advances the state to its time,
//! so the result does not depend on when, or how often, the state is read.

use std::cmp::Reverse;
use std::collections::hash_map::{Entry as Slot, HashMap};
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::Hash;
use std::time::Duration;

use crate::limits::RetryLimits;
use crate::limits::TokenBucket;
use crate::priority::Priority;
use crate::ready_queues::{Place, ReadyQueues, Ticket};
use crate::snapshot::{
    Delayed, Failing, Held, KeyStage, KeyStatus, MOST_KEYS, ParkedKeys, QueueCounts, QueueSnapshot, UnfinishedWork,
};

/// The state of a queue.
pub(crate) struct State<K> {
    /// The keys that are not idle, and the idle keys that have failures or a delayed add.
    entries: HashMap<K, Entry>,
    /// The keys that are ready, in the order in which they are handed out.
    ready_queues: ReadyQueues<K>,
    /// The keys that workers process.
    processing: BTreeMap<Ticket, Processing<K>>,
    /// The keys that are held back until they are unparked, and since when: few, while there may be many entries.
    parked: HashMap<K, Duration>,
    /// The delayed keys, by the time at which they are due and then in the order in which they were added.
    delays: BTreeMap<(Duration, u64), K>,
    limits: RetryLimits,
    bucket: TokenBucket,
    counts: Counts,
    /// When a key was last handed out.
    last_taken: Duration,
    shut_down: bool,
}

/// Counters since the queue was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) adds: u64,
    pub(crate) retries: u64,
}

/// The result of taking a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<K> {
    /// A key, and how long it has waited since it was added.
    Key { key: K, waited: Duration },
    /// No key is ready, and none will be before `until` unless one is added.
    NothingBefore { until: Option<Duration> },
    /// No key is ready, and no add is accepted any more.
    ShutDown,
}

/// The state of one key.
#[derive(Default)]
struct Entry {
    stage: Stage,
    /// The merged adds since the key was last taken.
    pending: Option<Pending>,
    /// The merged delayed adds.
    delay: Option<Delay>,
    failures: u32,
}

#[derive(Clone, Copy, Default)]
enum Stage {
    /// The key is not queued, so nothing is pending.
    #[default]
    Idle,
    /// The key is in the ready queues, so an add is pending.
    Ready(Ticket),
    /// A worker processes the key.
    Processing(Ticket),
    /// The key is held back until it is unparked.
    Parked { since: Duration },
}

struct Pending {
    since: Duration,
    priority: Priority,
}

struct Delay {
    due: Duration,
    /// The number of delayed adds before this one, of any key: keys that are due at the same time are added in that
    /// order.
    number: u64,
    priority: Priority,
}

struct Processing<K> {
    key: K,
    since: Duration,
    priority: Priority,
}

impl<K: Clone + Eq + Hash> State<K> {
    pub(crate) fn new(limits: RetryLimits, ageing: Duration) -> Self {
        Self {
            entries: HashMap::new(),
            ready_queues: ReadyQueues::new(ageing),
            processing: BTreeMap::new(),
            parked: HashMap::new(),
            delays: BTreeMap::new(),
            limits,
            bucket: TokenBucket::new(&limits),
            counts: Counts::default(),
            last_taken: Duration::ZERO,
            shut_down: false,
        }
    }

    pub(crate) fn add(&mut self, key: K, priority: Priority, now: Duration) {
        self.advance(now);
        if !self.shut_down {
            self.merge(key, priority, now);
        }
    }

    pub(crate) fn add_after(&mut self, key: K, delay: Duration, priority: Priority, now: Duration) {
        self.advance(now);
        if !self.shut_down {
            self.schedule(key, now.saturating_add(delay), priority, now);
        }
    }

    /// Counts a failure and adds the key when its back-off, at most `longest`, is over and the token bucket has a token
    /// for it, at the priority at which it was handed out.
    pub(crate) fn retry(&mut self, key: K, longest: Duration, now: Duration) {
        self.advance(now);
        if self.shut_down {
            return;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        entry.failures = entry.failures.saturating_add(1);
        let priority = match entry.stage {
            Stage::Processing(ticket) => self.processing[&ticket].priority,
            Stage::Idle | Stage::Ready(_) | Stage::Parked { .. } => Priority::Live,
        };
        let backed_off = now.saturating_add(self.limits.backoff(entry.failures).min(longest));
        let due = self.bucket.reserve(now).max(backed_off);
        self.schedule(key, due, priority, now);
    }

    pub(crate) fn forget(&mut self, key: &K, now: Duration) {
        self.advance(now);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.failures = 0;
            self.requeue_or_remove(key, now);
        }
    }

    pub(crate) fn failures(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    pub(crate) fn take(&mut self, now: Duration) -> Taken<K> {
        self.advance(now);
        let Some(Place { key, ticket, .. }) = self.ready_queues.pop(now, is_current(&self.entries)) else {
            return if self.shut_down { Taken::ShutDown } else { Taken::NothingBefore { until: self.next_due() } };
        };
        let entry = self.entries.get_mut(&key).expect("a ready key has an entry");
        let pending = entry.pending.take().expect("a ready key was added");
        entry.stage = Stage::Processing(ticket);
        self.last_taken = now;
        self.processing.insert(ticket, Processing { key: key.clone(), since: now, priority: pending.priority });
        Taken::Key { key, waited: now.saturating_sub(pending.since) }
    }

    /// Ends the processing of a key and returns how long it took; `None` if the key was not processing.
    pub(crate) fn done(&mut self, key: &K, now: Duration) -> Option<Duration> {
        self.release(key, Stage::Idle, now)
    }

    /// As [`done`](Self::done), but the key does not become ready before [`unpark`](Self::unpark).
    pub(crate) fn park(&mut self, key: &K, now: Duration) -> Option<Duration> {
        let worked = self.release(key, Stage::Parked { since: now }, now)?;
        self.parked.insert(key.clone(), now);
        Some(worked)
    }

    pub(crate) fn unpark(&mut self, key: &K, now: Duration) {
        self.advance(now);
        if let Some(entry) = self.entries.get_mut(key)
            && matches!(entry.stage, Stage::Parked { .. })
        {
            entry.stage = Stage::Idle;
            self.parked.remove(key);
            if self.parked.is_empty() && self.parked.capacity() > 1024 {
                self.parked.shrink_to_fit();
            }
            self.requeue_or_remove(key, now);
        }
    }

    /// Drops the delayed adds and ignores every add from now on.
    pub(crate) fn shut_down(&mut self, now: Duration) {
        self.advance(now);
        self.shut_down = true;
        for key in std::mem::take(&mut self.delays).into_values() {
            self.entries.get_mut(&key).expect("a delayed key has an entry").delay = None;
            self.requeue_or_remove(&key, now);
        }
    }

    /// Drops the keys that are ready, delayed or idle. Returns the number of adds that were pending for them.
    pub(crate) fn clear(&mut self, now: Duration) -> u64 {
        self.advance(now);
        self.delays.clear();
        self.ready_queues.clear();
        let mut dropped = 0;
        self.entries.retain(|_, entry| {
            entry.delay = None;
            let is_held = matches!(entry.stage, Stage::Processing(_) | Stage::Parked { .. });
            dropped += u64::from(!is_held && entry.pending.is_some());
            is_held
        });
        self.entries.shrink_to_fit();
        dropped
    }

    /// Number of keys that are ready.
    pub(crate) fn ready(&self) -> usize {
        self.ready_queues.ready()
    }

    /// The time at which the next delayed add is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.delays.first_key_value().map(|((due, _), _)| *due)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The key that has been processing for longest, if for `least`; else the key that has been ready for longest, if none
    /// was handed out for `least`.
    pub(crate) fn stalled(&self, least: Duration, now: Duration) -> Option<Held<K>> {
        let held = |key: &K, since: Duration| Held { key: key.clone(), age: now.saturating_sub(since) };
        let longest = self.processing.values().min_by_key(|held| held.since);
        let processing = longest.map(|longest| held(&longest.key, longest.since));
        let stuck = processing.filter(|held| held.age >= least);
        if stuck.is_some() || self.ready() == 0 || now.saturating_sub(self.last_taken) < least {
            return stuck;
        }
        let ready_since = |entry: &Entry| match (&entry.stage, &entry.pending) {
            (Stage::Ready(_), Some(pending)) => Some(pending.since.max(self.last_taken)),
            (Stage::Ready(_) | Stage::Idle | Stage::Processing(_) | Stage::Parked { .. }, _) => None,
        };
        let waiting = self.entries.iter().filter_map(|(key, entry)| Some((ready_since(entry)?, key)));
        let longest = waiting.min_by_key(|(since, _)| *since);
        longest.map(|(since, key)| held(key, since)).filter(|held| held.age >= least)
    }

    pub(crate) fn parked(&self, now: Duration) -> ParkedKeys<K> {
        let longest = self.parked.iter().min_by_key(|(_, since)| **since);
        let longest = longest.map(|(key, since)| Held { key: key.clone(), age: now.saturating_sub(*since) });
        ParkedKeys { count: self.parked.len(), longest }
    }

    pub(crate) fn unfinished_work(&self, now: Duration) -> UnfinishedWork {
        self.processing.values().map(|held| now.saturating_sub(held.since)).fold(
            UnfinishedWork::default(),
            |work, age| UnfinishedWork { total: work.total.saturating_add(age), longest: work.longest.max(age) },
        )
    }

    /// Turns the delayed adds that are due by `now` into adds, each at the time at which it was due.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some(first) = self.delays.first_entry()
            && first.key().0 <= now
        {
            let ((due, _), key) = first.remove_entry();
            let entry = self.entries.get_mut(&key).expect("a delayed key has an entry");
            let delay = entry.delay.take().expect("the entry of a delayed key says so");
            self.merge(key, delay.priority, due);
        }
    }

    /// Merges an add into the pending ones: the earliest time and the highest priority stay.
    fn merge(&mut self, key: K, priority: Priority, now: Duration) {
        let mut slot = match self.entries.entry(key) {
            Slot::Occupied(slot) => slot,
            Slot::Vacant(slot) => slot.insert_entry(Entry::default()),
        };
        let entry = slot.get_mut();
        let before = entry.pending.replace(Pending { since: now, priority });
        if let Some(before) = &before {
            entry.pending = Some(Pending { since: before.since, priority: before.priority.max(priority) });
        } else {
            self.counts.adds += 1;
        }
        match entry.stage {
            Stage::Idle => {
                let ticket = self.ready_queues.push(slot.key().clone(), priority, now);
                slot.get_mut().stage = Stage::Ready(ticket);
            }
            Stage::Ready(ticket) if before.is_some_and(|before| before.priority < priority) => {
                let place = Place { key: slot.key().clone(), ticket, since: now };
                self.ready_queues.raise(place, is_current(&self.entries));
            }
            Stage::Ready(_) | Stage::Processing(_) | Stage::Parked { .. } => {}
        }
    }

    /// Merges a delayed add into the pending one: the earliest due time and the highest priority stay.
    fn schedule(&mut self, key: K, due: Duration, priority: Priority, now: Duration) {
        self.counts.retries += 1;
        if due <= now {
            return self.merge(key, priority, now);
        }
        let number = self.counts.retries;
        let entry = self.entries.entry(key.clone()).or_default();
        if let Some(waiting) = &mut entry.delay {
            waiting.priority = waiting.priority.max(priority);
            if waiting.due <= due {
                return;
            }
            self.delays.remove(&(waiting.due, waiting.number));
            (waiting.due, waiting.number) = (due, number);
        } else {
            entry.delay = Some(Delay { due, number, priority });
        }
        self.delays.insert((due, number), key);
    }

    fn release(&mut self, key: &K, next: Stage, now: Duration) -> Option<Duration> {
        self.advance(now);
        let entry = self.entries.get_mut(key)?;
        let Stage::Processing(ticket) = entry.stage else { return None };
        entry.stage = next;
        let held = self.processing.remove(&ticket).expect("a key at the stage Processing must be in the set");
        self.requeue_or_remove(key, now);
        Some(now.saturating_sub(held.since))
    }

    /// Makes an idle key ready if an add is pending, and removes it if it has neither delayed adds nor failures.
    fn requeue_or_remove(&mut self, key: &K, now: Duration) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Stage::Idle = entry.stage else { return };
        if let Some(pending) = &entry.pending {
            entry.stage = Stage::Ready(self.ready_queues.push(key.clone(), pending.priority, now));
        } else if entry.delay.is_none() && entry.failures == 0 {
            self.entries.remove(key);
            if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 8 {
                self.entries.shrink_to(2 * self.entries.len());
            }
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// The numbers of keys in each state. Copies none.
    pub(crate) fn key_counts(&mut self, now: Duration) -> QueueCounts {
        self.advance(now);
        let entries = self.entries.values();
        let parked = entries.clone().filter(|entry| matches!(entry.stage, Stage::Parked { .. })).count();
        QueueCounts {
            ready: self.ready_queues.ready(),
            processing: self.processing.len(),
            parked,
            delayed: self.delays.len(),
            failing: entries.filter(|entry| entry.failures > 0).count(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    /// The status of the keys that take memory and match, in order.
    pub(crate) fn find(&mut self, matches: impl Fn(&K) -> bool, now: Duration) -> Vec<KeyStatus<K>> {
        self.advance(now);
        let age = |since| now.saturating_sub(since);
        let found = self.entries.iter().filter(|(key, _)| matches(key)).map(|(key, entry)| KeyStatus {
            key: key.clone(),
            stage: match entry.stage {
                Stage::Idle => KeyStage::Idle,
                Stage::Ready(_) => KeyStage::Ready(entry.pending.as_ref().map_or(Duration::ZERO, |add| age(add.since))),
                Stage::Processing(ticket) => KeyStage::Processing(age(self.processing[&ticket].since)),
                Stage::Parked { since } => KeyStage::Parked(age(since)),
            },
            is_added: entry.pending.is_some(),
            due_in: entry.delay.as_ref().map(|delay| delay.due.saturating_sub(now)),
            failures: entry.failures,
        });
        let mut found: Vec<_> = found.collect();
        found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        found
    }

    pub(crate) fn snapshot(&mut self, now: Duration) -> QueueSnapshot<K> {
        let counts = self.key_counts(now);
        let age = |since| now.saturating_sub(since);
        let held = |(since, key): (Duration, &K)| Held { key: key.clone(), age: age(since) };
        let processing = self.processing.values().map(|processing| (processing.since, &processing.key));
        let parked = self.entries.iter().filter_map(|(key, entry)| match entry.stage {
            Stage::Parked { since } => Some((since, key)),
            Stage::Idle | Stage::Ready(_) | Stage::Processing(_) => None,
        });
        let failing = self.entries.iter().filter(|(_, entry)| entry.failures > 0);
        let failing = failing.map(|(key, entry)| (Reverse(entry.failures), key));
        QueueSnapshot {
            counts,
            oldest: self.ready_queues.oldest(is_current(&self.entries)).map(age),
            processing: first(processing).map(held).collect(),
            parked: first(parked).map(held).collect(),
            delayed: self
                .delays
                .iter()
                .take(MOST_KEYS)
                .map(|((due, _), key)| Delayed { key: key.clone(), due_in: due.saturating_sub(now) })
                .collect(),
            failing: first(failing)
                .map(|(Reverse(failures), key)| Failing {
                    key: key.clone(),
                    failures,
                    at_longest_backoff: self.limits.backoff(failures) >= self.limits.max,
                })
                .collect(),
            remembered: self.entries.len(),
            shut_down: self.shut_down,
        }
    }
}

/// The first keys in order, at most [`MOST_KEYS`]. Ties are broken by the key, so that the order of hashing does not show.
fn first<T: Ord>(keys: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut first = BinaryHeap::new();
    for key in keys {
        first.push(key);
        if first.len() > MOST_KEYS {
            first.pop();
        }
    }
    first.into_sorted_vec().into_iter()
}

/// Returns `true` for a place in the ready queues that belongs to the current stay of its key there.
fn is_current<K: Eq + Hash>(entries: &HashMap<K, Entry>) -> impl Fn(&Place<K>) -> bool {
    |place| {
        entries
            .get(&place.key)
            .is_some_and(|entry| matches!(entry.stage, Stage::Ready(ticket) if ticket == place.ticket))
    }
}
