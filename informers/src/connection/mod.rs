//! The connection to the API server: whether the server can be reached and serves.
//!
//! One [`Connection`] belongs to one client pool, and everything that sends requests through the pool shares it. A
//! request that fails in a way that may be an outage [suspects](Connection::suspect) the connection. The one
//! [`ConnectionMonitor`] then probes the server, and only its verdict changes the state. While the server is
//! unreachable nothing else is sent: informers and keys wait, and continue when a probe succeeds, whatever the length
//! of the outage. So no informer and no key has to find out by itself, each with a back-off of its own.
//!
//! ```text
//!                 suspect                     probe fails
//!  Reachable ───────────────▶ Suspected ────────────────────▶ Unreachable ──┐
//!      ▲  ▲                       │                                │        │ probe fails
//!      │  └──── probe succeeds ───┘                                │ ◀──────┘
//!      └──────────────────────── probe succeeds ───────────────────┘
//! ```
//!
//! # Several API servers
//! Behind a load balancer each connection stays with one API server. So a probe goes over the connection whose request
//! failed, and over a fresh one if that server does not serve ([`ProbePath`]): an outage is one of all servers that the
//! address leads to. Two pools may be connected to different servers, and each has a state of its own; see
//! [`Connection::dependent`].

mod monitor;
mod probe;
mod probe_path;
mod state;
mod suspicion;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub use monitor::ConnectionMonitor;
pub use probe_path::ProbePath;
use state::State;
pub use state::{PROBE_GAP, Reachability};
pub use suspicion::{is_refused_by_authorizer, is_storage_failure, may_be_outage};

/// The connection to one API server: a handle that all clients, informers and loops of one client pool share.
///
/// Without a [`ConnectionMonitor`], or after it was dropped, the connection always counts as reachable.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    state: Mutex<State>,
    published: watch::Sender<Published>,
    suspected: Notify,
    /// The connection that all users of this one need as well.
    base: Option<Connection>,
    /// The connections whose base this one is.
    dependents: Mutex<Vec<Weak<Inner>>>,
}

/// The state that waiters are notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Published {
    reachability: Reachability,
    outages: u64,
    /// When the last successful probe began.
    confirmed_at: Option<Duration>,
}

/// The state of a connection, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStatus {
    /// State of the connection to the API server.
    pub reachability: Reachability,
    /// Time for which it has been suspected or unreachable; zero while it is reachable.
    pub for_time: Duration,
    /// Why it is suspected or unreachable.
    pub cause: Option<String>,
    /// Number of outages since the start, including the current one.
    pub outages: u64,
}

impl ConnectionStatus {
    /// Time for which the connection has been unreachable. `None` if it is reachable, or a probe has not decided yet.
    #[must_use]
    pub fn unreachable_for(&self) -> Option<Duration> {
        (self.reachability == Reachability::Unreachable).then_some(self.for_time)
    }
}

impl Connection {
    /// A connection and its monitor. `seed` seeds the jitter of probes.
    pub fn new(seed: u64) -> (Self, ConnectionMonitor) {
        let connection = Self::with(State::new(seed));
        (connection.clone(), ConnectionMonitor::new(connection))
    }

    /// Another connection to the same API server, and its monitor, for users that need this connection too: a controller
    /// sends over the one, and its caches are filled over the other.
    ///
    /// It is reachable while both are, and counts the outages of both. Suspicions concern it alone.
    pub fn dependent(&self, seed: u64) -> (Self, ConnectionMonitor) {
        let dependent = Self::over(State::new(seed), self.0.started, Some(self.clone()));
        self.0.dependents.lock().push(Arc::downgrade(&dependent.0));
        (dependent.clone(), ConnectionMonitor::new(dependent))
    }

    /// A connection without a monitor, which always counts as reachable.
    #[must_use]
    pub fn unmonitored() -> Self {
        Self::with(State::unmonitored())
    }

    fn with(state: State) -> Self {
        Self::over(state, Instant::now(), None)
    }

    fn over(state: State, started: Instant, base: Option<Self>) -> Self {
        let published = watch::Sender::new(published(&state, base.as_ref()));
        let (suspected, dependents) = (Notify::new(), Mutex::default());
        Self(Arc::new(Inner { started, state: Mutex::new(state), published, suspected, base, dependents }))
    }

    /// Has the API server probed because a request failed with `cause`, which may be an outage.
    ///
    /// # Guarantees
    /// Returns at once. However many requests fail, there is one probe at a time, and two begin at least half of
    /// [`PROBE_GAP`] apart.
    pub fn suspect(&self, cause: &dyn Display) {
        self.with_state(|state, now| state.suspect(cause, now));
        self.0.suspected.notify_one();
    }

    /// Returns `true` unless the API server is known to be unreachable.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.0.published.borrow().reachability != Reachability::Unreachable
    }

    /// Returns `true` if the API server is neither unreachable nor suspected to be unreachable.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.0.published.borrow().reachability == Reachability::Reachable
    }

    /// Returns `true` if a monitor watches the connection.
    #[must_use]
    pub fn is_monitored(&self) -> bool {
        self.0.state.lock().is_monitored()
    }

    /// The state of the connection, for operators: its own, without the connection that it
    /// [depends on](Self::dependent).
    #[must_use]
    pub fn status(&self) -> ConnectionStatus {
        let now = self.0.started.elapsed();
        let state = self.0.state.lock();
        let (for_time, cause) = state.trouble(now).map_or((Duration::ZERO, None), |(time, cause)| (time, Some(cause)));
        ConnectionStatus { reachability: state.reachability(), for_time, cause, outages: state.outages() }
    }

    /// Number of outages since the start, including the current one.
    #[must_use]
    pub fn outages(&self) -> u64 {
        self.0.published.borrow().outages
    }

    /// Returns `true` if the API server serves and the number of [`outages`](Self::outages) is still `outages`.
    #[must_use]
    pub fn has_served_since(&self, outages: u64) -> bool {
        let published = self.0.published.borrow();
        published.reachability == Reachability::Reachable && published.outages == outages
    }

    /// Waits until the API server is not known to be unreachable.
    pub async fn reachable(&self) {
        self.wait_for(|published| published.reachability != Reachability::Unreachable).await;
    }

    /// Waits until the API server is known to be unreachable.
    pub async fn lost(&self) {
        self.wait_for(|published| published.reachability == Reachability::Unreachable).await;
    }

    /// Waits for the verdict on a request that failed now: `true` if a probe that begins after this call finds the API
    /// server reachable.
    ///
    /// Returns at once if no outage is suspected.
    pub async fn verdict(&self) -> bool {
        let asked_at = self.0.started.elapsed();
        let published = self
            .wait_for(|published| match published.reachability {
                Reachability::Reachable | Reachability::Unreachable => true,
                Reachability::Suspected => published.confirmed_at.is_some_and(|confirmed_at| confirmed_at >= asked_at),
            })
            .await;
        published.reachability != Reachability::Unreachable
    }

    /// The changes of the connection from now on.
    #[must_use]
    pub fn changes(&self) -> ConnectionChanges {
        let published = self.0.published.subscribe();
        let outages = published.borrow().outages;
        ConnectionChanges { published, was_reachable: true, outages }
    }

    async fn wait_for(&self, holds: impl FnMut(&Published) -> bool) -> Published {
        let mut published = self.0.published.subscribe();
        let result = published.wait_for(holds).await.map(|published| *published);
        result.expect("the sender must live as long as this handle")
    }

    /// Applies an input to the state, and publishes the result.
    fn with_state<R>(&self, input: impl FnOnce(&mut State, Duration) -> R) -> R {
        let mut state = self.0.state.lock();
        let result = input(&mut state, self.0.started.elapsed());
        self.publish(&state);
        drop(state);
        self.0.dependents.lock().retain(|dependent| {
            let dependent = dependent.upgrade().map(Connection);
            if let Some(dependent) = &dependent {
                dependent.publish(&dependent.0.state.lock());
            }
            dependent.is_some()
        });
        result
    }

    /// Publishes the state. Called under its lock, so that the last publication is the current state.
    fn publish(&self, state: &State) {
        let now = published(state, self.0.base.as_ref());
        self.0.published.send_if_modified(|before| std::mem::replace(before, now) != now);
    }
}

fn published(state: &State, base: Option<&Connection>) -> Published {
    let own =
        Published { reachability: state.reachability(), outages: state.outages(), confirmed_at: state.confirmed_at() };
    base.map_or(own, |base| own.with(*base.0.published.borrow()))
}

impl Published {
    /// The state of a connection whose users need `base` as well.
    fn with(self, base: Self) -> Self {
        let suspected = [self, base].into_iter().filter(|one| one.reachability == Reachability::Suspected);
        Self {
            reachability: self.reachability.max(base.reachability),
            outages: self.outages + base.outages,
            // A verdict needs a probe of each that is suspected; `None` is the least.
            confirmed_at: suspected.map(|one| one.confirmed_at).min().unwrap_or(self.confirmed_at),
        }
    }
}

/// A change of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionChange {
    /// The API server has become unreachable.
    Lost,
    /// The API server can be reached again.
    Restored,
}

/// The changes of a connection, in order; a `Lost` that is followed by a `Restored` may be left out.
#[derive(Debug)]
pub struct ConnectionChanges {
    published: watch::Receiver<Published>,
    was_reachable: bool,
    outages: u64,
}

impl ConnectionChanges {
    /// The next change. A connection that was lost before the first call yields [`ConnectionChange::Lost`].
    ///
    /// # Cancellation
    /// No change is lost if the future is dropped.
    pub async fn next(&mut self) -> ConnectionChange {
        let (was_reachable, outages) = (self.was_reachable, self.outages);
        let changed = self.published.wait_for(|published| {
            let is_reachable = published.reachability != Reachability::Unreachable;
            is_reachable != was_reachable || published.outages != outages
        });
        let Ok(published) = changed.await.map(|published| *published) else {
            // Every handle of the connection was dropped, and with them its monitor.
            return std::future::pending().await;
        };
        self.outages = published.outages;
        self.was_reachable = published.reachability != Reachability::Unreachable;
        if self.was_reachable { ConnectionChange::Restored } else { ConnectionChange::Lost }
    }
}
