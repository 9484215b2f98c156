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
//! - A candidate creates a lease that it has seen before only after it has read for a whole duration that the lease does
//!   not exist: the last holder, which need not know of the deletion, writes no more by then.
//! - A creation without a response may land late, after another process has led and somebody has deleted the lease. The
//!   record under the own name is waited out then, as the record of another process.
//! - A process leads only under its own name: the response to a write counts only if it names this process.
//! - [`writes_until`](Elector::writes_until) lies before the earliest time at which another candidate can take the
//!   lease, for clocks whose rates differ by less than [`CLOCK_TOLERANCE`].
//! - Every update of the lease carries the version that it is based on, so that a late write cannot undo a later one.
//!
//! # What remains
//! Two processes may write at the same time if an operator
//! - deletes a lease that is held, and a candidate that has never seen it creates it: for up to a duration;
//! - deletes a lease within [`Timing::lease_duration`] after a candidate has created it;
//! - empties the holder of a lease that is held, which counts as a release.
//!
//! # Upstream
//! `client-go/tools/leaderelection`: the record, the order of requests and the periods are the same.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::ResourceVersion;
use kcm_framework::client::Mark;

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

/// Time before the expiry of a lease from which a candidate expects to lead: a twentieth of the default duration.
pub(crate) const EXPECTS: Duration = Duration::from_millis(750);

/// The holder of a lease and its times (client-go: `LeaderElectionRecord`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Lease<O = ()> {
    pub(crate) record: LeaseRecord,
    pub(crate) version: ResourceVersion,
    /// The object of this version, which an update starts from.
    pub(crate) object: O,
}

/// The periods of leader election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Request<O = ()> {
    Get,
    Create(LeaseRecord),
    /// Update the object of this version to this record.
    Update(Lease<O>),
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LeaseResponse<O = ()> {
    /// The lease, as it was read or written.
    Lease(Lease<O>),
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Elector<O = ()> {
    pub(super) identity: String,
    pub(super) timing: Timing,
    pub(super) observed: Observed<O>,
    /// Time at which the last successful write of the lease was sent, while this participant leads.
    pub(super) renewed: Option<Mark>,
    pub(super) stage: Stage,
    /// `true` once a creation was sent whose response is not known: it may still land, after another process has led.
    pub(super) creation_is_open: bool,
}

/// The last known state of the lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Observed<O> {
    /// No lease has been seen yet.
    Nothing,
    /// The lease, and the time at which this process first saw its version.
    Lease(Lease<O>, Mark),
    /// The lease was deleted.
    Deleted {
        /// The lease as it was last seen. Another process may have held it later.
        last: Lease<O>,
        /// The first time at which it was read that the lease does not exist.
        since: Mark,
        /// The last such time.
        read: Mark,
    },
}

/// The progress of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// A leader writes with the last version; other participants read.
    Begin,
    /// The lease must be read before it is written.
    Read,
    /// It was read at this time that the lease does not exist: it may be created.
    Create(Mark),
    /// The lease was read, or a watch showed that it is free: it may be taken or renewed.
    Write,
}

impl<O: Clone> Elector<O> {
    /// A candidate that has seen nothing. `identity` is unique among all processes, ever.
    #[must_use]
    pub(crate) fn new(identity: impl Into<String>, timing: Timing) -> Self {
        let (observed, stage) = (Observed::Nothing, Stage::Begin);
        Self { identity: identity.into(), timing, observed, renewed: None, stage, creation_is_open: false }
    }

    /// The identity of the holder, as far as it is known; `None` before the first read and while the lease is free or
    /// does not exist.
    #[must_use]
    pub(crate) fn holder(&self) -> Option<&str> {
        match &self.observed {
            Observed::Lease(lease, _) => Some(&*lease.record.holder).filter(|holder| !holder.is_empty()),
            Observed::Nothing | Observed::Deleted { .. } => None,
        }
    }

    /// The lease as it was last seen, even if it has been deleted since.
    #[must_use]
    pub(crate) fn last_lease(&self) -> Option<&Lease<O>> {
        match &self.observed {
            Observed::Nothing => None,
            Observed::Lease(lease, _) | Observed::Deleted { last: lease, .. } => Some(lease),
        }
    }

    /// Returns `true` if the response to a request has an older version than the lease that was last seen: the storage of
    /// the API server has gone back.
    #[must_use]
    pub(crate) fn has_gone_back(&self, response: &LeaseResponse<O>) -> bool {
        let LeaseResponse::Lease(lease) = response else { return false };
        self.last_lease().is_some_and(|last| lease.version.is_at_least(&last.version) == Some(false))
    }

    /// Returns `true` if this participant leads at `now`.
    #[must_use]
    pub(crate) fn leads(&self, now: Mark) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// Until when this participant leads without another renewal.
    #[must_use]
    pub(crate) fn leads_until(&self) -> Option<Mark> {
        Some(self.renewed? + self.timing.renew_deadline)
    }

    /// Until when a write may take effect: before another candidate can take the lease.
    ///
    /// Another candidate measures from the time at which it saw the last renewal, which is not before that was sent. It
    /// measures the duration in the record, which need not be the duration that was sent.
    #[must_use]
    pub(crate) fn writes_until(&self) -> Option<Mark> {
        let recorded = self.last_lease().map_or(Duration::ZERO, |lease| lease.record.duration);
        let lease_duration = self.timing.lease_duration.min(recorded);
        Some(self.renewed? + Timing { lease_duration, ..self.timing }.writes())
    }

    /// Returns the time at which the last successful renewal was sent, while this participant leads.
    #[must_use]
    pub(crate) fn renewed_at(&self) -> Option<Mark> {
        self.renewed
    }

    /// Returns `true` if the next update renews a lease that had to be read first, because the update with the last
    /// version failed.
    #[must_use]
    pub(crate) fn is_on_slow_path(&self) -> bool {
        self.stage == Stage::Write && self.holder() == Some(&*self.identity)
    }

    /// Time from which this participant expects to lead, because another holder has not renewed the lease.
    #[must_use]
    pub(crate) fn expects_to_lead_from(&self) -> Option<Mark> {
        match &self.observed {
            Observed::Lease(lease, since) if self.holder().is_some_and(|holder| holder != self.identity) => {
                Some(*since + lease.record.duration.saturating_sub(EXPECTS))
            }
            Observed::Lease(..) | Observed::Nothing | Observed::Deleted { .. } => None,
        }
    }

    /// The next request of the current attempt. `wall` is written into the record.
    #[must_use]
    pub(crate) fn request(&self, now: Mark, wall: Timestamp) -> Request<O> {
        match (self.stage, &self.observed) {
            (Stage::Begin, Observed::Lease(lease, _)) if self.leads(now) => {
                Request::Update(self.next_lease(lease, wall))
            }
            (Stage::Write, Observed::Lease(lease, _)) => Request::Update(self.next_lease(lease, wall)),
            // Another candidate may have created the lease, and lost it, since a read that is old.
            (Stage::Create(read), _) if now < read + self.timing.retry_period => {
                Request::Create(self.record(wall, wall, 0))
            }
            (Stage::Begin | Stage::Read | Stage::Create(_), _)
            | (Stage::Write, Observed::Nothing | Observed::Deleted { .. }) => Request::Get,
        }
    }

    /// Handles the response to `request`, which was sent at `sent`. A response that is late counts as lost.
    pub(crate) fn answered(
        &mut self,
        request: &Request<O>,
        sent: Mark,
        answer: LeaseResponse<O>,
        now: Mark,
        rng: &mut fastrand::Rng,
    ) -> Next {
        // A process that was stopped in between may still receive it.
        let is_late = now.saturating_duration_since(sent) > self.timing.request_timeout();
        let answer = if is_late { LeaseResponse::Failed } else { answer };
        match (request, answer) {
            (Request::Get, LeaseResponse::Lease(lease)) => {
                let is_first = matches!(self.observed, Observed::Nothing) && lease.record.holder == self.identity;
                self.take(lease, now);
                if is_first || self.may_write(now) {
                    self.stage = Stage::Write;
                    return Next::Continue;
                }
                self.end_attempt(now, rng)
            }
            (Request::Get, LeaseResponse::NotFound) => {
                self.read_absence(now);
                // No candidate that has seen the lease of a leader takes it before the leader's term ends.
                if self.leads(now) || self.may_write(now) {
                    self.stage = Stage::Create(now);
                    return Next::Continue;
                }
                self.end_attempt(now, rng)
            }
            (Request::Create(_) | Request::Update(_), LeaseResponse::Lease(lease)) => {
                if lease.record.holder != self.identity {
                    // An admission webhook has changed the holder, or the lease was read after another had taken it.
                    self.take(lease, now);
                    return self.end_attempt(now, rng);
                }
                self.observed = Observed::Lease(lease, now);
                self.renewed = Some(sent);
                self.stage = Stage::Begin;
                Next::After(self.timing.retry_period)
            }
            // The optimistic update failed: another client may have changed the lease.
            (Request::Update(_), LeaseResponse::Failed | LeaseResponse::NotFound) if self.stage == Stage::Begin => {
                self.stage = Stage::Read;
                Next::Continue
            }
            (Request::Create(_), LeaseResponse::Failed | LeaseResponse::NotFound) => {
                self.creation_is_open = true;
                self.end_attempt(now, rng)
            }
            (Request::Get | Request::Update(_), LeaseResponse::Failed | LeaseResponse::NotFound) => {
                self.end_attempt(now, rng)
            }
        }
    }

    /// Takes a lease from a watch; returns `true` if it is newer than the known lease, and free. Then an attempt begins
    /// at once with an update of that version, because it need not be read again.
    ///
    /// A watch may be behind: its lease is taken only if it is newer than the known lease.
    pub(crate) fn observe(&mut self, lease: Lease<O>, now: Mark) -> bool {
        let is_known = |known: &Lease<O>| known.version.is_at_least(&lease.version) == Some(true);
        if self.last_lease().is_some_and(is_known) {
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
    fn take(&mut self, lease: Lease<O>, now: Mark) {
        if lease.record.holder != self.identity {
            self.renewed = None;
        }
        let is_known = matches!(&self.observed, Observed::Lease(known, _) if known.version == lease.version);
        if !is_known {
            self.observed = Observed::Lease(lease, now);
            // Decisions about the version before do not hold for this version.
            self.stage = Stage::Begin;
        }
    }

    /// Notes that the lease does not exist.
    ///
    /// Between two reads that are further apart than the renew deadline, another candidate may have created the lease
    /// and lost it. The wait begins again then.
    fn read_absence(&mut self, now: Mark) {
        let longest_gap = self.timing.renew_deadline;
        self.observed = match std::mem::replace(&mut self.observed, Observed::Nothing) {
            Observed::Nothing => Observed::Nothing,
            Observed::Lease(last, _) => Observed::Deleted { last, since: now, read: now },
            Observed::Deleted { last, since, read } => {
                let since = if now < read + longest_gap { since } else { now };
                Observed::Deleted { last, since, read: now }
            }
        };
    }

    /// Stops leading at once, for example when the renew deadline has passed.
    pub(crate) fn step_down(&mut self) {
        self.renewed = None;
        self.stage = Stage::Begin;
    }

    /// The update that frees the lease, if this participant holds it.
    #[must_use]
    pub(crate) fn release(&self, wall: Timestamp) -> Option<Lease<O>> {
        match &self.observed {
            Observed::Lease(lease, _) => self.freed(lease, wall),
            Observed::Nothing | Observed::Deleted { .. } => None,
        }
    }

    /// The update that frees a lease, if this participant holds it.
    #[must_use]
    pub(crate) fn freed(&self, lease: &Lease<O>, wall: Timestamp) -> Option<Lease<O>> {
        let record = LeaseRecord {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired_at: wall,
            renewed_at: wall,
            transitions: lease.record.transitions,
        };
        (lease.record.holder == self.identity).then(|| Lease { record, ..lease.clone() })
    }

    /// Returns `true` if the lease is this participant's, free, or expired, or may be created.
    fn may_write(&self, now: Mark) -> bool {
        match &self.observed {
            Observed::Nothing => true,
            Observed::Lease(lease, _) if lease.record.holder.is_empty() => true,
            Observed::Lease(lease, _)
                if lease.record.holder == self.identity && (!self.creation_is_open || self.leads(now)) =>
            {
                true
            }
            Observed::Lease(..) | Observed::Deleted { .. } => self.expires().is_none_or(|expires| now >= expires),
        }
    }

    /// The time from which no other process may write any more, unless the lease changes.
    fn expires(&self) -> Option<Mark> {
        match &self.observed {
            Observed::Nothing => None,
            Observed::Lease(lease, since) => Some(*since + lease.record.duration),
            // The last holder need not be the holder that was last seen.
            Observed::Deleted { last, since, .. } => {
                Some(*since + self.timing.lease_duration.max(last.record.duration))
            }
        }
    }

    fn next_lease(&self, lease: &Lease<O>, wall: Timestamp) -> Lease<O> {
        let record = &lease.record;
        let record = if record.holder == self.identity {
            self.record(record.acquired_at, wall, record.transitions)
        } else {
            self.record(wall, wall, record.transitions.saturating_add(1))
        };
        Lease { record, ..lease.clone() }
    }

    fn record(&self, acquired_at: Timestamp, renewed_at: Timestamp, transitions: i32) -> LeaseRecord {
        let duration = self.timing.lease_duration;
        LeaseRecord { holder: self.identity.clone(), duration, acquired_at, renewed_at, transitions }
    }

    fn end_attempt(&mut self, now: Mark, rng: &mut fastrand::Rng) -> Next {
        self.stage = Stage::Begin;
        let period = self.timing.retry_period;
        if self.renewed.is_some() {
            // A leader must not lose time.
            return Next::After(period);
        }
        let delay = period.mul_f64(1.0 + rng.f64() * JITTER_FACTOR);
        // A lease that expires in between is taken then, not at the next regular attempt.
        let until =
            self.expires().map(|expires| expires.saturating_duration_since(now)).filter(|until| !until.is_zero());
        let after_expiry = until.map(|until| until + AFTER_EXPIRY.mul_f64(rng.f64()));
        Next::After(after_expiry.map_or(delay, |after_expiry| after_expiry.min(delay)))
    }
}
