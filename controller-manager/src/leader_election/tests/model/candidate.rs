//! One candidate of the model, and its steps. Each depends on the candidate and on little of the lease only.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::ResourceVersion;
use kcm_framework::client::Mark;

use crate::leader_election::elector::{
    Elector, Lease, LeaseRecord, LeaseResponse, Next, Observed, Request, Stage, Timing,
};

pub(super) const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(3),
    renew_deadline: Duration::from_millis(2850),
    retry_period: Duration::from_secs(1),
};

/// The true time of one step, in milliseconds. Two steps are the time for which a leader writes, so two candidates meet at
/// its end if the rates of their clocks differ by more than
/// [`CLOCK_TOLERANCE`](super::super::super::elector::CLOCK_TOLERANCE).
const STEP: u64 = 1425;

/// The time of all clocks, always: when time passes, all times that are known move back.
const NOW: Mark = Mark::after(Duration::from_hours(1));

/// A time that is past every period.
const OLD: Mark = Mark::after(Duration::from_mins(59));

pub(super) const NAMES: [&str; 2] = ["a", "b"];

/// The number of the version of the lease in every state. Candidates know few older versions.
const CURRENT: usize = 5;

/// A mistake that is planted in the model, to show that the search finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A lease that does not exist is created at once.
    CreatesAtOnce,
    /// The wait for the creation of a deleted lease counts from the last version that was seen.
    WaitsFromTheLastVersion,
    /// The clock of the first candidate stands still now and then.
    ClockStandsStill,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    elector: Elector,
    waits: Option<Wait>,
}

/// A request whose response a candidate waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wait {
    /// A read, with its response, and the time at which it was sent. It need not be under way: it changes nothing, so it
    /// is sent when it reaches the API server.
    Read(LeaseResponse, Mark),
    /// The kind of a write, the time at which it was sent, and its response if it has taken effect.
    Write(Request, Mark, Option<Lease>),
}

/// The message that a candidate waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Nothing,
    /// A read, whose response is under way.
    Read,
    /// A write, whose response is not under way.
    Write,
    /// The response to a write that has taken effect.
    ResponseToWrite,
}

/// The properties of a candidate on which the steps depend that are possible.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own, and all combinations occur")]
pub(super) struct Properties {
    pub(super) waits_for: WaitsFor,
    pub(super) may_write: bool,
    pub(super) leads: bool,
    /// `true` if it is the holder of the lease, as far as it knows.
    pub(super) is_holder: bool,
    /// `true` if it has seen a lease, and not just before its creation that there is none. Other deletions are named in
    /// `elector.rs`.
    pub(super) expects_a_lease: bool,
}

impl Candidate {
    pub(super) fn new(number: usize) -> Self {
        Self { elector: Elector::new(NAMES[number], TIMING), waits: None }
    }

    /// Its place in [`NAMES`].
    pub(super) fn number(&self) -> usize {
        usize::from(self.elector.identity == NAMES[1])
    }

    pub(super) fn properties(&self) -> Properties {
        let creates = matches!(self.elector.stage, Stage::Create(_))
            || matches!(self.waits, Some(Wait::Read(LeaseResponse::NotFound, _) | Wait::Write(Request::Create(_), ..)));
        Properties {
            waits_for: match &self.waits {
                None => WaitsFor::Nothing,
                Some(Wait::Read(..)) => WaitsFor::Read,
                Some(Wait::Write(_, _, None)) => WaitsFor::Write,
                Some(Wait::Write(_, _, Some(_))) => WaitsFor::ResponseToWrite,
            },
            may_write: self.may_write(),
            leads: self.elector.leads(NOW),
            is_holder: self.elector.holder() == Some(&*self.elector.identity),
            expects_a_lease: self.elector.last_lease().is_some() && !creates,
        }
    }

    fn may_write(&self) -> bool {
        self.elector.writes_until().is_some_and(|until| NOW < until)
    }

    /// Lets time pass for the clock of this candidate, of that rate in thousandths.
    pub(super) fn step(&mut self, rate: u64) {
        let by = Duration::from_micros(STEP * rate);
        let age = |time: &mut Mark| {
            if *time > OLD {
                *time = Mark::after(time.since_start().saturating_sub(by));
            }
        };
        let Elector { observed, renewed, stage, .. } = &mut self.elector;
        match observed {
            Observed::Nothing => {}
            Observed::Lease(_, since) => age(since),
            Observed::Deleted { since, read, .. } => [since, read].into_iter().for_each(age),
        }
        if let Stage::Create(read) = stage {
            age(read);
        }
        renewed.iter_mut().for_each(age);
        if let Some(Wait::Read(_, sent) | Wait::Write(_, sent, _)) = &mut self.waits {
            age(sent);
        }
    }

    /// Sends the next request, and returns a write. A read of `lease` is answered at once, and its response is under way.
    pub(super) fn send(&mut self, lease: Option<&Lease>) -> Option<Request> {
        let request = self.elector.request(NOW, Timestamp::UNIX_EPOCH);
        match &request {
            Request::Get => {
                let response = lease.cloned().map_or(LeaseResponse::NotFound, LeaseResponse::Lease);
                self.waits = Some(Wait::Read(response, NOW));
                None
            }
            Request::Create(_) | Request::Update(_) => {
                self.waits = Some(Wait::Write(kind_of(&request), NOW, None));
                Some(request)
            }
        }
    }

    /// Hands the response that the candidate waits for to its elector. A write without a response has failed. Returns
    /// `true` if the attempt goes on.
    pub(super) fn receive(&mut self, mistake: Option<Mistake>) -> bool {
        let (request, sent, response) = match self.waits.take() {
            None => return false,
            Some(Wait::Read(response, sent)) => {
                self.mistake_a_read(mistake, &response);
                (Request::Get, sent, response)
            }
            Some(Wait::Write(request, sent, Some(lease))) => (request, sent, LeaseResponse::Lease(lease)),
            Some(Wait::Write(request, sent, None)) => (request, sent, LeaseResponse::Failed),
        };
        let next = self.elector.answered(&request, sent, response, NOW, &mut fastrand::Rng::with_seed(0));
        match next {
            Next::Continue => true,
            Next::After(_) => false,
        }
    }

    fn mistake_a_read(&mut self, mistake: Option<Mistake>, response: &LeaseResponse) {
        match (mistake, response, self.elector.observed.clone()) {
            (Some(Mistake::CreatesAtOnce), LeaseResponse::NotFound, _) => self.elector.observed = Observed::Nothing,
            (Some(Mistake::WaitsFromTheLastVersion), LeaseResponse::NotFound, Observed::Lease(last, since)) => {
                self.elector.observed = Observed::Deleted { last, since, read: NOW };
            }
            (Some(_) | None, _, _) => {}
        }
    }

    /// Waits no longer for a response.
    pub(super) fn give_up(&mut self, mistake: Option<Mistake>) {
        match &mut self.waits {
            Some(Wait::Read(response, _)) => *response = LeaseResponse::Failed,
            Some(Wait::Write(_, _, response)) => *response = None,
            None => {}
        }
        self.receive(mistake);
    }

    /// Sees the lease in its watch.
    pub(super) fn observe(&mut self, lease: Lease) {
        self.elector.observe(lease, NOW);
    }

    /// Frees the lease and ends; another process takes its place. Returns the update that frees the lease.
    pub(super) fn release(&mut self) -> Option<Request> {
        let freed = self.elector.release(Timestamp::UNIX_EPOCH);
        *self = Self::new(self.number());
        freed.map(Request::Update)
    }

    /// Puts the response to its write under way.
    pub(super) fn responds(&mut self, written: &Lease) {
        if let Some(Wait::Write(_, _, response)) = &mut self.waits {
            *response = Some(written.clone());
        }
    }

    /// Makes candidates equal that behave alike.
    pub(super) fn normalize(&mut self, versions: &Versions, current: Option<&ResourceVersion>) {
        self.forget();
        self.rank(versions, current);
    }

    /// Forgets what makes no difference to a candidate any more.
    fn forget(&mut self) {
        let may_write = self.may_write();
        let Self { elector, waits } = self;
        let is_past = |time: Mark, period: Duration| time + period <= NOW;
        let forget = |time: &mut Mark, period| {
            if is_past(*time, period) {
                *time = OLD;
            }
        };
        if !may_write {
            elector.renewed = None;
        }
        match &mut elector.observed {
            Observed::Nothing => {}
            Observed::Lease(lease, since) => {
                let is_own = lease.record.holder == elector.identity && !elector.creation_is_open;
                let is_waited_for = !lease.record.holder.is_empty() && !is_own;
                let period = if is_waited_for { lease.record.duration } else { Duration::ZERO };
                forget(since, period);
            }
            Observed::Deleted { last, since, read } => {
                last.record.holder.clear();
                forget(since, TIMING.lease_duration);
                forget(read, TIMING.renew_deadline);
            }
        }
        if let Stage::Create(read) = &mut elector.stage {
            forget(read, TIMING.retry_period);
        }
        match waits {
            // It is seen from now on, however old it is.
            Some(Wait::Read(LeaseResponse::Lease(_), sent)) => *sent = NOW,
            // They fail.
            Some(Wait::Read(response, sent)) if is_late(*sent) => {
                *response = LeaseResponse::Failed;
                *sent = OLD;
            }
            Some(Wait::Write(_, sent, response)) if is_late(*sent) => {
                *response = None;
                *sent = OLD;
            }
            Some(Wait::Read(..) | Wait::Write(..)) | None => {}
        }
    }

    /// Sets the versions that the candidate knows to the current version, or to their ranks among older versions.
    fn rank(&mut self, versions: &Versions, current: Option<&ResourceVersion>) {
        let mut known = self.known_leases();
        known.sort_by(|one, other| one.version.compare(&other.version).expect("both are numbers"));
        let mut rank = 0;
        for at in 0..known.len() {
            let is_next = known.get(at + 1).is_some_and(|next| next.version != known[at].version);
            let is_current = Some(&known[at].version) == current;
            known[at].version = if is_current { versions.current() } else { versions.0[rank].clone() };
            known[at].record.transitions = 0;
            rank += usize::from(is_next);
        }
    }

    /// The leases that a candidate knows, or will know.
    fn known_leases(&mut self) -> Vec<&mut Lease> {
        let Self { elector, waits } = self;
        let observed = match &mut elector.observed {
            Observed::Nothing => None,
            Observed::Lease(lease, _) | Observed::Deleted { last: lease, .. } => Some(lease),
        };
        let response = match waits {
            Some(Wait::Read(LeaseResponse::Lease(lease), _)) => Some(lease),
            Some(Wait::Write(_, _, response)) => response.as_mut(),
            Some(Wait::Read(LeaseResponse::NotFound | LeaseResponse::Failed, _)) | None => None,
        };
        observed.into_iter().chain(response).collect()
    }
}

fn is_late(sent: Mark) -> bool {
    NOW.saturating_duration_since(sent) > TIMING.request_timeout()
}

/// The versions that leases have in any state.
#[derive(Debug)]
pub(super) struct Versions(Vec<ResourceVersion>);

impl Versions {
    pub(super) fn new() -> Self {
        Self((0..=CURRENT + 1).map(version).collect())
    }

    /// The version of the lease, if it exists.
    pub(super) fn current(&self) -> ResourceVersion {
        self.0[CURRENT].clone()
    }

    /// The version of the lease after one more write.
    pub(super) fn next(&self) -> ResourceVersion {
        self.0[CURRENT + 1].clone()
    }
}

/// Returns the version of that number, which may be zero.
fn version(number: usize) -> ResourceVersion {
    (number + 1).to_string().as_str().into()
}

/// Returns a request without what its response does not depend on.
fn kind_of(request: &Request) -> Request {
    let record = LeaseRecord {
        holder: String::new(),
        duration: Duration::ZERO,
        acquired_at: Timestamp::UNIX_EPOCH,
        renewed_at: Timestamp::UNIX_EPOCH,
        transitions: 0,
    };
    match request {
        Request::Get => Request::Get,
        Request::Create(_) => Request::Create(record),
        Request::Update(_) => Request::Update(Lease { record, version: version(0), object: () }),
    }
}
