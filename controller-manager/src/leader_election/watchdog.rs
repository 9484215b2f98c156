//! The watchdog of the main thread: a process whose controllers cannot run any more does not keep its lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::heartbeat::Heartbeat;

/// Time for which the last log line is waited for. Standard error may be the reason why the main thread is blocked.
const LAST_LINE: Duration = Duration::from_secs(1);

/// The watchdog of the main thread, for the threads of leases.
#[derive(Clone)]
pub(crate) struct Watchdog {
    heartbeat: Heartbeat,
    limit: Duration,
    exit: Arc<dyn Fn() + Send + Sync>,
}

impl Watchdog {
    /// A watchdog that calls `exit` once the main thread has been blocked for `limit`.
    pub(crate) fn new(heartbeat: Heartbeat, limit: Duration, exit: impl Fn() + Send + Sync + 'static) -> Self {
        Self { heartbeat, limit, exit: Arc::new(exit) }
    }

    /// Returns `true` if the main thread is blocked for too long.
    pub(super) fn is_over(&self) -> bool {
        self.heartbeat.blocked() >= self.limit
    }

    /// Ends the process from this thread, because the main thread cannot. Called when no write is sent any more.
    pub(super) async fn exit(&self) {
        let blocked_seconds = self.heartbeat.blocked().as_secs();
        let (logged, done) = oneshot::channel::<()>();
        // If the thread does not start, there is no line.
        drop(std::thread::Builder::new().name("last-line".to_owned()).spawn(move || {
            tracing::error!(blocked_seconds, "The thread of the controllers is blocked; ending the process");
            drop(logged);
        }));
        drop(timeout(LAST_LINE, done).await);
        (self.exit)();
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("heartbeat", &self.heartbeat)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
