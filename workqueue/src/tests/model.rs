//! The reference model that property tests compare the state with: a naive implementation of the queue.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::RetryLimits;
use crate::priority::Priority;
use crate::snapshot::{Delayed, Failing, Held, QueueCounts, QueueSnapshot};

/// A queue of flat lists, which are searched and sorted at each call.
pub(crate) struct Model {
    keys: BTreeMap<u8, Key>,
    /// The ready keys of each priority in order. A raised key stands in both.
    live: Vec<u8>,
    initial: Vec<(u8, Duration)>,
    live_went_last: bool,
    limits: RetryLimits,
    ageing: Duration,
    /// The bucket's content in nanoseconds of refilling, below zero when it is overdrawn, and when that was so.
    credit: (i128, Duration),
    asked: u64,
    shut_down: bool,
}

#[derive(Default)]
struct Key {
    pending: Option<Priority>,
    ready_since: Option<Duration>,
    held: Option<(Duration, Priority)>,
    parked: Option<Duration>,
    delay: Option<(Duration, u64, Priority)>,
    failures: u32,
}

impl Key {
    fn is_remembered(&self) -> bool {
        let is_somewhere = self.pending.is_some() || self.held.is_some() || self.parked.is_some();
        is_somewhere || self.delay.is_some() || self.failures > 0
    }
}

impl Model {
    pub(crate) fn new(limits: RetryLimits, ageing: Duration) -> Self {
        Self {
            keys: BTreeMap::new(),
            live: Vec::new(),
            initial: Vec::new(),
            live_went_last: false,
            limits,
            ageing,
            credit: (nanos(limits.interval * limits.burst), Duration::ZERO),
            asked: 0,
            shut_down: false,
        }
    }

    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some((due, _, key)) =
            self.keys.iter().filter_map(|(key, it)| it.delay.map(|(due, asked, _)| (due, asked, *key))).min()
            && due <= now
        {
            let (_, _, priority) = self.key(key).delay.take().expect("it was found by its delay");
            self.pend(key, priority, due);
        }
    }

    pub(crate) fn add(&mut self, key: u8, priority: Priority, now: Duration) {
        if !self.shut_down {
            self.pend(key, priority, now);
        }
    }

    pub(crate) fn add_after(&mut self, key: u8, delay: Duration, priority: Priority, now: Duration) {
        if self.shut_down {
            return;
        }
        self.asked += 1;
        if delay.is_zero() {
            return self.pend(key, priority, now);
        }
        let new = (now + delay, self.asked, priority);
        let delay = &mut self.key(key).delay;
        *delay = Some(match *delay {
            Some(old) => {
                let first = if old.0 <= new.0 { old } else { new };
                (first.0, first.1, old.2.max(new.2))
            }
            None => new,
        });
    }

    pub(crate) fn retry(&mut self, key: u8, now: Duration) {
        if self.shut_down {
            return;
        }
        let it = self.key(key);
        it.failures += 1;
        let failures = it.failures;
        let priority = it.held.map_or(Priority::Live, |(_, priority)| priority);
        let mut backoff = self.limits.base;
        for _ in 1..failures {
            backoff = (backoff * 2).min(self.limits.max);
        }
        let full = nanos(self.limits.interval * self.limits.burst);
        let refilled = (self.credit.0 + nanos(now) - nanos(self.credit.1)).min(full);
        self.credit = (refilled - nanos(self.limits.interval), now);
        let overdrawn = u64::try_from((-self.credit.0).max(0)).expect("tests are short");
        self.add_after(key, backoff.max(Duration::from_nanos(overdrawn)), priority, now);
    }

    pub(crate) fn forget(&mut self, key: u8) {
        self.key(key).failures = 0;
    }

    pub(crate) fn take(&mut self, now: Duration) -> Option<u8> {
        let aged = self.initial.first().is_some_and(|(_, since)| now >= *since + self.ageing);
        let initial_goes = self.live.is_empty() || (aged && self.live_went_last);
        let key = if initial_goes { self.initial.first()?.0 } else { *self.live.first()? };
        self.live_went_last = !initial_goes;
        self.live.retain(|other| *other != key);
        self.initial.retain(|(other, _)| *other != key);
        let it = self.key(key);
        let priority = it.pending.take().expect("a ready key is pending");
        it.ready_since = None;
        it.held = Some((now, priority));
        Some(key)
    }

    pub(crate) fn done(&mut self, key: u8, now: Duration) {
        self.key(key).held = None;
        self.ready(key, now);
    }

    pub(crate) fn park(&mut self, key: u8, now: Duration) {
        let it = self.key(key);
        if it.held.take().is_some() {
            it.parked = Some(now);
        }
    }

    pub(crate) fn unpark(&mut self, key: u8, now: Duration) {
        self.key(key).parked = None;
        self.ready(key, now);
    }

    pub(crate) fn shut_down(&mut self) {
        self.shut_down = true;
        self.keys.values_mut().for_each(|it| it.delay = None);
    }

    pub(crate) fn snapshot(&self, now: Duration) -> QueueSnapshot<u8> {
        let held = |since: fn(&Key) -> Option<Duration>| {
            let all =
                self.keys.iter().filter_map(|(key, it)| Some(Held { key: *key, age: now.saturating_sub(since(it)?) }));
            sorted(all, |held| (std::cmp::Reverse(held.age), held.key))
        };
        let delays = self.keys.iter().filter_map(|(key, it)| it.delay.map(|(due, asked, _)| (due, asked, *key)));
        let count = |counts: fn(&Key) -> bool| self.keys.values().filter(|it| counts(it)).count();
        QueueSnapshot {
            counts: QueueCounts {
                ready: count(|it| it.ready_since.is_some()),
                processing: count(|it| it.held.is_some()),
                parked: count(|it| it.parked.is_some()),
                delayed: count(|it| it.delay.is_some()),
                failing: count(|it| it.failures > 0),
            },
            oldest: self.keys.values().filter_map(|it| it.ready_since).min().map(|since| now.saturating_sub(since)),
            processing: held(|it| it.held.map(|(since, _)| since)),
            parked: held(|it| it.parked),
            delayed: sorted(delays, |delay| *delay)
                .into_iter()
                .map(|(due, _, key)| Delayed { key, due_in: due.saturating_sub(now) })
                .collect(),
            failing: sorted(
                self.keys.iter().filter(|(_, it)| it.failures > 0).map(|(key, it)| Failing {
                    key: *key,
                    failures: it.failures,
                    at_longest_backoff: self.limits.base * 2_u32.pow(it.failures - 1) >= self.limits.max,
                }),
                |failing| (std::cmp::Reverse(failing.failures), failing.key),
            ),
            remembered: self.keys.values().filter(|it| it.is_remembered()).count(),
            shut_down: self.shut_down,
        }
    }

    fn key(&mut self, key: u8) -> &mut Key {
        self.keys.entry(key).or_default()
    }

    fn pend(&mut self, key: u8, priority: Priority, now: Duration) {
        let it = self.key(key);
        let is_raised = it.pending.is_some_and(|pending| pending < priority);
        it.pending = it.pending.max(Some(priority));
        if it.ready_since.is_none() {
            self.ready(key, now);
        } else if is_raised {
            self.live.push(key);
        }
    }

    fn ready(&mut self, key: u8, now: Duration) {
        let it = self.key(key);
        let Some(priority) = it.pending else { return };
        if it.held.is_some() || it.parked.is_some() || it.ready_since.is_some() {
            return;
        }
        it.ready_since = Some(now);
        match priority {
            Priority::Live => self.live.push(key),
            Priority::Initial => self.initial.push((key, now)),
        }
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).expect("tests are short")
}

fn sorted<T, O: Ord>(all: impl Iterator<Item = T>, by: impl Fn(&T) -> O) -> Vec<T> {
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(by);
    all
}
