//! Fewer wake-ups of a busy manager.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time between two wake-ups of a busy thread, in the long run.
const INTERVAL: Duration = Duration::from_millis(4);

/// Number of wake-ups that pass without a pause, however close together. Each [`INTERVAL`] allows one more.
const AT_ONCE: u32 = 50;

/// Decides the time for which a thread whose tasks all wait sleeps before it asks for events.
///
/// A busy cluster sends events and responses one by one, and each would wake the thread. It sleeps for a moment
/// instead, and handles the events of that time together, as a network card moderates its interrupts. The first
/// [`AT_ONCE`] wake-ups pass without a pause, so that a manager with little to do is not slower.
///
/// Has neither clock nor sleep; times are durations since any fixed moment. Made for one thread: several threads with
/// one allowance would wait for each other.
#[derive(Debug, Default)]
struct Moderation {
    /// Time at which all wake-ups so far would be over if each came an interval after the one before.
    over: Duration,
}

impl Moderation {
    /// Counts a wake-up, and returns the time that the thread sleeps before it asks for events: at most an interval, if
    /// it really sleeps.
    fn pause(&mut self, now: Duration) -> Duration {
        self.over = self.over.max(now) + INTERVAL;
        self.over.saturating_sub(now + AT_ONCE * INTERVAL)
    }
}

/// Returns a function that the thread of a runtime calls before it asks for events. It sleeps for a moment if the
/// thread is woken too often.
pub(crate) fn pause_while_busy() -> impl Fn() + Send + Sync + 'static {
    let start = Instant::now();
    let moderation = Mutex::new(Moderation::default());
    move || {
        let pause = moderation.lock().unwrap_or_else(PoisonError::into_inner).pause(start.elapsed());
        if !pause.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "no task is ready; that is when this is called")]
            std::thread::sleep(pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Wake-ups until `end` of a thread for which something new has always come, and pauses that it took.
    fn busy(moderation: &mut Moderation, mut now: Duration, end: Duration) -> (u32, u32) {
        let (mut wake_ups, mut pauses) = (0, 0);
        loop {
            let pause = moderation.pause(now);
            now += pause;
            if now >= end {
                return (wake_ups, pauses);
            }
            wake_ups += 1;
            pauses += u32::from(!pause.is_zero());
        }
    }

    #[test]
    fn a_busy_thread_wakes_once_in_an_interval_after_the_first() {
        for (end, pauses) in [(SECOND, 249), (2 * SECOND, 499), (60 * SECOND, 14_999)] {
            let wake_ups = busy(&mut Moderation::default(), Duration::ZERO, end);
            assert_eq!(wake_ups, (AT_ONCE + pauses, pauses), "until {end:?}");
        }
    }

    #[test]
    fn a_thread_with_little_to_do_never_pauses() {
        let mut moderation = Moderation::default();
        for wake_up in 0..10_000 {
            assert_eq!(moderation.pause(wake_up * INTERVAL), Duration::ZERO, "wake-up {wake_up}");
        }
    }

    #[test]
    fn after_a_rest_the_first_ones_pass_at_once_again() {
        let mut moderation = Moderation::default();
        busy(&mut moderation, Duration::ZERO, SECOND);
        let rested = 2 * SECOND;
        for wake_up in 0..AT_ONCE {
            assert_eq!(moderation.pause(rested), Duration::ZERO, "wake-up {wake_up}");
        }
        assert_eq!(moderation.pause(rested), INTERVAL);
    }

    #[test]
    fn no_pause_is_longer_than_an_interval() {
        let mut moderation = Moderation::default();
        let mut now = Duration::ZERO;
        for _ in 0..1000 {
            let pause = moderation.pause(now);
            assert!(pause <= INTERVAL, "{pause:?}");
            now += pause;
        }
    }
}
