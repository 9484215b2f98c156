//! The connection for the requests of the controllers, as leader election sees it.

use std::time::Duration;

use kcm_framework::informers::{Connection, ConnectionStatus, Reachability};

/// The connection over which the controllers of a lease send their requests.
///
/// The lease has a connection of its own: a process can renew it though its controllers reach no API server.
pub(crate) trait RequestConnection: Send + Sync + 'static {
    /// The time for which the connection has been unusable, and the reason; `None` while it is usable.
    fn unusable(&self) -> Option<(Duration, String)>;
}

impl RequestConnection for Connection {
    fn unusable(&self) -> Option<(Duration, String)> {
        let ConnectionStatus { reachability, for_time, cause, .. } = self.status();
        match reachability {
            // A probe decides soon.
            Reachability::Reachable | Reachability::Suspected => None,
            Reachability::Unreachable => Some((for_time, cause.unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use http::{Request, Response};
    use kube::client::Body;
    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_unusable_while_a_probe_says_so() {
        let is_cut = Arc::new(AtomicBool::new(true));
        let cut = Arc::clone(&is_cut);
        let service = tower::service_fn(move |_: Request<Body>| {
            let response = if cut.load(Ordering::SeqCst) {
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            } else {
                Ok(Response::new(Body::empty()))
            };
            std::future::ready(response)
        });
        let client = kube::Client::new(service, "default");
        let (connection, monitor) = Connection::new(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { match monitor.run(&client).await {} });
        assert_eq!(connection.unusable(), None);
        connection.suspect(&"a request failed");
        assert_eq!(connection.unusable(), None, "a probe decides");
        sleep(Duration::from_mins(1)).await;
        let (time, reason) = connection.unusable().expect("no probe succeeds");
        assert_eq!((time, &*reason), (Duration::from_mins(1), "ServiceError: connection reset"));
        is_cut.store(false, Ordering::SeqCst);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(connection.unusable(), None);
    }
}
