//! An exhaustive model: two electors and one lease, in every order of steps, responses and losses.
//!
//! `simulation.rs` draws long runs with many candidates. This model visits every state that two candidates can reach with
//! few messages under way, so nothing depends on luck. A candidate may write until the time that the keeper hands to its
//! fence, whatever it does meanwhile. All times are ages, versions are ranks, and values that make no
//! difference are equal: states that differ only by how long the run has lasted are one state, so the search ends.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::ResourceVersion;
use kcm_framework::client::Mark;

use super::super::elector::{Elector, Lease, LeaseRecord, LeaseResponse, Next, Observed, Request, Stage, Timing};

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(3),
    renew_deadline: Duration::from_millis(2850),
    retry_period: Duration::from_secs(1),
};

/// The true time of one step, in milliseconds. Two steps are the time for which a leader writes, so two candidates meet at
/// its end if the rates of their clocks differ by more than
/// [`CLOCK_TOLERANCE`](super::super::elector::CLOCK_TOLERANCE).
const STEP: u64 = 1425;

/// The time of all clocks, always: when time passes, all times that are known move back.
const NOW: Mark = Mark::after(Duration::from_hours(1));

/// A time that is past every period.
const OLD: Mark = Mark::after(Duration::from_mins(59));

const NAMES: [&str; 2] = ["a", "b"];

/// The rates of the clocks of both candidates, in thousandths.
type Rates = [u64; 2];

/// A mistake that is planted in the model, to show that the search finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// A lease that does not exist is created at once.
    CreatesAtOnce,
    /// The wait for the creation of a deleted lease counts from the last version that was seen.
    WaitsFromTheLastVersion,
    /// The clock of the first candidate stands still now and then.
    ClockStandsStill,
}

/// Two candidates, the lease, and all that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    lease: Option<Lease>,
    candidates: [Candidate; 2],
    writes: Vec<UnderWay>,
    /// Number of deletions and releases that may still come.
    faults: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Candidate {
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

/// The number of the version of the lease in every state. Candidates know few older versions.
const CURRENT: usize = 5;

/// A write that has not reached the API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct UnderWay {
    candidate: usize,
    request: Request,
    is_waited_for: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Time passes for both clocks.
    Step,
    /// Time passes, but not for the clock of the first candidate.
    StepWithoutTheFirst,
    /// The candidate sends its next request.
    Sends(usize),
    /// The write reaches the API server.
    Lands(usize),
    /// The write is lost.
    IsLost(usize),
    /// The response reaches the candidate.
    Returns(usize),
    /// The candidate waits no longer for the response.
    GivesUp(usize),
    /// The watch shows the lease to the candidate.
    Shows(usize),
    /// The candidate frees the lease and ends; another process takes its place.
    Releases(usize),
    /// An operator deletes the lease.
    IsDeleted,
}

struct Model {
    /// The versions that leases have in any state.
    versions: Vec<ResourceVersion>,
    rates: Rates,
    /// Largest number of messages under way: responses and writes, including writes that their candidates have given up.
    messages: usize,
    /// Number of deletions and releases.
    faults: u8,
    mistake: Option<Mistake>,
}

/// Result of a search.
#[derive(Debug)]
struct Found {
    states: usize,
    /// The steps to the first state in which both candidates may write.
    two_writers: Option<Vec<Action>>,
    /// The steps to the first state from which nobody leads soon though every request is answered.
    nobody_leads: Option<Vec<Action>>,
}

impl Model {
    fn new(rates: Rates, messages: usize, faults: u8) -> Self {
        Self { versions: (0..=CURRENT).map(version).collect(), rates, messages, faults, mistake: None }
    }

    /// Visits every state, in the order of the number of steps to it.
    fn search(&self) -> Found {
        let candidates = [new_candidate(0), new_candidate(1)];
        let start = State { lease: None, candidates, writes: Vec::new(), faults: self.faults };
        let mut visited = HashSet::from([fingerprint(&start)]);
        // The number of the state before each state, and the action between the two.
        let mut origins = vec![(0, Action::Step)];
        let mut queue = VecDeque::from([(0, start)]);
        let mut settled = HashSet::new();
        let mut found = Found { states: 0, two_writers: None, nobody_leads: None };
        while let Some((number, state)) = queue.pop_front() {
            found.states += 1;
            if state.candidates.iter().filter(|it| may_write(&it.elector)).count() > 1 {
                found.two_writers = Some(steps_to(number, &origins));
                return found;
            }
            if !self.settles(&state, &mut settled) {
                found.nobody_leads = Some(steps_to(number, &origins));
                return found;
            }
            for action in self.actions(&state) {
                let mut next = state.clone();
                self.apply(&mut next, action);
                self.normalize(&mut next);
                if visited.insert(fingerprint(&next)) {
                    origins.push((number, action));
                    queue.push_back((origins.len() - 1, next));
                }
            }
        }
        found
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = vec![Action::Step];
        if self.mistake == Some(Mistake::ClockStandsStill) {
            actions.push(Action::StepWithoutTheFirst);
        }
        let responses = state.candidates.iter().filter(|it| match &it.waits {
            None | Some(Wait::Write(_, _, None)) => false,
            Some(Wait::Read(..) | Wait::Write(_, _, Some(_))) => true,
        });
        let messages = state.writes.len() + responses.count();
        for (number, candidate) in state.candidates.iter().enumerate() {
            match &candidate.waits {
                None if messages < self.messages => actions.push(Action::Sends(number)),
                None => {}
                // Who does not get the response of a read need not have sent it.
                Some(Wait::Read(..)) => actions.push(Action::Returns(number)),
                Some(Wait::Write(_, _, Some(_))) => {
                    actions.extend([Action::Returns(number), Action::GivesUp(number)]);
                }
                Some(Wait::Write(_, _, None)) => actions.push(Action::GivesUp(number)),
            }
            if state.lease.is_some() {
                actions.push(Action::Shows(number));
            }
            let is_idle = candidate.waits.is_none() && messages < self.messages;
            if state.faults > 0 && is_idle && candidate.elector.holder() == Some(NAMES[number]) {
                actions.push(Action::Releases(number));
            }
        }
        for (number, write) in state.writes.iter().enumerate() {
            actions.push(Action::Lands(number));
            if !write.is_waited_for {
                actions.push(Action::IsLost(number));
            }
        }
        if state.faults > 0 && state.lease.is_some() && state.candidates.iter().all(expects_a_lease) {
            actions.push(Action::IsDeleted);
        }
        actions
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Step => step(state, self.rates),
            Action::StepWithoutTheFirst => step(state, [0, self.rates[1]]),
            Action::Sends(number) => send(state, number),
            Action::Lands(number) => land(state, number),
            Action::IsLost(number) => drop(state.writes.remove(number)),
            Action::Returns(number) => {
                self.receive(state, number);
            }
            Action::GivesUp(number) => {
                for write in state.writes.iter_mut().filter(|it| it.candidate == number) {
                    write.is_waited_for = false;
                }
                match &mut state.candidates[number].waits {
                    Some(Wait::Read(response, _)) => *response = LeaseResponse::Failed,
                    Some(Wait::Write(_, _, response)) => *response = None,
                    None => {}
                }
                self.receive(state, number);
            }
            Action::Shows(number) => {
                if let Some(lease) = state.lease.clone() {
                    state.candidates[number].elector.observe(lease, NOW);
                }
            }
            Action::Releases(number) => {
                state.faults -= 1;
                if let Some(freed) = state.candidates[number].elector.release(Timestamp::UNIX_EPOCH) {
                    let request = Request::Update(freed);
                    state.writes.push(UnderWay { candidate: number, request, is_waited_for: false });
                }
                state.candidates[number] = new_candidate(number);
            }
            Action::IsDeleted => {
                state.faults -= 1;
                state.lease = None;
            }
        }
    }

    /// Hands the response that a candidate waits for to its elector. A write without a response has failed.
    fn receive(&self, state: &mut State, number: usize) -> Option<Next> {
        let Candidate { elector, waits } = &mut state.candidates[number];
        let (request, sent, response) = match waits.take()? {
            Wait::Read(mut response, sent) => {
                self.mistake_a_read(elector, &mut response);
                (Request::Get, sent, response)
            }
            Wait::Write(request, sent, Some(lease)) => (request, sent, LeaseResponse::Lease(lease)),
            Wait::Write(request, sent, None) => (request, sent, LeaseResponse::Failed),
        };
        Some(elector.answered(&request, sent, response, NOW, &mut fastrand::Rng::with_seed(0)))
    }

    fn mistake_a_read(&self, elector: &mut Elector, response: &mut LeaseResponse) {
        match (self.mistake, response, elector.observed.clone()) {
            (Some(Mistake::CreatesAtOnce), LeaseResponse::NotFound, _) => elector.observed = Observed::Nothing,
            (Some(Mistake::WaitsFromTheLastVersion), LeaseResponse::NotFound, Observed::Lease(last, since)) => {
                elector.observed = Observed::Deleted { last, since, read: NOW };
            }
            (Some(_) | None, _, _) => {}
        }
    }

    /// Returns `true` if a candidate leads soon, once all requests are answered. States that are known to settle are in
    /// `settled`.
    fn settles(&self, state: &State, settled: &mut HashSet<u64>) -> bool {
        // A wait for another holder, and one for a deletion.
        const SOON: usize = 12;
        let mut state = State { faults: 0, ..state.clone() };
        let mut passed = Vec::new();
        for _ in 0..SOON {
            let fingerprint = fingerprint(&state);
            let leads = state.candidates.iter().any(|it| it.elector.leads(NOW));
            if leads || settled.contains(&fingerprint) {
                settled.extend(passed);
                return true;
            }
            passed.push(fingerprint);
            while !state.writes.is_empty() {
                land(&mut state, 0);
            }
            for number in 0..state.candidates.len() {
                self.attempt(&mut state, number);
            }
            step(&mut state, self.rates);
            self.normalize(&mut state);
        }
        false
    }

    /// Completes one attempt of a candidate, with every request answered at once.
    fn attempt(&self, state: &mut State, number: usize) {
        loop {
            if state.candidates[number].waits.is_none() {
                send(state, number);
                while !state.writes.is_empty() {
                    land(state, 0);
                }
            }
            match self.receive(state, number) {
                Some(Next::Continue) => {}
                Some(Next::After(_)) | None => return,
            }
        }
    }

    /// Makes states equal that behave alike.
    fn normalize(&self, state: &mut State) {
        let State { lease, candidates, writes, faults: _ } = state;
        let current = lease.as_ref().map(|lease| lease.version.clone());
        // An update of another version changes nothing.
        writes.retain(|it| match &it.request {
            Request::Get => false,
            Request::Create(_) => true,
            Request::Update(base) => Some(&base.version) == current.as_ref(),
        });
        if writes.len() > 1 {
            writes.sort_by_cached_key(fingerprint);
        }
        for candidate in candidates {
            forget(candidate);
            self.rank(candidate, current.as_ref());
        }
        let of_writes = writes.iter_mut().filter_map(|it| base_of(&mut it.request));
        of_writes.chain(lease).for_each(|lease| self.set_version(lease, CURRENT));
    }

    /// Sets the versions that a candidate knows to the current version, or to their ranks among older versions.
    fn rank(&self, candidate: &mut Candidate, current: Option<&ResourceVersion>) {
        let mut known = leases_known_to(candidate);
        known.sort_by(|one, other| one.version.compare(&other.version).expect("both are numbers"));
        let mut rank = 0;
        for at in 0..known.len() {
            let is_next = known.get(at + 1).is_some_and(|next| next.version != known[at].version);
            let is_current = Some(&known[at].version) == current;
            self.set_version(known[at], if is_current { CURRENT } else { rank });
            rank += usize::from(is_next);
        }
    }

    fn set_version(&self, lease: &mut Lease, version: usize) {
        lease.version = self.versions[version].clone();
        lease.record.transitions = 0;
    }
}

fn new_candidate(number: usize) -> Candidate {
    Candidate { elector: Elector::new(NAMES[number], TIMING), waits: None }
}

/// Returns `true` if a candidate has seen a lease, and not just before its creation that there is none. Other deletions are
/// named in `elector.rs`.
fn expects_a_lease(candidate: &Candidate) -> bool {
    let creates = matches!(candidate.elector.stage, Stage::Create(_))
        || matches!(
            candidate.waits,
            Some(Wait::Read(LeaseResponse::NotFound, _) | Wait::Write(Request::Create(_), ..))
        );
    candidate.elector.last_lease().is_some() && !creates
}

fn may_write(elector: &Elector) -> bool {
    elector.writes_until().is_some_and(|until| NOW < until)
}

/// Forgets what makes no difference to a candidate any more.
fn forget(candidate: &mut Candidate) {
    let Candidate { elector, waits } = candidate;
    let is_past = |time: Mark, period: Duration| time + period <= NOW;
    let forget = |time: &mut Mark, period| {
        if is_past(*time, period) {
            *time = OLD;
        }
    };
    if !may_write(elector) {
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

fn is_late(sent: Mark) -> bool {
    NOW.saturating_duration_since(sent) > TIMING.request_timeout()
}

/// Lets time pass for the clocks of both candidates.
fn step(state: &mut State, rates: Rates) {
    for (candidate, rate) in state.candidates.iter_mut().zip(rates) {
        let by = Duration::from_micros(STEP * rate);
        let age = |time: &mut Mark| {
            if *time > OLD {
                *time = Mark::after(time.since_start().saturating_sub(by));
            }
        };
        let Elector { observed, renewed, stage, .. } = &mut candidate.elector;
        match observed {
            Observed::Nothing => {}
            Observed::Lease(_, since) => age(since),
            Observed::Deleted { since, read, .. } => [since, read].into_iter().for_each(age),
        }
        if let Stage::Create(read) = stage {
            age(read);
        }
        renewed.iter_mut().for_each(age);
        if let Some(Wait::Read(_, sent) | Wait::Write(_, sent, _)) = &mut candidate.waits {
            age(sent);
        }
    }
}

/// Has a candidate send its next request. A read is answered at once, and its response is under way.
fn send(state: &mut State, number: usize) {
    let State { lease, candidates, writes, .. } = state;
    let request = candidates[number].elector.request(NOW, Timestamp::UNIX_EPOCH);
    candidates[number].waits = match &request {
        Request::Get => {
            let response = lease.clone().map_or(LeaseResponse::NotFound, LeaseResponse::Lease);
            Some(Wait::Read(response, NOW))
        }
        Request::Create(_) | Request::Update(_) => {
            let kind = kind_of(&request);
            writes.push(UnderWay { candidate: number, request, is_waited_for: true });
            Some(Wait::Write(kind, NOW, None))
        }
    };
}

/// Changes the lease with a write that reaches the API server.
fn land(state: &mut State, number: usize) {
    let UnderWay { candidate, request, is_waited_for } = state.writes.remove(number);
    let written = match (request, &state.lease) {
        (Request::Create(record), None) => write(state, record),
        (Request::Update(update), Some(lease)) if update.version == lease.version => write(state, update.record),
        // The response is a failure, which a candidate that gives up sees too.
        (Request::Get | Request::Create(_) | Request::Update(_), _) => return,
    };
    if let (true, Some(Wait::Write(_, _, response))) = (is_waited_for, &mut state.candidates[candidate].waits) {
        *response = Some(written);
    }
}

fn write(state: &mut State, record: LeaseRecord) -> Lease {
    let lease = Lease { record, version: version(CURRENT + 1), object: () };
    state.lease = Some(lease.clone());
    lease
}

/// The leases that a candidate knows, or will know.
fn leases_known_to(candidate: &mut Candidate) -> Vec<&mut Lease> {
    let Candidate { elector, waits } = candidate;
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

/// The lease that an update is based on.
fn base_of(request: &mut Request) -> Option<&mut Lease> {
    match request {
        Request::Update(lease) => Some(lease),
        Request::Get | Request::Create(_) => None,
    }
}

/// Returns the version of that number, which may be zero.
fn version(number: usize) -> ResourceVersion {
    (number + 1).to_string().as_str().into()
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The actions from the start to the state of that number.
fn steps_to(mut number: usize, origins: &[(usize, Action)]) -> Vec<Action> {
    let mut steps = Vec::new();
    while number > 0 {
        let (before, action) = origins[number];
        steps.push(action);
        number = before;
    }
    steps.reverse();
    steps
}

/// Rates that differ by almost the tolerance.
const CLOCKS: Rates = [1000, 1052];

#[track_caller]
fn holds(model: &Model, at_least: usize) {
    let found = model.search();
    assert_eq!((&found.two_writers, &found.nobody_leads), (&None, &None));
    assert!(found.states > at_least, "{} states", found.states);
}

#[test]
fn in_every_state_of_two_candidates_one_may_write_at_most_and_one_leads_soon() {
    holds(&Model::new(CLOCKS, 2, 0), 200_000);
}

#[test]
fn a_deletion_or_a_release_lets_no_two_write() {
    holds(&Model::new(CLOCKS, 1, 1), 150_000);
}

#[test]
fn the_search_finds_mistakes_that_are_planted() {
    for mistake in [Mistake::CreatesAtOnce, Mistake::WaitsFromTheLastVersion, Mistake::ClockStandsStill] {
        let found = Model { mistake: Some(mistake), ..Model::new(CLOCKS, 1, 1) }.search();
        assert!(found.two_writers.is_some(), "{mistake:?}: {found:?}");
    }
}

#[test]
fn the_search_finds_clocks_whose_rates_differ_by_more_than_the_tolerance() {
    let found = Model::new([999, 1053], 1, 0).search();
    assert!(found.two_writers.is_some(), "{found:?}");
}
