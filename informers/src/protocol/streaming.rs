//! Decides whether the next list is a streaming list.

use std::time::Duration;

/// The experience with the streaming lists of one server.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    /// Number of streaming lists in a row that failed, and not because the client may not list.
    failed: u32,
    /// When the server was last found not to support streaming lists.
    unsupported_since: Option<Duration>,
}

impl Streaming {
    /// Number of streaming lists in a row that fail before the pages of a list are tried.
    pub(super) const FAILURES: u32 = 2;
    /// Time after which a server that did not support streaming lists is asked for one again: a proxy may have refused
    /// it, or the server was updated meanwhile.
    pub(super) const RETRIED_AFTER: Duration = Duration::from_hours(1);

    /// Returns `true` if a list that begins now is a streaming list.
    pub(super) fn is_next(&self, now: Duration) -> bool {
        match self.unsupported_since {
            Some(since) => now.saturating_sub(since) >= Self::RETRIED_AFTER,
            None => self.failed < Self::FAILURES,
        }
    }

    /// A streaming list is complete.
    pub(super) fn completed(&mut self) {
        *self = Self::default();
    }

    /// A streaming list has failed.
    pub(super) fn failed(&mut self) {
        self.failed = self.failed.saturating_add(1);
    }

    /// The server does not support streaming lists.
    pub(super) fn unsupported(&mut self, now: Duration) {
        *self = Self { failed: 0, unsupported_since: Some(now) };
    }

    /// A list by page is complete. If streaming lists failed before it, the server does not support them.
    pub(super) fn pages_completed(&mut self, now: Duration) {
        if self.failed >= Self::FAILURES {
            self.unsupported(now);
        }
    }

    /// A list by page has failed too, so streaming lists are not the reason.
    pub(super) fn pages_failed(&mut self) {
        self.failed = 0;
    }

    /// The server may be another one than before, for example after an outage.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
