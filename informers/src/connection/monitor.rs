//! The task that probes the API server while it is suspected or unreachable.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::Client;
use tokio::time::{Instant, sleep_until};

use super::Connection;
use super::probe::{Probe, Probed, probe};
use super::probe_path::ProbePath;
use super::state::{State, Transition};

/// The monitor of a connection. After it is dropped, the connection counts as reachable for ever.
#[derive(Debug)]
#[must_use = "nothing is probed until the monitor runs"]
pub struct ConnectionMonitor {
    connection: Connection,
    /// Set once it was logged that a gateway answers `/readyz`.
    has_logged_gateway: AtomicBool,
}

impl ConnectionMonitor {
    pub(super) const fn new(connection: Connection) -> Self {
        Self { connection, has_logged_gateway: AtomicBool::new(false) }
    }

    /// Probes the API server through `client` when it is suspected, and until it serves again.
    ///
    /// If the server behind the present connections does not serve, it probes over fresh ones. If the server behind these
    /// serves, they take the place of the present ones, and there is no outage, or it ends.
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
            let probed = self.probe(client).await;
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

    /// Probes over the present connections, and over fresh ones if these fail.
    async fn probe(&self, client: &Client) -> Probed {
        let present = ProbePath::present();
        let probed = self.probe_over(client, &present).await;
        if probed == Probed::Serves || !present.is_known() || !self.begins_fresh() {
            return probed;
        }
        let fresh = ProbePath::fresh();
        match self.probe_over(client, &fresh).await {
            Probed::Serves => {
                tracing::info!(cause = ?probed, "API server serves over a fresh connection, which is used from now on");
                fresh.adopt();
                Probed::Serves
            }
            Probed::Forbidden | Probed::Fails(_) => probed,
        }
    }

    fn begins_fresh(&self) -> bool {
        self.connection.with_state(|state, now| {
            let begins = state.wants_fresh(now);
            if begins {
                state.fresh_begins(now);
            }
            begins
        })
    }

    async fn probe_over(&self, client: &Client, path: &ProbePath) -> Probed {
        let Probe { result, gateway } = probe(client, path).await;
        if let Some(response) = gateway
            && !self.has_logged_gateway.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                response,
                "A gateway answers the readiness check of the API server; lists of namespaces replace it"
            );
        }
        result
    }
}

impl Drop for ConnectionMonitor {
    fn drop(&mut self) {
        self.connection.with_state(|state, _| state.end());
    }
}
