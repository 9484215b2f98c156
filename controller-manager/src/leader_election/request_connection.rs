//! The connection for the requests of the controllers, as leader election sees it.

use std::time::Duration;

use kcm_framework::ManagerHandle;

/// The connection over which the controllers of a lease send their requests.
///
/// The lease has a connection of its own: a process can renew it though its controllers reach no API server.
pub(crate) trait RequestConnection: Send + Sync + 'static {
    /// The time for which the connection has been unusable, and the reason; `None` while it is usable.
    fn unusable(&self) -> Option<(Duration, String)>;

    /// Has the caches of the controllers compared with the storage of the API server, which may have gone back.
    fn suspect_rollback(&self);
}

impl RequestConnection for ManagerHandle {
    fn unusable(&self) -> Option<(Duration, String)> {
        self.unusable_connection().map(|connection| (connection.for_time, connection.cause))
    }

    fn suspect_rollback(&self) {
        Self::suspect_rollback(self);
    }
}
