//! A file that cannot be used for a while.

use jiff::{SignedDuration, Timestamp};

/// Interval at which a failure that goes on is logged again.
const REMINDER: SignedDuration = SignedDuration::from_mins(10);

/// A failure that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileFailure {
    text: String,
    since: Timestamp,
    logged: Timestamp,
}

impl FileFailure {
    /// Takes the error of a load, and returns the failure and whether it is to be logged: at once, when its text changes,
    /// and every ten minutes.
    pub(crate) fn follow(previous: Option<Self>, text: String, now: Timestamp) -> (Self, bool) {
        let since = previous.as_ref().map_or(now, |previous| previous.since);
        match previous {
            Some(previous) if previous.text == text && now.duration_since(previous.logged) < REMINDER => {
                (previous, false)
            }
            Some(_) | None => (Self { text, since, logged: now }, true),
        }
    }

    /// The text of the error.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The time of the first failed load.
    pub(crate) const fn since(&self) -> Timestamp {
        self.since
    }
}
