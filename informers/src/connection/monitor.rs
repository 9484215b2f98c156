//! The task that probes the API server while it is suspected or unreachable.

use std::convert::Infallible;

use kube::Client;
use tokio::time::{Instant, sleep_until};

use super::Connection;
use super::probe::probe;
use super::state::{State, Transition};

/// The monitor of a connection. After it is dropped, the connection counts as reachable for ever.
#[derive(Debug)]
#[must_use = "nothing is probed until the monitor runs"]
pub struct ConnectionMonitor {
    connection: Connection,
}

impl ConnectionMonitor {
    pub(super) const fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Probes the API server through `client` when it is suspected, and until it serves again.
    ///
    /// Logs once that it has become unreachable, with the cause, and once that it is back, with the length of the
    /// outage.
    pub async fn run(&self, client: &Client) -> Infallible {
        let inner = &self.connection.0;
        loop {
            // Bound first: a lock in the scrutinee would be held across the await.
            let probe_at = inner.state.lock().probe_at();
            let Some(at) = probe_at else {
                inner.suspected.notified().await;
                continue;
            };
            sleep_until(inner.started + at).await;
            let begun = Instant::now() - inner.started;
            self.connection.with_state(State::probe_begins);
            let probed = probe(client).await;
            match self.connection.with_state(|state, now| state.probe_ended(begun, probed, now)) {
                None => {}
                Some(Transition::Lost { cause }) => {
                    tracing::warn!(cause, "API server is unreachable; informers and keys wait for it");
                }
                Some(Transition::Restored { after }) => {
                    tracing::info!(outage_seconds = after.as_secs_f64(), "API server is reachable again");
                }
            }
        }
    }
}

impl Drop for ConnectionMonitor {
    fn drop(&mut self) {
        self.connection.with_state(|state, _| state.end());
    }
}
