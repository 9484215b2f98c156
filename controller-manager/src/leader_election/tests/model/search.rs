//! The states of both candidates, and the search of all of them.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::candidate::{Mistake, WaitsFor};
use super::table::{Rates, Step, Steps, Taken};

/// Two candidates, the lease, and all that is under way.
#[derive(Debug, Clone, Copy)]
struct State {
    /// The number of the lease, if there is one.
    lease: Option<u8>,
    candidates: [u32; 2],
    writes: Writes,
    /// Number of deletions and releases that may still come.
    faults: u8,
}

/// A write that has not reached the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UnderWay {
    /// The number of the write.
    write: u8,
    /// The candidate that waits for the response.
    waits: Option<u8>,
}

/// The writes under way, in order.
#[derive(Debug, Clone, Copy, Default)]
struct Writes([Option<UnderWay>; MESSAGES]);

/// Largest number of messages of a model.
const MESSAGES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Time passes for both clocks.
    Step,
    /// Time passes, but not for the clock of the first candidate.
    StepWithoutTheFirst,
    /// The candidate sends its next request.
    Sends(u8),
    /// The write of that place reaches the API server.
    Lands(u8),
    /// The write of that place is lost.
    IsLost(u8),
    /// The response reaches the candidate.
    Returns(u8),
    /// The candidate waits no longer for the response.
    GivesUp(u8),
    /// The watch shows the lease to the candidate.
    Shows(u8),
    /// The candidate frees the lease and ends; another process takes its place.
    Releases(u8),
    /// An operator deletes the lease.
    IsDeleted,
}

pub(super) struct Model {
    rates: Rates,
    /// Largest number of messages under way: responses and writes, including writes that their candidates have given up.
    messages: usize,
    /// Number of deletions and releases.
    faults: u8,
    mistake: Option<Mistake>,
}

/// Result of a search.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) states: usize,
    /// The steps to the first state in which both candidates may write.
    pub(super) two_writers: Option<Vec<Action>>,
    /// The steps to the first state from which nobody leads soon though every request is answered.
    pub(super) nobody_leads: Option<Vec<Action>>,
}

impl Model {
    pub(super) fn new(rates: Rates, messages: usize, faults: u8) -> Self {
        assert!(messages <= MESSAGES, "a state has no place for {messages} messages");
        Self { rates, messages, faults, mistake: None }
    }

    pub(super) fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// Visits every state, in the order of the number of steps to it.
    pub(super) fn search(&self) -> Found {
        let mut steps = Steps::new(self.rates, self.mistake);
        let candidates = [0, 1].map(|number| steps.new_candidate(number));
        let start = State { lease: None, candidates, writes: Writes::default(), faults: self.faults };
        let mut run = Run { steps, settled: Numbers::default() };
        let mut visited = Numbers::from_iter([start.pack()]);
        // Each state, the place of the state before it, and the action between the two.
        let mut states = vec![(start.pack(), 0_u32, Action::Step)];
        let mut actions = Vec::new();
        let mut at = 0;
        let mut found = Found { states: 0, two_writers: None, nobody_leads: None };
        while at < states.len() {
            let state = State::unpack(states[at].0);
            found.states += 1;
            if state.candidates.iter().all(|it| run.steps.properties(*it).may_write) {
                found.two_writers = Some(steps_to(at, &states));
                return found;
            }
            if !run.settles(state) {
                found.nobody_leads = Some(steps_to(at, &states));
                return found;
            }
            self.actions(&run.steps, &state, &mut actions);
            let place = u32::try_from(at).expect("there are fewer states");
            for action in actions.drain(..) {
                let mut next = state;
                run.apply(&mut next, action);
                let packed = next.pack();
                if visited.insert(packed) {
                    states.push((packed, place, action));
                }
            }
            at += 1;
        }
        found
    }

    /// Adds the actions that are possible in a state.
    fn actions(&self, steps: &Steps, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Step);
        if self.mistake == Some(Mistake::ClockStandsStill) {
            actions.push(Action::StepWithoutTheFirst);
        }
        let properties = state.candidates.map(|candidate| steps.properties(candidate));
        let responses = properties.iter().filter(|it| match it.waits_for {
            WaitsFor::Nothing | WaitsFor::Write => false,
            WaitsFor::Read | WaitsFor::ResponseToWrite => true,
        });
        let messages = state.writes.len() + responses.count();
        for (number, properties) in (0..).zip(properties) {
            let is_idle = properties.waits_for == WaitsFor::Nothing && messages < self.messages;
            match properties.waits_for {
                WaitsFor::Nothing if is_idle => actions.push(Action::Sends(number)),
                WaitsFor::Nothing => {}
                // Who does not get the response of a read need not have sent it.
                WaitsFor::Read => actions.push(Action::Returns(number)),
                WaitsFor::ResponseToWrite => actions.extend([Action::Returns(number), Action::GivesUp(number)]),
                WaitsFor::Write => actions.push(Action::GivesUp(number)),
            }
            if state.lease.is_some() {
                actions.push(Action::Shows(number));
            }
            if state.faults > 0 && is_idle && properties.is_holder {
                actions.push(Action::Releases(number));
            }
        }
        for place in 0..state.writes.len() {
            let number = u8::try_from(place).expect("there are few");
            actions.push(Action::Lands(number));
            if state.writes.0[place].is_some_and(|write| write.waits.is_none()) {
                actions.push(Action::IsLost(number));
            }
        }
        if state.faults > 0 && state.lease.is_some() && properties.iter().all(|it| it.expects_a_lease) {
            actions.push(Action::IsDeleted);
        }
    }
}

/// The values that a search computes once.
struct Run {
    steps: Steps,
    /// The states from which a candidate leads soon.
    settled: Numbers,
}

impl Run {
    fn apply(&mut self, state: &mut State, action: Action) {
        match action {
            Action::Step => self.step(state),
            Action::StepWithoutTheFirst => {
                self.take(state, 1, Step::Time);
            }
            Action::Sends(number) => self.send(state, number),
            Action::Lands(place) => self.land(state, usize::from(place)),
            Action::IsLost(place) => {
                state.writes.remove(usize::from(place));
            }
            Action::Returns(number) => {
                self.take(state, number, Step::Receives);
            }
            Action::GivesUp(number) => {
                state.writes.give_up(number);
                self.take(state, number, Step::GivesUp);
            }
            Action::Shows(number) => {
                if let Some(lease) = state.lease {
                    self.take(state, number, Step::Shows(lease));
                }
            }
            Action::Releases(number) => {
                state.faults -= 1;
                if let Some(write) = self.take(state, number, Step::Releases).write {
                    state.writes.add(UnderWay { write, waits: None });
                }
            }
            Action::IsDeleted => {
                state.faults -= 1;
                self.change(state, None, None);
            }
        }
    }

    /// Takes a step of one candidate.
    fn take(&mut self, state: &mut State, number: u8, step: Step) -> Taken {
        let candidate = &mut state.candidates[usize::from(number)];
        let taken = self.steps.take(*candidate, step);
        *candidate = taken.candidate;
        taken
    }

    /// Lets time pass for the clocks of both candidates.
    fn step(&mut self, state: &mut State) {
        for number in [0, 1] {
            self.take(state, number, Step::Time);
        }
    }

    fn send(&mut self, state: &mut State, number: u8) {
        if let Some(write) = self.take(state, number, Step::Sends(state.lease)).write {
            state.writes.add(UnderWay { write, waits: Some(number) });
        }
    }

    /// Changes the lease with a write that reaches the API server.
    fn land(&mut self, state: &mut State, place: usize) {
        let Some(UnderWay { write, waits }) = state.writes.remove(place) else { return };
        let write = self.steps.write(write);
        // Otherwise the response is a failure, which a candidate that gives up sees too.
        if write.is_creation == state.lease.is_none() {
            self.change(state, Some(write.lease), waits);
        }
    }

    /// Changes or deletes the lease by a write whose response a candidate may wait for.
    fn change(&mut self, state: &mut State, lease: Option<u8>, waits: Option<u8>) {
        state.lease = lease;
        for number in [0, 1] {
            match lease {
                Some(lease) if waits == Some(number) => self.take(state, number, Step::Written(lease)),
                Some(_) | None => self.take(state, number, Step::Outdated),
            };
        }
        // An update of another version changes nothing.
        for place in (0..state.writes.len()).rev() {
            if state.writes.0[place].is_some_and(|it| !self.steps.write(it.write).is_creation) {
                state.writes.remove(place);
            }
        }
    }

    /// Returns `true` if a candidate leads soon, once all requests are answered.
    fn settles(&mut self, mut state: State) -> bool {
        // A wait for another holder, and one for a deletion.
        const SOON: usize = 12;
        state.faults = 0;
        let mut passed = [0; SOON];
        for round in 0..SOON {
            let packed = state.pack();
            let leads = state.candidates.iter().any(|it| self.steps.properties(*it).leads);
            if leads || self.settled.contains(&packed) {
                self.settled.extend(passed.iter().take(round));
                return true;
            }
            passed[round] = packed;
            self.land_all(&mut state);
            for number in [0, 1] {
                self.attempt(&mut state, number);
            }
            self.step(&mut state);
        }
        false
    }

    fn land_all(&mut self, state: &mut State) {
        while state.writes.len() > 0 {
            self.land(state, 0);
        }
    }

    /// Completes one attempt of a candidate, with every request answered at once.
    fn attempt(&mut self, state: &mut State, number: u8) {
        loop {
            let candidate = state.candidates[usize::from(number)];
            if self.steps.properties(candidate).waits_for == WaitsFor::Nothing {
                self.send(state, number);
                self.land_all(state);
            }
            if !self.take(state, number, Step::Receives).goes_on {
                return;
            }
        }
    }
}

impl Writes {
    fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }

    fn add(&mut self, write: UnderWay) {
        let place = self.len();
        self.0[place] = Some(write);
        self.0[..=place].sort_unstable();
    }

    fn remove(&mut self, place: usize) -> Option<UnderWay> {
        let removed = self.0[place].take();
        self.0[place..].rotate_left(1);
        removed
    }

    /// Nobody waits for the writes of a candidate any more.
    fn give_up(&mut self, number: u8) {
        let given_up =
            |write: UnderWay| if write.waits == Some(number) { UnderWay { waits: None, ..write } } else { write };
        let count = self.len();
        self.0 = self.0.map(|write| write.map(given_up));
        self.0[..count].sort_unstable();
    }
}

impl State {
    /// Bits of the number of a candidate.
    const CANDIDATE: u32 = 20;
    /// Bits of a write: three for who waits, and four for its number.
    const WRITE: u32 = 6;

    /// Returns the number of the state.
    fn pack(&self) -> u64 {
        let mut packed = (self.lease.map_or(0, |lease| u64::from(lease) + 1) << 2) | u64::from(self.faults);
        for candidate in self.candidates {
            debug_assert!(candidate >> Self::CANDIDATE == 0, "there are more candidates than a state has place for");
            packed = (packed << Self::CANDIDATE) | u64::from(candidate);
        }
        for write in self.writes.0 {
            let number =
                write.map_or(0, |UnderWay { write, waits }| 1 + u64::from(write) * 3 + waits.map_or(2, u64::from));
            debug_assert!(number >> Self::WRITE == 0, "there are more writes than a state has place for");
            packed = (packed << Self::WRITE) | number;
        }
        packed
    }

    /// Returns the state of a number.
    fn unpack(mut packed: u64) -> Self {
        let mut take = |bits: u32| {
            let value = packed & ((1 << bits) - 1);
            packed >>= bits;
            u32::try_from(value).expect("it has few bits")
        };
        let byte = |value: u32| u8::try_from(value).expect("it has few bits");
        let mut writes = [None; MESSAGES];
        for write in writes.iter_mut().rev() {
            *write = take(Self::WRITE).checked_sub(1).map(|number| {
                let waits = byte(number % 3);
                UnderWay { write: byte(number / 3), waits: (waits < 2).then_some(waits) }
            });
        }
        let mut candidates = [0; 2];
        for candidate in candidates.iter_mut().rev() {
            *candidate = take(Self::CANDIDATE);
        }
        let faults = byte(take(2));
        let lease = take(4).checked_sub(1).map(byte);
        Self { lease, candidates, writes: Writes(writes), faults }
    }
}

/// Numbers of states that a search has found.
type Numbers = HashSet<u64, BuildHasherDefault<Spread>>;

/// Spreads numbers over a table. The default hasher takes most of the time of a search.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The actions from the start to the state of that place.
fn steps_to(mut place: usize, states: &[(u64, u32, Action)]) -> Vec<Action> {
    let mut steps = Vec::new();
    while place > 0 {
        let (_, before, action) = states[place];
        steps.push(action);
        place = usize::try_from(before).expect("it fits");
    }
    steps.reverse();
    steps
}
