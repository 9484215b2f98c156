//! The state of a connection as a pure state machine: when to probe, and what the results mean.

use std::fmt::Display;
use std::time::Duration;

use super::probe::Probed;

/// Longest time between the beginnings of two probes while the server is unreachable, if the first has ended by then.
/// The gap is drawn from [`PROBE_GAP` / 2, `PROBE_GAP`).
pub const PROBE_GAP: Duration = Duration::from_secs(1);

/// Longest time between the beginnings of two probes over fresh connections while the server is unreachable. The gap is
/// drawn from half of it to all.
const FRESH_GAP: Duration = Duration::from_secs(6);

/// Time for which an API server may forbid probes because it starts.
const FORBIDDEN_AT_START: Duration = Duration::from_secs(10);

/// State of the connection to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reachability {
    /// The API server serves, as far as is known.
    Reachable,
    /// A request has failed in a way that may be an outage, and a probe is under way.
    Suspected,
    /// The last probe failed.
    Unreachable,
}

/// A change that is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Transition {
    /// The API server has become unreachable.
    Lost { cause: String },
    /// The API server can be reached again.
    Restored { after: Duration },
}

/// The state of a connection. Times are durations since any fixed point and never decrease.
#[derive(Debug)]
pub(super) struct State {
    phase: Phase,
    outages: u64,
    last_suspicion: Duration,
    /// When the next probe may begin.
    next_probe: Duration,
    /// When the next probe over fresh connections may begin, in an outage.
    next_fresh: Duration,
    /// When the last successful probe began.
    confirmed_at: Option<Duration>,
    /// Since when probes are forbidden, if they are.
    forbidden_since: Option<Duration>,
    rng: fastrand::Rng,
}

#[derive(Debug)]
enum Phase {
    Unmonitored,
    Reachable,
    Suspected(Trouble),
    Unreachable(Trouble),
}

#[derive(Debug)]
struct Trouble {
    since: Duration,
    cause: String,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            phase: Phase::Reachable,
            outages: 0,
            last_suspicion: Duration::ZERO,
            next_probe: Duration::ZERO,
            next_fresh: Duration::ZERO,
            confirmed_at: None,
            forbidden_since: None,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    pub(super) fn unmonitored() -> Self {
        Self { phase: Phase::Unmonitored, ..Self::new(0) }
    }

    /// Ends the monitoring: the connection counts as reachable from now on.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Unmonitored;
    }

    pub(super) fn suspect(&mut self, cause: &dyn Display, now: Duration) {
        self.last_suspicion = now;
        if let Phase::Reachable = self.phase {
            self.phase = Phase::Suspected(Trouble { since: now, cause: cause.to_string() });
        }
    }

    /// When the next probe begins, if one is needed.
    pub(super) const fn probe_at(&self) -> Option<Duration> {
        match self.phase {
            Phase::Suspected(_) | Phase::Unreachable(_) => Some(self.next_probe),
            Phase::Unmonitored | Phase::Reachable => None,
        }
    }

    /// Records that a probe begins.
    pub(super) fn probe_begins(&mut self, now: Duration) {
        self.next_probe = now + PROBE_GAP.mul_f64(0.5 + self.rng.f64() / 2.0);
    }

    /// Returns `true` if a probe over fresh connections follows a failed probe: always before an outage begins, and every
    /// few seconds during it.
    pub(super) fn wants_fresh(&self, now: Duration) -> bool {
        match self.phase {
            Phase::Suspected(_) => true,
            Phase::Unreachable(_) => now >= self.next_fresh,
            Phase::Unmonitored | Phase::Reachable => false,
        }
    }

    /// Records that a probe over fresh connections begins.
    pub(super) fn fresh_begins(&mut self, now: Duration) {
        self.next_fresh = now + FRESH_GAP.mul_f64(0.5 + self.rng.f64() / 2.0);
    }

    /// Records the result of the probe that began at `begun`.
    pub(super) fn probe_ended(&mut self, begun: Duration, probed: Probed, now: Duration) -> Option<Transition> {
        let failure = self.failure(probed, now);
        if failure.is_none() {
            self.confirmed_at = Some(begun);
        }
        match (std::mem::replace(&mut self.phase, Phase::Reachable), failure) {
            (Phase::Unmonitored, None | Some(_)) => {
                self.phase = Phase::Unmonitored;
                None
            }
            (Phase::Reachable, None | Some(_)) => None,
            (Phase::Suspected(trouble), None) => {
                // A request that failed after the probe began may have met an outage that the probe did not.
                if self.last_suspicion > begun {
                    self.phase = Phase::Suspected(trouble);
                }
                None
            }
            (Phase::Suspected(Trouble { since, .. }), Some(cause)) => {
                self.outages += 1;
                self.phase = Phase::Unreachable(Trouble { since, cause: cause.clone() });
                Some(Transition::Lost { cause })
            }
            (Phase::Unreachable(Trouble { since, .. }), None) => {
                Some(Transition::Restored { after: now.saturating_sub(since) })
            }
            (Phase::Unreachable(Trouble { since, .. }), Some(cause)) => {
                self.phase = Phase::Unreachable(Trouble { since, cause });
                None
            }
        }
    }

    /// Returns the reason why the API server does not serve, if it does not.
    ///
    /// Every user may probe, unless a default role of Kubernetes was removed. So a 403 means that the API server
    /// starts; if it lasts, the API server serves and the role is missing.
    fn failure(&mut self, probed: Probed, now: Duration) -> Option<String> {
        match probed {
            Probed::Serves => {
                self.forbidden_since = None;
                None
            }
            Probed::Fails(cause) => {
                self.forbidden_since = None;
                Some(cause)
            }
            Probed::Forbidden => {
                let since = *self.forbidden_since.get_or_insert(now);
                let is_starting = now.saturating_sub(since) < FORBIDDEN_AT_START;
                is_starting.then(|| "it forbids the probe, as one does that has not read its roles yet".to_owned())
            }
        }
    }

    pub(super) const fn is_monitored(&self) -> bool {
        !matches!(self.phase, Phase::Unmonitored)
    }

    pub(super) const fn reachability(&self) -> Reachability {
        match self.phase {
            Phase::Unmonitored | Phase::Reachable => Reachability::Reachable,
            Phase::Suspected(_) => Reachability::Suspected,
            Phase::Unreachable(_) => Reachability::Unreachable,
        }
    }

    /// For how long the connection has been in trouble, and why.
    pub(super) fn trouble(&self, now: Duration) -> Option<(Duration, String)> {
        match &self.phase {
            Phase::Suspected(trouble) | Phase::Unreachable(trouble) => {
                Some((now.saturating_sub(trouble.since), trouble.cause.clone()))
            }
            Phase::Unmonitored | Phase::Reachable => None,
        }
    }

    pub(super) const fn outages(&self) -> u64 {
        self.outages
    }

    pub(super) const fn confirmed_at(&self) -> Option<Duration> {
        self.confirmed_at
    }
}
