//! The ready keys, in the order in which they are handed out.

use std::collections::VecDeque;
use std::time::Duration;

use crate::priority::Priority;

/// The number of one stay of a key in the ready queues; never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The place of a key in a queue.
pub(crate) struct Place<K> {
    pub(crate) key: K,
    pub(crate) ticket: Ticket,
    /// Since when it has been ready. Never decreases along a queue.
    pub(crate) since: Duration,
}

/// Two FIFO queues of ready keys, one for each priority, and which of them was served last.
///
/// A key whose priority is raised keeps its place and gets a second one with the same ticket in the live queue: the
/// place that is reached first counts. The other becomes *stale*, and is dropped when it is reached or when most places
/// are stale, so that every operation is O(1) amortised and memory stays in proportion to the keys.
///
/// The queues do not know which tickets are current: callers pass that as `current`.
pub(crate) struct ReadyQueues<K> {
    live: VecDeque<Place<K>>,
    initial: VecDeque<Place<K>>,
    ready: usize,
    last_ticket: Ticket,
    ageing: Duration,
    live_went_last: bool,
}

impl<K> ReadyQueues<K> {
    pub(crate) fn new(ageing: Duration) -> Self {
        Self {
            live: VecDeque::new(),
            initial: VecDeque::new(),
            ready: 0,
            last_ticket: Ticket::default(),
            ageing,
            live_went_last: false,
        }
    }

    /// Number of keys that are ready.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// Puts a key that has no place at the end of the queue of its priority.
    pub(crate) fn push(&mut self, key: K, priority: Priority, since: Duration) -> Ticket {
        self.ready += 1;
        self.last_ticket.0 += 1;
        let ticket = self.last_ticket;
        let place = Place { key, ticket, since };
        match priority {
            Priority::Live => self.live.push_back(place),
            Priority::Initial => self.initial.push_back(place),
        }
        ticket
    }

    /// Gives a key of the initial queue a second place, at the end of the live queue.
    pub(crate) fn raise(&mut self, place: Place<K>, current: impl Fn(&Place<K>) -> bool) {
        self.live.push_back(place);
        // A ready key has at most two places. Beyond twice that, more than half are stale, each left by one raise:
        // those raises pay for the sweep.
        if self.places() > 4 * self.ready + 32 {
            self.live.retain(&current);
            self.initial.retain(&current);
        }
    }

    /// Takes the next key.
    ///
    /// Live keys go first. Once the first initial key has waited for the ageing time, both queues take turns.
    pub(crate) fn pop(&mut self, now: Duration, current: impl Fn(&Place<K>) -> bool) -> Option<Place<K>> {
        self.drop_stale_fronts(&current);
        let aged = self.initial.front().is_some_and(|first| now.saturating_sub(first.since) >= self.ageing);
        let initial_goes = self.live.is_empty() || (aged && self.live_went_last);
        let queue = if initial_goes { &mut self.initial } else { &mut self.live };
        let place = queue.pop_front()?;
        shrink(queue);
        self.live_went_last = !initial_goes;
        self.ready -= 1;
        Some(place)
    }

    pub(crate) fn clear(&mut self) {
        self.live = VecDeque::new();
        self.initial = VecDeque::new();
        self.ready = 0;
    }

    /// Since when the longest waiting key has been ready.
    pub(crate) fn oldest(&self, current: impl Fn(&Place<K>) -> bool) -> Option<Duration> {
        let first = |queue: &VecDeque<Place<K>>| queue.iter().find(|place| current(place)).map(|place| place.since);
        first(&self.live).into_iter().chain(first(&self.initial)).min()
    }

    fn places(&self) -> usize {
        self.live.len() + self.initial.len()
    }

    fn drop_stale_fronts(&mut self, current: impl Fn(&Place<K>) -> bool) {
        // As many places as keys: none is stale, and nothing has to be looked up.
        if self.places() == self.ready {
            return;
        }
        for queue in [&mut self.live, &mut self.initial] {
            while queue.pop_front_if(|place| !current(place)).is_some() {}
            shrink(queue);
        }
    }
}

fn shrink<K>(queue: &mut VecDeque<Place<K>>) {
    if queue.capacity() > 1024 && queue.len() < queue.capacity() / 8 {
        queue.shrink_to(2 * queue.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGEING: Duration = Duration::from_secs(1);
    const START: Duration = Duration::ZERO;

    fn order(ready_queues: &mut ReadyQueues<u64>, now: Duration) -> Vec<u64> {
        std::iter::from_fn(|| ready_queues.pop(now, |_| true)).map(|place| place.key).collect()
    }

    fn three_of_each() -> ReadyQueues<u64> {
        let mut ready_queues = ReadyQueues::new(AGEING);
        for key in 0..3 {
            ready_queues.push(key + 10, Priority::Initial, START);
            ready_queues.push(key, Priority::Live, START);
        }
        ready_queues
    }

    #[test]
    fn live_keys_go_first_until_the_ageing_time() {
        let just_before = AGEING.checked_sub(Duration::from_nanos(1)).expect("a second is longer");
        assert_eq!(order(&mut three_of_each(), just_before), [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    fn queues_take_turns_from_the_ageing_time_on() {
        assert_eq!(order(&mut three_of_each(), AGEING), [0, 10, 1, 11, 2, 12]);
    }

    #[test]
    fn stale_places_do_not_outnumber_the_others_for_long() {
        let mut ready_queues = ReadyQueues::new(AGEING);
        ready_queues.push(0, Priority::Initial, START);
        for key in 1..100_000 {
            let ticket = ready_queues.push(key, Priority::Initial, START);
            let current = |place: &Place<u64>| place.key == 0 || place.key == key;
            ready_queues.raise(Place { key, ticket, since: START }, current);
            assert_eq!(ready_queues.pop(START, current).map(|place| place.key), Some(key));
            assert!(ready_queues.places() <= 4 * 2 + 32, "{} places for one key", ready_queues.places());
        }
    }

    #[test]
    fn an_emptied_queue_shrinks() {
        let mut ready_queues = ReadyQueues::new(AGEING);
        for key in 0..100_000 {
            ready_queues.push(key, Priority::Initial, START);
        }
        assert_eq!(order(&mut ready_queues, START).len(), 100_000);
        assert!(ready_queues.initial.capacity() <= 1024, "{} places kept", ready_queues.initial.capacity());
    }
}
