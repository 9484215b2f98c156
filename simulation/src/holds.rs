//! Holds: requests, responses and deliveries that wait for something else.

use std::time::Duration;

use crate::schedule::Until;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Time since the start of the run.
    pub(crate) time: Duration,
    /// Number of writes of all processes that reached the API server.
    pub(crate) writes: u32,
    /// Number of events that caches have received.
    pub(crate) events: u32,
}

/// A hold, and the progress at its begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    until: Until,
    since: Progress,
}

impl Hold {
    pub(crate) const fn new(until: Until, since: Progress) -> Self {
        Self { until, since }
    }

    /// Returns `true` if the hold ends. `events` is the number of events that count for it: the events that wait for a
    /// cache, or `None` for the events that all caches have received.
    pub(crate) fn is_over(&self, now: Progress, waiting: Option<usize>) -> bool {
        match self.until {
            Until::Writes(count) => now.writes >= self.since.writes + count,
            Until::Events(count) => match waiting {
                Some(waiting) => waiting >= count as usize,
                None => now.events >= self.since.events + count,
            },
            Until::Rest => false,
            Until::After(time) => now.time >= self.since.time + time,
        }
    }

    /// Returns `true` if the hold ends when nothing else can happen. Only a hold for a time does not.
    pub(crate) const fn ends_at_rest(&self) -> bool {
        match self.until {
            Until::Writes(_) | Until::Events(_) | Until::Rest => true,
            Until::After(_) => false,
        }
    }
}

/// Returns `true` if nothing holds.
pub(crate) fn is_free(hold: Option<&Hold>, now: Progress, waiting: Option<usize>) -> bool {
    hold.is_none_or(|hold| hold.is_over(now, waiting))
}

/// Removes a hold that ends when nothing else can happen. Returns `true` if it does.
pub(crate) fn release(hold: &mut Option<Hold>) -> bool {
    hold.take_if(|hold| hold.ends_at_rest()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64, writes: u32, events: u32) -> Progress {
        Progress { time: Duration::from_secs(time), writes, events }
    }

    #[test]
    fn each_hold_ends_by_what_it_counts_alone() {
        let since = at(5, 3, 7);
        for (until, before, after) in [
            (Until::Writes(2), at(99, 4, 99), at(5, 5, 7)),
            (Until::Events(2), at(99, 99, 8), at(5, 3, 9)),
            (Until::After(Duration::from_secs(4)), at(8, 99, 99), at(9, 3, 7)),
        ] {
            let hold = Hold::new(until, since);
            assert!(!hold.is_over(before, None) && hold.is_over(after, None), "{until}");
        }
        assert!(!Hold::new(Until::Rest, since).is_over(at(99, 99, 99), None));
    }

    #[test]
    fn a_delivery_is_held_for_the_events_that_wait_with_it() {
        let hold = Hold::new(Until::Events(3), at(0, 0, 0));
        assert!(!hold.is_over(at(0, 0, 99), Some(2)) && hold.is_over(at(0, 0, 0), Some(3)));
    }

    #[test]
    fn at_rest_every_hold_ends_that_is_not_for_a_time() {
        for (until, ends) in [
            (Until::Rest, true),
            (Until::Writes(9), true),
            (Until::Events(9), true),
            (Until::After(Duration::from_secs(1)), false),
        ] {
            let mut hold = Some(Hold::new(until, at(0, 0, 0)));
            assert_eq!((release(&mut hold), hold.is_none()), (ends, ends), "{until}");
        }
    }
}
