//! The decisions of all keys of a manager, within a bound of memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kcm_api::ObjectKey;
use parking_lot::Mutex;

use super::decision::Decision;

/// The memory of all decisions of a manager, in bytes, unless its builder says otherwise.
pub const DEFAULT_MEMORY: usize = 2 << 20;

/// The decisions of all keys of a manager.
///
/// # Guarantees
/// - All decisions together take at most the memory that it was made with.
/// - The last decision of a key is dropped only when no earlier decision of any key is left, the oldest first.
#[derive(Debug)]
pub struct Journal {
    memory: usize,
    store: Mutex<Store>,
}

impl Journal {
    /// An empty journal that takes at most `memory` bytes; 0 keeps nothing.
    #[must_use]
    pub fn new(memory: usize) -> Arc<Self> {
        Arc::new(Self { memory, store: Mutex::default() })
    }

    /// Returns `true` if decisions are kept.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.memory > 0
    }

    /// Keeps a decision of the loop `name` about `key`, unless the decision alone exceeds the memory.
    pub fn add(&self, name: &'static str, key: &ObjectKey, decision: Decision) {
        if self.is_enabled() {
            self.store.lock().add(name, key, decision, self.memory);
        }
    }

    /// The last decision of the loop `name` about `key`.
    #[must_use]
    pub fn last(&self, name: &'static str, key: &ObjectKey) -> Option<Arc<Decision>> {
        let store = self.store.lock();
        let number = store.last.get(&(key.clone(), name))?;
        store.entries.get(number).map(|entry| Arc::clone(&entry.decision))
    }

    /// The decisions of the loop `name` about `key`, the newest first.
    #[must_use]
    pub fn decisions(&self, name: &'static str, key: &ObjectKey) -> Vec<Arc<Decision>> {
        self.store.lock().decisions(name, key)
    }
}

type Number = u64;

#[derive(Debug, Default)]
struct Store {
    entries: BTreeMap<Number, Entry>,
    /// The last decision of each key.
    last: BTreeMap<(ObjectKey, &'static str), Number>,
    /// The decisions after which the key had another, in the order in which it had.
    superseded: VecDeque<Number>,
    next: Number,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    name: &'static str,
    key: ObjectKey,
    /// The decision of the key before this one.
    previous: Option<Number>,
    decision: Arc<Decision>,
    bytes: usize,
}

/// Bytes of a decision in the maps, whose nodes may be less than half full, and as an allocation with two counters.
const ENTRY: usize = size_of::<Decision>() + 32 + 2 * (size_of::<(Number, Entry)>() + 2 * size_of::<Number>());
/// Bytes of a key in the map of the last decisions, with the name of its loop.
const KEY: usize = 2 * size_of::<((ObjectKey, &'static str), Number)>() + 32;

impl Store {
    fn add(&mut self, name: &'static str, key: &ObjectKey, mut decision: Decision, memory: usize) {
        decision.shrink();
        let bytes = ENTRY + decision.heap_bytes();
        if bytes + KEY + key.name().len() > memory {
            return;
        }
        let number = self.next;
        self.next += 1;
        let previous = self.last.insert((key.clone(), name), number);
        match previous {
            Some(previous) => self.superseded.push_back(previous),
            None => self.bytes += KEY + key.name().len(),
        }
        self.bytes += bytes;
        let entry = Entry { name, key: key.clone(), previous, decision: Arc::new(decision), bytes };
        self.entries.insert(number, entry);
        while self.bytes > memory {
            self.evict();
        }
    }

    /// Drops the decision that was superseded first, or the oldest decision if none is superseded.
    fn evict(&mut self) {
        if let Some(number) = self.superseded.pop_front() {
            if let Some(entry) = self.entries.remove(&number) {
                self.bytes -= entry.bytes;
            }
            if self.superseded.len() < self.superseded.capacity() / 4 {
                self.superseded.shrink_to(2 * self.superseded.len());
            }
        } else if let Some((_, entry)) = self.entries.pop_first() {
            self.bytes -= entry.bytes + KEY + entry.key.name().len();
            self.last.remove(&(entry.key, entry.name));
        }
    }

    fn decisions(&self, name: &'static str, key: &ObjectKey) -> Vec<Arc<Decision>> {
        let mut next = self.last.get(&(key.clone(), name)).copied();
        let mut decisions = Vec::new();
        // Earlier decisions of a key are dropped before later ones, so that the chain ends at the first decision that
        // is missing.
        while let Some(entry) = next.and_then(|number| self.entries.get(&number)) {
            decisions.push(Arc::clone(&entry.decision));
            next = entry.previous;
        }
        decisions
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::super::decision::Ended;
    use super::super::notes::Notes;
    use super::*;

    fn key(number: usize) -> ObjectKey {
        ObjectKey::namespaced("shop", format!("web-{number}"))
    }

    /// A decision that carries its number as its attempt, and words of that length.
    fn decision(attempt: u32, words: usize) -> Decision {
        let notes = Notes::new(true);
        notes.words(|| "w".repeat(words));
        Decision {
            at: Timestamp::UNIX_EPOCH,
            took: Duration::ZERO,
            attempt,
            triggers: Box::default(),
            seen: None,
            noted: notes.take(),
            ended: Ended::Succeeded { requeue_after: None },
        }
    }

    fn attempts(store: &Store, name: &'static str, key: &ObjectKey) -> Vec<u32> {
        store.decisions(name, key).iter().map(|decision| decision.attempt).collect()
    }

    #[test]
    fn the_last_decision_of_a_key_outlives_the_earlier_ones_of_all_keys() {
        let memory = 10 * (ENTRY + KEY + 200);
        let mut store = Store::default();
        store.add("a", &key(0), decision(0, 10), memory);
        for attempt in 1..1000 {
            store.add("a", &key(1), decision(attempt, 10), memory);
        }
        assert_eq!(attempts(&store, "a", &key(0)), [0]);
        let busy = attempts(&store, "a", &key(1));
        assert!(busy.len() > 5, "{busy:?}");
        assert_eq!(busy, (0..1000).rev().take(busy.len()).collect::<Vec<_>>());
        // Keys that decide nothing twice drop each other in order.
        for number in 2..1000 {
            store.add("a", &key(number), decision(0, 10), memory);
        }
        assert_eq!(attempts(&store, "a", &key(0)), [] as [u32; 0]);
        assert_eq!(attempts(&store, "a", &key(999)), [0]);
    }

    #[test]
    fn loops_of_one_key_are_apart() {
        let mut store = Store::default();
        store.add("a", &key(0), decision(1, 0), usize::MAX);
        store.add("b", &key(0), decision(2, 0), usize::MAX);
        assert_eq!(attempts(&store, "a", &key(0)), [1]);
        assert_eq!(attempts(&store, "b", &key(0)), [2]);
    }

    #[test]
    fn a_journal_without_memory_keeps_nothing() {
        let journal = Journal::new(0);
        journal.add("a", &key(0), decision(1, 0));
        assert!(journal.decisions("a", &key(0)).is_empty());
    }

    proptest! {
        #[test]
        fn the_bound_holds_and_each_key_has_its_latest_decisions_without_a_gap(
            added in proptest::collection::vec((0..12_usize, 0..3000_usize), 0..200),
            memory in 0..20_000_usize,
        ) {
            let mut store = Store::default();
            let mut all: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
            for (attempt, (number, words)) in (0..).zip(added) {
                let decision = decision(attempt, words);
                let fits = ENTRY + decision.heap_bytes() + KEY + key(number).name().len() <= memory;
                store.add("a", &key(number), decision, memory);
                if fits {
                    all.entry(number).or_default().insert(0, attempt);
                }
                prop_assert!(store.bytes <= memory);
                let counted: usize = store.entries.values().map(|entry| entry.bytes).sum();
                let keys: usize = store.last.keys().map(|(key, _)| KEY + key.name().len()).sum();
                prop_assert_eq!(store.bytes, counted + keys);
                for (number, expected) in &all {
                    let kept = attempts(&store, "a", &key(*number));
                    prop_assert_eq!(&kept[..], &expected[..kept.len()]);
                }
            }
        }
    }
}
