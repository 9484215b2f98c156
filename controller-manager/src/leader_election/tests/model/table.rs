//! Numbers for candidates, leases and writes, and a table of the steps of candidates: each step of a candidate is computed
//! once, not once for each state in which it is possible.

use std::collections::HashMap;

use kcm_framework::api::ResourceVersion;

use super::candidate::{Candidate, Mistake, Properties, Versions};
use crate::leader_election::elector::{Lease, LeaseRecord, Request};

/// The rates of the clocks of both candidates, in thousandths.
pub(super) type Rates = [u64; 2];

/// A step of one candidate. Leases are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Time,
    /// The next request is sent. A read sees this lease.
    Sends(Option<u8>),
    /// The response is received.
    Receives,
    /// The candidate waits no longer for a response.
    GivesUp,
    /// The watch shows the lease.
    Shows(u8),
    /// Another process has written the lease, or deleted it.
    Outdated,
    /// A write that the candidate waits for has taken effect: the lease is this.
    Written(u8),
    /// The candidate frees the lease and ends; another process takes its place.
    Releases,
}

impl Step {
    /// Largest number of leases.
    const LEASES: usize = 8;
    /// Number of steps of the table.
    const COUNT: usize = 6 + 3 * Self::LEASES;

    fn place(self) -> usize {
        match self {
            Self::Time => 0,
            Self::Receives => 1,
            Self::GivesUp => 2,
            Self::Outdated => 3,
            Self::Releases => 4,
            Self::Sends(None) => 5,
            Self::Sends(Some(lease)) => 6 + usize::from(lease),
            Self::Shows(lease) => 6 + Self::LEASES + usize::from(lease),
            Self::Written(lease) => 6 + 2 * Self::LEASES + usize::from(lease),
        }
    }
}

/// The result of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// The number of the candidate after the step.
    pub(super) candidate: u32,
    /// The number of the write that was sent. `None` also for a write of another version than the current version, which
    /// changes nothing.
    pub(super) write: Option<u8>,
    /// `true` if the attempt goes on with another request.
    pub(super) goes_on: bool,
}

/// A write, whose number is its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Write {
    /// `true` for a creation, which takes effect if there is no lease. An update takes effect if there is a lease.
    pub(super) is_creation: bool,
    /// The number of the lease that it writes.
    pub(super) lease: u8,
}

/// All candidates, leases and writes that a search has met.
pub(super) struct Steps {
    rates: Rates,
    mistake: Option<Mistake>,
    versions: Versions,
    numbers: HashMap<Candidate, u32>,
    candidates: Vec<(Candidate, Properties)>,
    leases: Vec<Lease>,
    writes: Vec<Write>,
    taken: Vec<[Option<Taken>; Step::COUNT]>,
}

impl Steps {
    pub(super) fn new(rates: Rates, mistake: Option<Mistake>) -> Self {
        Self {
            rates,
            mistake,
            versions: Versions::new(),
            numbers: HashMap::new(),
            candidates: Vec::new(),
            leases: Vec::new(),
            writes: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// The number of a new candidate with that place.
    pub(super) fn new_candidate(&mut self, number: usize) -> u32 {
        self.number_of(Candidate::new(number))
    }

    pub(super) fn properties(&self, candidate: u32) -> &Properties {
        &self.candidates[index(candidate)].1
    }

    pub(super) fn write(&self, number: u8) -> Write {
        self.writes[usize::from(number)]
    }

    pub(super) fn take(&mut self, candidate: u32, step: Step) -> Taken {
        let place = step.place();
        if let Some(taken) = self.taken[index(candidate)][place] {
            return taken;
        }
        let taken = self.compute(candidate, step);
        self.taken[index(candidate)][place] = Some(taken);
        taken
    }

    fn compute(&mut self, number: u32, step: Step) -> Taken {
        let mut candidate = self.candidates[index(number)].0.clone();
        let (mut request, mut goes_on) = (None, false);
        let mut current = Some(self.versions.current());
        match step {
            Step::Time => candidate.step(self.rates[candidate.number()]),
            Step::Sends(lease) => request = candidate.send(lease.map(|lease| &self.leases[usize::from(lease)])),
            Step::Receives => goes_on = candidate.receive(self.mistake),
            Step::GivesUp => candidate.give_up(self.mistake),
            Step::Shows(lease) => candidate.observe(self.leases[usize::from(lease)].clone()),
            Step::Outdated => current = None,
            Step::Written(lease) => {
                let version = self.versions.next();
                candidate.responds(&Lease { version: version.clone(), ..self.leases[usize::from(lease)].clone() });
                current = Some(version);
            }
            Step::Releases => request = candidate.release(),
        }
        let write = request.and_then(|request| self.write_of(request));
        Taken { candidate: self.normalized(candidate, current.as_ref()), write, goes_on }
    }

    fn normalized(&mut self, mut candidate: Candidate, current: Option<&ResourceVersion>) -> u32 {
        candidate.normalize(&self.versions, current);
        self.number_of(candidate)
    }

    fn number_of(&mut self, candidate: Candidate) -> u32 {
        if let Some(number) = self.numbers.get(&candidate) {
            return *number;
        }
        let number = u32::try_from(self.candidates.len()).expect("there are few candidates");
        self.numbers.insert(candidate.clone(), number);
        let properties = candidate.properties();
        self.candidates.push((candidate, properties));
        self.taken.push([None; Step::COUNT]);
        number
    }

    fn write_of(&mut self, request: Request) -> Option<u8> {
        let (is_creation, record) = match request {
            Request::Get => return None,
            Request::Create(record) => (true, record),
            Request::Update(base) if base.version != self.versions.current() => return None,
            Request::Update(base) => (false, base.record),
        };
        let lease = self.lease_of(record);
        Some(place_of(&mut self.writes, Write { is_creation, lease }))
    }

    fn lease_of(&mut self, record: LeaseRecord) -> u8 {
        let record = LeaseRecord { transitions: 0, ..record };
        let number = place_of(&mut self.leases, Lease { record, version: self.versions.current(), object: () });
        assert!(usize::from(number) < Step::LEASES, "{:?}", self.leases);
        number
    }
}

fn index(candidate: u32) -> usize {
    usize::try_from(candidate).expect("it fits")
}

/// The place of `value`, which is added if it is missing.
fn place_of<T: PartialEq>(all: &mut Vec<T>, value: T) -> u8 {
    let place = all.iter().position(|known| *known == value).unwrap_or_else(|| {
        all.push(value);
        all.len() - 1
    });
    u8::try_from(place).expect("there are few")
}
