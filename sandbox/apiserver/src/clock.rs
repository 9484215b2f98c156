//! The time of a sandbox: tokio's, or set by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A clock that a simulation sets, for a sandbox that several runtimes or none use. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    /// Nanoseconds since the start of the sandbox.
    elapsed: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `elapsed`.
    #[must_use]
    pub fn at(elapsed: Duration) -> Self {
        let clock = Self::default();
        clock.advance_to(elapsed);
        clock
    }

    /// Returns the time since the start of the sandbox.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed.load(Ordering::Relaxed))
    }

    /// Advances the clock to `elapsed`. A clock that is ahead of it does not move.
    pub fn advance_to(&self, elapsed: Duration) {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.elapsed.fetch_max(nanos, Ordering::Relaxed);
    }
}

/// The clock of one sandbox.
#[derive(Debug)]
pub(crate) enum SandboxClock {
    Tokio { started: Instant },
    Manual { clock: ManualClock, started: Instant },
}

impl SandboxClock {
    pub(crate) fn tokio() -> Self {
        Self::Tokio { started: Instant::now() }
    }

    pub(crate) fn manual(clock: ManualClock) -> Self {
        Self::Manual { clock, started: Instant::now() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Tokio { started } => started.elapsed(),
            Self::Manual { clock, .. } => clock.elapsed(),
        }
    }

    /// The instant `at` after the start, for timers, which have no other clock than tokio's.
    pub(crate) fn instant(&self, at: Duration) -> Instant {
        match self {
            Self::Tokio { started } | Self::Manual { started, .. } => *started + at,
        }
    }
}
