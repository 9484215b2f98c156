//! The rules of leader election: the next request, the leader, and the time until which it may write. Pure.
//!
//! ```text
//!                      free or expired: update                 renewed within renew_deadline
//!  candidate ──get──▶ ─────────────────────────▶ leader ──update with the last version──▶ leader
//!      ▲              held: wait, retry                     │ fails: get, then update
//!      └────────────────────────────────────────────────────┘ not renewed in time, or taken by another
//! ```
//!
//! # Guarantees
//! - A candidate takes a lease only if it is free, or if its record has not changed for the record's own duration by
//!   the candidate's own clock. Times of other machines are never compared.
//! - [`writes_until`](Elector::writes_until) lies before the earliest time at which another candidate can take the
//!   lease, for clocks whose rates differ by less than [`CLOCK_TOLERANCE`].
//! - Every write of the lease carries the version that it is based on, so that a late write cannot undo a later one.
//!
//! # Upstream
//! `client-go/tools/leaderelection`: the record, the order of requests and the periods are the same.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::ResourceVersion;
use tokio::time::Instant;

/// The fraction of a lease's duration by which a leader stops writing early: one part in this many. It covers clocks that
/// run at different rates.
pub(crate) const CLOCK_TOLERANCE: u32 = 20;

/// The factor of the jitter between two attempts to acquire a lease.
///
/// # Upstream
/// `JitterFactor` of `client-go/tools/leaderelection`.
const JITTER_FACTOR: f64 = 1.2;

/// The longest delay between the expiry of a lease and the attempt to take it. Candidates draw different ones.
const AFTER_EXPIRY: Duration = Duration::from_millis(500);

/// The holder of a lease and its times (client-go: `LeaderElectionRecord`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    /// The identity of the holder; empty if the lease is free.
    pub(crate) holder: String,
    /// Time for which the record is valid after its last change.
    pub(crate) duration: Duration,
    /// Time at which the holder acquired the lease.
    pub(crate) acquired_at: Timestamp,
    /// Time at which the holder last renewed the lease.
    pub(crate) renewed_at: Timestamp,
    /// Number of changes of the holder.
    pub(crate) transitions: i32,
}

/// A record and the resource version of its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) record: LeaseRecord,
    pub(crate) version: ResourceVersion,
}

/// The periods of leader election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Time that a candidate waits after the last change before it takes a lease.
    pub(crate) lease_duration: Duration,
    /// Time for which a leader tries to renew before it stops leading; less than `lease_duration`.
    pub(crate) renew_deadline: Duration,
    /// The time between two attempts; `renew_deadline` is more than 1.2 times as long.
    pub(crate) retry_period: Duration,
}

impl Timing {
    /// Returns the longest time for one request: half of the renew deadline, at least a second.
    #[must_use]
    pub(crate) fn request_timeout(self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// Time after a renewal for which writes may take effect.
    #[must_use]
    fn writes(self) -> Duration {
        self.lease_duration.saturating_sub(self.lease_duration / CLOCK_TOLERANCE)
    }

    /// The last part of that time, in which no write begins: after the renew deadline. A write that was sent before has
    /// arrived by then, or its connection is reset.
    #[must_use]
    pub(crate) fn reserve(self) -> Duration {
        self.writes().saturating_sub(self.renew_deadline)
    }
}

/// The next request to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Get,
    Create(LeaseRecord),
    /// Update the lease of this version.
    Update(Lease),
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseResponse {
    /// The lease, as it was read or written.
    Lease(Lease),
    /// The lease does not exist.
    NotFound,
    /// The request failed, or its response was lost.
    Failed,
}

/// The next step after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Send [`Elector::request`] at once: the attempt is not complete.
    Continue,
    /// Begin another attempt this long after the last request of this one was sent.
    After(Duration),
}

/// One participant in the election of a leader.
#[derive(Debug, Clone)]
pub(crate) struct Elector {
    identity: String,
    timing: Timing,
    /// The last known lease, and the time at which this process first saw its version.
    observed: Option<(Lease, Instant)>,
    /// Time at which the last successful write of the lease was sent, while this participant leads.
    renewed: Option<Instant>,
    stage: Stage,
}

/// The progress of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A leader writes with the last version; other participants read.
    Begin,
    /// The lease must be read before it is written.
    Read,
    /// The lease does not exist.
    Create,
    /// The lease was read, or a watch showed that it is free: it may be taken or renewed.
    Write,
}

impl Elector {
    /// A candidate that has seen nothing. `identity` is unique among all processes, ever.
    #[must_use]
    pub(crate) fn new(identity: impl Into<String>, timing: Timing) -> Self {
        Self { identity: identity.into(), timing, observed: None, renewed: None, stage: Stage::Begin }
    }

    /// The identity of the holder, as far as it is known; `None` before the first read and while the lease is free.
    #[must_use]
    pub(crate) fn holder(&self) -> Option<&str> {
        self.observed.as_ref().map(|(lease, _)| &*lease.record.holder).filter(|holder| !holder.is_empty())
    }

    /// Returns `true` if this participant leads at `now`.
    #[must_use]
    pub(crate) fn leads(&self, now: Instant) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// Until when this participant leads without another renewal.
    #[must_use]
    pub(crate) fn leads_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.timing.renew_deadline)
    }

    /// Until when a write may take effect: before another candidate can take the lease.
    ///
    /// Another candidate measures from the time at which it saw the last renewal, which is not before that was sent.
    #[must_use]
    pub(crate) fn writes_until(&self) -> Option<Instant> {
        Some(self.renewed? + self.timing.writes())
    }

    /// Returns the time at which the last successful renewal was sent, while this participant leads.
    #[must_use]
    pub(crate) fn renewed_at(&self) -> Option<Instant> {
        self.renewed
    }

    /// Returns `true` if the next update renews a lease that had to be read first, because the update with the last
    /// version failed.
    #[must_use]
    pub(crate) fn is_on_slow_path(&self) -> bool {
        let is_held = |lease: &Lease| lease.record.holder == self.identity;
        self.stage == Stage::Write && self.observed.as_ref().is_some_and(|(lease, _)| is_held(lease))
    }

    /// The next request of the current attempt. `wall` is written into the record.
    #[must_use]
    pub(crate) fn request(&self, now: Instant, wall: Timestamp) -> Request {
        match (self.stage, &self.observed) {
            (Stage::Begin, Some((lease, _))) if self.leads(now) => Request::Update(self.next_lease(lease, wall)),
            (Stage::Write, Some((lease, _))) => Request::Update(self.next_lease(lease, wall)),
            (Stage::Create, _) => Request::Create(self.record(wall, wall, 0)),
            (Stage::Begin | Stage::Read, _) | (Stage::Write, None) => Request::Get,
        }
    }

    /// Handles the response to `request`, which was sent at `sent`.
    pub(crate) fn answered(
        &mut self,
        request: &Request,
        sent: Instant,
        answer: LeaseResponse,
        now: Instant,
        rng: &mut fastrand::Rng,
    ) -> Next {
        match (request, answer) {
            (Request::Get, LeaseResponse::Lease(lease)) => {
                self.take(lease, now);
                if self.may_write(now) {
                    self.stage = Stage::Write;
                    return Next::Continue;
                }
                self.end_attempt(now, rng)
            }
            (Request::Get, LeaseResponse::NotFound) => {
                self.observed = None;
                self.stage = Stage::Create;
                Next::Continue
            }
            (Request::Create(_) | Request::Update(_), LeaseResponse::Lease(lease)) => {
                self.observed = Some((lease, now));
                self.renewed = Some(sent);
                self.stage = Stage::Begin;
                Next::After(self.timing.retry_period)
            }
            // The optimistic update failed: another client may have changed the lease.
            (Request::Update(_), LeaseResponse::Failed | LeaseResponse::NotFound) if self.stage == Stage::Begin => {
                self.stage = Stage::Read;
                Next::Continue
            }
            (
                Request::Get | Request::Create(_) | Request::Update(_),
                LeaseResponse::Failed | LeaseResponse::NotFound,
            ) => self.end_attempt(now, rng),
        }
    }

    /// Takes a lease from a watch; returns `true` if it is newer than the known lease, and free. Then an attempt begins
    /// at once with an update of that version, because it need not be read again.
    ///
    /// A watch may be behind: its lease is taken only if it is newer than the known lease.
    pub(crate) fn observe(&mut self, lease: Lease, now: Instant) -> bool {
        let is_known = |known: &Lease| known.version.is_at_least(&lease.version) == Some(true);
        if self.observed.as_ref().is_some_and(|(known, _)| is_known(known)) {
            return false;
        }
        let is_free = lease.record.holder.is_empty();
        self.take(lease, now);
        if is_free {
            self.stage = Stage::Write;
        }
        is_free
    }

    /// Takes a lease as the API server has it.
    fn take(&mut self, lease: Lease, now: Instant) {
        if lease.record.holder != self.identity {
            self.renewed = None;
        }
        if self.observed.as_ref().is_none_or(|(known, _)| known.version != lease.version) {
            self.observed = Some((lease, now));
            // Decisions about the version before do not hold for this version.
            self.stage = Stage::Begin;
        }
    }

    /// Stops leading at once, for example when the renew deadline has passed.
    pub(crate) fn step_down(&mut self) {
        self.renewed = None;
        self.stage = Stage::Begin;
    }

    /// The update that frees the lease, if this participant holds it.
    #[must_use]
    pub(crate) fn release(&self, wall: Timestamp) -> Option<Lease> {
        let (lease, _) = self.observed.as_ref()?;
        self.freed(lease, wall)
    }

    /// The update that frees a lease, if this participant holds it.
    #[must_use]
    pub(crate) fn freed(&self, lease: &Lease, wall: Timestamp) -> Option<Lease> {
        let record = LeaseRecord {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired_at: wall,
            renewed_at: wall,
            transitions: lease.record.transitions,
        };
        (lease.record.holder == self.identity).then(|| Lease { record, version: lease.version.clone() })
    }

    /// Returns `true` if the observed lease is this participant's, free, or expired.
    fn may_write(&self, now: Instant) -> bool {
        self.observed.as_ref().is_none_or(|(lease, since)| {
            let holder = &lease.record.holder;
            holder.is_empty() || *holder == self.identity || now >= *since + lease.record.duration
        })
    }

    fn next_lease(&self, lease: &Lease, wall: Timestamp) -> Lease {
        let Lease { record, version } = lease;
        let record = if record.holder == self.identity {
            self.record(record.acquired_at, wall, record.transitions)
        } else {
            self.record(wall, wall, record.transitions.saturating_add(1))
        };
        Lease { record, version: version.clone() }
    }

    fn record(&self, acquired_at: Timestamp, renewed_at: Timestamp, transitions: i32) -> LeaseRecord {
        let duration = self.timing.lease_duration;
        LeaseRecord { holder: self.identity.clone(), duration, acquired_at, renewed_at, transitions }
    }

    fn end_attempt(&mut self, now: Instant, rng: &mut fastrand::Rng) -> Next {
        self.stage = Stage::Begin;
        let period = self.timing.retry_period;
        if self.renewed.is_some() {
            // A leader must not lose time.
            return Next::After(period);
        }
        let delay = period.mul_f64(1.0 + rng.f64() * JITTER_FACTOR);
        // A lease that expires in between is taken then, not at the next regular attempt.
        let expires = self.observed.as_ref().map(|(lease, since)| *since + lease.record.duration);
        let until = expires.map(|expires| expires.saturating_duration_since(now)).filter(|until| !until.is_zero());
        let after_expiry = until.map(|until| until + AFTER_EXPIRY.mul_f64(rng.f64()));
        Next::After(after_expiry.map_or(delay, |after_expiry| after_expiry.min(delay)))
    }
}
