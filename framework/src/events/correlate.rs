//! The correlator: decides which occurrence becomes a new event, which repeats one, and which is dropped as spam.
//!
//! # Upstream
//! client-go's `EventCorrelator`, in its order: similar events are gathered into one, equal ones are counted, and
//! each source may report only so much about each object. Its caches hold 4096 entries each, as here; ours make room
//! for many at once. Not taken over: refreshing the count from the server's answer, which only repeats what was sent.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kcm_client::TokenBucket;

use super::event::{CoreEvent, ObjectReference, Occurrence, hash, name};
use super::lru::Lru;

const CACHED: usize = 4096;
const SIMILAR: usize = 10;
const SIMILAR_WITHIN: Duration = Duration::from_mins(10);
const SPAM_BURST: u32 = 25;
const SPAM_QPS: f64 = 1.0 / 300.0;

/// The decision about an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Create a new event.
    Create(CoreEvent),
    /// Increase the count of the event of that name; create the event if it does not exist any more.
    Repeat(CoreEvent),
    /// Drop it: the source has exceeded its rate of events about the object.
    Drop,
}

/// The events that were recorded lately.
///
/// Times of events come from the wall clock, which may jump. All limits are by the time of a clock that does not.
#[derive(Debug)]
pub struct Correlator {
    groups: Lru<Group>,
    recorded: Lru<Recorded>,
    budgets: Lru<TokenBucket>,
    /// Number in the name of the last event. It only grows, so that no two events share a name.
    numbered: i64,
}

#[derive(Debug)]
struct Group {
    messages: BTreeSet<u64>,
    last: Duration,
}

/// An event that was created. There are thousands, so its name is derived again instead of stored: that saves half a
/// megabyte after a rollout of 5,000 pods.
#[derive(Debug)]
struct Recorded {
    /// Number in its name.
    number: i64,
    /// When it was first recorded, in seconds since 1970, which suffices until 2106: events are sent with seconds.
    first: u32,
    count: u32,
}

impl Default for Correlator {
    fn default() -> Self {
        Self { groups: Lru::new(CACHED), recorded: Lru::new(CACHED), budgets: Lru::new(CACHED), numbered: 0 }
    }
}

impl Correlator {
    /// Decides about one occurrence at `now`, the time since some start by a clock that never goes back.
    pub fn decide(&mut self, occurrence: &Occurrence, now: Duration) -> Decision {
        // As upstream, the number is the time in nanoseconds, unless that was given out.
        let at = i64::try_from(occurrence.at.as_nanosecond()).unwrap_or(i64::MAX);
        self.numbered = at.max(self.numbered.saturating_add(1));
        let mut event = CoreEvent::of(occurrence, self.numbered);
        // Each hash extends the one before: common fields are hashed once.
        let source = occurrence.source_key();
        let group = occurrence.group_key(source);
        let mut key = occurrence.full_key(group);
        if self.is_one_of_many(group, occurrence, now) {
            key = group;
            event.message = format!("(combined from similar events): {}", occurrence.message);
            event.reporting_component = "".into();
        }
        let is_repeated = self.count(key, &mut event, &occurrence.regarding);
        if !self.is_within_budget(source, now) {
            return Decision::Drop;
        }
        if is_repeated { Decision::Repeat(event) } else { Decision::Create(event) }
    }

    fn is_one_of_many(&mut self, key: u64, occurrence: &Occurrence, now: Duration) -> bool {
        let fresh = || Group { messages: BTreeSet::new(), last: now };
        let group = self.groups.get_or_insert_with(key, fresh);
        if now.saturating_sub(group.last) > SIMILAR_WITHIN {
            group.messages.clear();
        }
        group.last = now;
        group.messages.insert(hash(&occurrence.message));
        if group.messages.len() < SIMILAR {
            return false;
        }
        // Stays one short of the limit, so that the next new message is gathered too.
        group.messages.pop_first();
        true
    }

    /// Returns `true` if an event of that key has been recorded. `event` then becomes its repetition.
    fn count(&mut self, key: u64, event: &mut CoreEvent, regarding: &ObjectReference) -> bool {
        let first = u32::try_from(event.first_timestamp.as_second().max(0)).unwrap_or(u32::MAX);
        let new = || Recorded { number: self.numbered, first, count: 0 };
        let recorded = self.recorded.get_or_insert_with(key, new);
        recorded.count = recorded.count.saturating_add(1);
        let is_repeated = recorded.count > 1;
        if is_repeated {
            event.count = recorded.count;
            event.metadata.name = name(regarding, recorded.number);
            event.first_timestamp = Timestamp::from_second(recorded.first.into()).unwrap_or(event.first_timestamp);
        }
        is_repeated
    }

    fn is_within_budget(&mut self, source: u64, now: Duration) -> bool {
        let full = || TokenBucket::new(SPAM_QPS, SPAM_BURST);
        self.budgets.get_or_insert_with(source, full).try_take(now)
    }
}
