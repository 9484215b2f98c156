//! The time since which the API server has been watched without an outage.

use std::time::Duration;

use kcm_framework::informers::Connection;
use tokio::time::Instant;

/// The time since which this process has watched the API server without an outage.
///
/// During an outage neither kubelets nor this process reach the API server, so a Node that looks dead after it may be
/// healthy: its kubelet needs time to report. The same holds after a start.
#[derive(Debug)]
pub(crate) struct Watching {
    outages: u64,
    since: Instant,
}

impl Watching {
    pub(crate) fn new(now: Instant) -> Self {
        Self { outages: 0, since: now }
    }

    /// Begins anew, such as after a change of the leader.
    pub(crate) fn begin(&mut self, connection: &Connection, now: Instant) {
        *self = Self { outages: connection.outages(), since: now };
    }

    /// Returns the time since which the API server has been watched. An outage that ended unseen ends now.
    pub(crate) fn since(&mut self, connection: &Connection, now: Instant) -> Instant {
        if !connection.has_served_since(self.outages) {
            self.begin(connection, now);
        }
        self.since
    }

    /// Returns the time that is `period` after the beginning of the watch.
    pub(crate) fn since_for(&mut self, connection: &Connection, period: Duration, now: Instant) -> Instant {
        let since = self.since(connection, now);
        since.checked_add(period).unwrap_or(since)
    }
}
