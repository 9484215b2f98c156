//! The wall clock of managers, which a test can set.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::clock::{Clock, SimulatedClock};
use parking_lot::Mutex;

/// A clock that advances with paused time, and can be set forward and back.
#[derive(Debug, Clone)]
pub(crate) struct SettableClock {
    clock: SimulatedClock,
    shift: Arc<Mutex<SignedDuration>>,
}

impl SettableClock {
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self { clock: SimulatedClock::starting_at(start), shift: Arc::default() }
    }

    pub(crate) fn shift(&self, by: SignedDuration) {
        let mut shift = self.shift.lock();
        *shift = shift.saturating_add(by);
    }
}

impl Clock for SettableClock {
    fn now(&self) -> Timestamp {
        let shift = *self.shift.lock();
        self.clock.now().saturating_add(shift).unwrap_or(Timestamp::MAX)
    }
}
