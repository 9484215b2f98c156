//! Moments, which order lists and takeovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A moment from which caches must be current. It orders lists and takeovers without a clock of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// The moments of one manager. Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Moments(Arc<AtomicU64>);

impl Moments {
    /// A moment after everything that has happened so far.
    #[must_use]
    pub fn next(&self) -> Moment {
        Moment(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The moment that was returned last.
    pub(crate) fn last(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }
}
