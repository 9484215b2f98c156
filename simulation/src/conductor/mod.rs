//! The conductor: decides what happens next whenever everything waits. It runs in no runtime.
//!
//! The default order at such a point is the first of: deliver the oldest response, perform the oldest request, deliver
//! the waiting events of all caches, a step of the kubelets, the next action of the script, and the passing of time.

mod record;
mod traffic;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::Stop;
use kcm_framework::clock::Clock;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::{ManualClock, Sandbox};

use crate::deliver::{Cache, Received};
use crate::gate::Gate;
use crate::history::{Author, History, Objects, Seen};
use crate::holds::{Hold, Progress, release};
use crate::kubelets;
use crate::log::{Errors, Pulse};
use crate::process::{Process, Settled};
use crate::requests::{Answer, Deviation, Pending};
use crate::scenario::Scenario;
use crate::schedule::{Anchor, Place, Schedule, Until};
use crate::state::Digest;
use crate::violation::Violation;

/// Maximum number of steps of a run.
const STEPS: u32 = 20_000;
/// Time after the last fault and action within which the goal must be reached.
const PATIENCE: Duration = Duration::from_mins(20);
/// Time for which the goal must hold without a write.
const SETTLE_TIME: Duration = Duration::from_secs(30);

/// The outcome of a run.
#[derive(Debug)]
pub struct Run {
    /// The first violation, if there is one.
    pub violation: Option<Violation>,
    /// Every write that was accepted.
    pub history: History,
    /// The steps, one line each.
    pub trace: String,
    /// The anchors that the run has passed.
    pub anchors: BTreeMap<Anchor, Passed>,
    /// The step at which the last perturbation took effect. 0 without any.
    pub perturbed: u32,
    /// The perturbations that had no effect, by index: the anchor was not reached, or there was nothing to perturb.
    pub not_applied: Vec<usize>,
    /// The states of the run after each change, each once. Empty unless a search asks for them.
    pub states: BTreeSet<Digest>,
    /// Number of steps of the run.
    pub steps: u32,
}

/// The moment at which a run has passed an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Number of the step.
    pub step: u32,
    /// The event is a write that carries the resource version of its object, so that it may meet a conflict.
    pub is_guarded: bool,
}

/// Runs a scenario with the perturbations of a schedule.
///
/// # Panics
/// If the operating system refuses a runtime.
#[must_use]
pub fn run(scenario: &Scenario, schedule: &Schedule) -> Run {
    perform(scenario, schedule, Observe::Nothing)
}

/// The observations of a run that take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observe {
    Nothing,
    /// The digest of the state after each change.
    States,
}

/// As [`run`], with observations.
pub(crate) fn perform(scenario: &Scenario, schedule: &Schedule, observe: Observe) -> Run {
    let pulse = Pulse::default();
    let errors = Errors::capture(&pulse);
    let mut conductor = Conductor::new(scenario, schedule, pulse, observe);
    let violation = conductor.conduct().or_else(|| {
        let line = errors.first()?;
        Some(Violation::new("O5", "an error was logged").detail(line))
    });
    let broken = || scenario.invariants.iter().find_map(|holds| holds(&conductor.history).err());
    let violation = violation.or_else(broken);
    let not_applied = (0..schedule.len()).filter(|index| !conductor.applied.contains(index)).collect();
    let Conductor { history, trace, anchors, perturbed, states, steps, .. } = conductor;
    Run { violation, history, trace, anchors, perturbed, not_applied, states, steps }
}

/// The wall clock of processes: the time of the world.
#[derive(Debug, Clone)]
struct WorldClock {
    start: Timestamp,
    clock: ManualClock,
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.start.checked_add(self.clock.elapsed()).unwrap_or(Timestamp::MAX)
    }
}

/// A reconcile that has sent a request.
struct Reconcile {
    /// The key as its requests have it. Each reconcile has a text of its own, so that its address tells reconciles apart.
    key: Arc<str>,
    seen: Seen,
}

struct Conductor<'a> {
    scenario: &'a Scenario,
    schedule: &'a Schedule,
    sandbox: Sandbox,
    clock: ManualClock,
    /// The time of the world at which the process started.
    began: Duration,
    pulse: Pulse,
    process: Process,
    gate: Gate,
    number: u32,
    caches: Vec<Cache>,
    received: Received,
    /// The last reconcile of each loop and key.
    reconciles: BTreeMap<(String, String), Reconcile>,
    answers: VecDeque<Answer>,
    held: Vec<Pending>,
    counts: BTreeMap<Place, u32>,
    progress: Progress,
    script: usize,
    /// Times at which the periodic actions of the cluster are due.
    due: Vec<Duration>,
    history: History,
    observe: Observe,
    /// The objects that have changed since the start.
    changed: Objects,
    states: BTreeSet<Digest>,
    version: u64,
    trace: String,
    anchors: BTreeMap<Anchor, Passed>,
    applied: BTreeSet<usize>,
    perturbed: u32,
    steps: u32,
    /// Time of the last fault, action or write that is not at rest.
    last_fault: Duration,
}

impl<'a> Conductor<'a> {
    fn new(scenario: &'a Scenario, schedule: &'a Schedule, pulse: Pulse, observe: Observe) -> Self {
        let clock = ManualClock::default();
        let sandbox = scenario.sandbox.fork(clock.clone());
        let (_, objects) = DirectClient::new(&sandbox).snapshot();
        let parsed = objects.into_iter().map(|(resource, objects)| {
            (resource, objects.into_iter().map(|(key, object)| (key, object.value())).collect())
        });
        let history = History { start: parsed.collect(), ..History::default() };
        let (gate, number) = (Gate::default(), 1);
        let process = launch(scenario, &sandbox, &clock, &gate, number, &pulse);
        let version = sandbox.version();
        Self {
            scenario,
            schedule,
            began: clock.elapsed(),
            sandbox,
            clock,
            pulse,
            process,
            gate,
            number,
            caches: Vec::new(),
            received: Received::default(),
            reconciles: BTreeMap::new(),
            answers: VecDeque::new(),
            held: Vec::new(),
            counts: BTreeMap::new(),
            progress: Progress::default(),
            script: 0,
            due: scenario.ticks.iter().map(|(period, _)| *period).collect(),
            history,
            observe,
            changed: Objects::new(),
            states: BTreeSet::new(),
            version,
            trace: String::new(),
            anchors: BTreeMap::new(),
            applied: BTreeSet::new(),
            perturbed: 0,
            steps: 0,
            last_fault: Duration::ZERO,
        }
    }

    fn conduct(&mut self) -> Option<Violation> {
        let mut quiet_since: Option<(Duration, u32)> = None;
        let mut settled = self.process.settle();
        loop {
            if settled == Settled::Races {
                return Some(Violation::new("O1", "a loop reconciles without end at one time"));
            }
            if self.process.has_ended() {
                return Some(Violation::new("O5", "the manager ended"));
            }
            self.steps += 1;
            if self.steps > STEPS {
                return Some(Violation::new("O1", "the run has no end"));
            }
            self.pull();
            if self.step() {
                settled = self.process.settle();
                continue;
            }
            let now = self.clock.elapsed();
            let is_done = self.script == self.scenario.script.len() && (self.scenario.goal)(&self.sandbox);
            let is_held = self.is_holding();
            match quiet_since {
                Some((since, writes)) if is_done && !is_held => {
                    if self.progress.writes != writes && now > since {
                        return Some(Violation::new("O4", "a loop writes at rest"));
                    }
                    if now >= since + SETTLE_TIME {
                        return None;
                    }
                }
                Some(_) | None => quiet_since = (is_done && !is_held).then_some((now, self.progress.writes)),
            }
            if !is_done && now > self.last_fault + PATIENCE {
                return Some(Violation::new("O2", "the goal is not reached"));
            }
            // To the next timer of the process, or to the limit.
            let limit = now + if is_done { SETTLE_TIME } else { Duration::from_mins(1) };
            let limit = self.due.iter().copied().fold(limit, Duration::min);
            settled = self.process.wait(limit.saturating_sub(self.began));
            self.clock.advance_to(self.began + self.process.elapsed());
            self.progress.time = self.clock.elapsed();
        }
    }

    /// Does what comes next at this time. Returns `false` if nothing does.
    fn step(&mut self) -> bool {
        if self.deliver_response() || self.perform_request() || self.deliver_events() {
            return true;
        }
        if kubelets::step(&self.sandbox) {
            self.note("the kubelet acts");
            self.record_of(&Author::Cluster);
            return true;
        }
        if self.tick() {
            return true;
        }
        if let Some((when, action)) = self.scenario.script.get(self.script)
            && when(&self.sandbox)
        {
            action(&self.sandbox);
            self.script += 1;
            self.note("the user acts");
            self.record_of(&Author::User);
            self.last_fault = self.clock.elapsed();
            return true;
        }
        self.release_at_rest()
    }

    /// Performs the first periodic action that is due.
    fn tick(&mut self) -> bool {
        let now = self.clock.elapsed();
        let Some(index) = self.due.iter().position(|due| *due <= now) else { return false };
        let Some((period, action)) = self.scenario.ticks.get(index) else { return false };
        action(&self.sandbox);
        self.due[index] = now + *period;
        self.note("the cluster acts");
        self.record_of(&Author::Cluster);
        true
    }

    fn note(&mut self, text: &str) {
        let at = self.clock.elapsed();
        writeln!(self.trace, "{} {at:?} {text}", self.steps).expect("a string accepts everything");
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
            || self.answers.iter().any(|answer| answer.hold.is_some())
            || self.caches.iter().any(|cache| cache.is_held() && !cache.waiting.is_empty())
    }

    const fn hold(&self, until: Until) -> Hold {
        Hold::new(until, self.progress)
    }

    /// Counts an event, and returns the perturbations of its anchor.
    fn pass(&mut self, place: Place, is_guarded: bool) -> Vec<Deviation> {
        let number = self.counts.entry(place.clone()).or_default();
        *number += 1;
        let anchor = Anchor { process: self.number, place, number: *number };
        let here = self.schedule.0.iter().enumerate().filter(|(_, perturbation)| perturbation.at == anchor);
        let deviations = here.map(|(index, one)| Deviation { index, what: one.what.clone() }).collect();
        self.anchors.insert(anchor, Passed { step: self.steps, is_guarded });
        deviations
    }

    /// A perturbation takes effect.
    fn applies(&mut self, index: usize) {
        if self.applied.insert(index)
            && let Some(perturbation) = self.schedule.0.get(index)
        {
            self.perturbed = self.steps;
            self.note(&format!("** {perturbation}"));
            self.last_fault = self.clock.elapsed();
        }
    }

    /// Reads the lines of all watches that the store has for them.
    fn pull(&mut self) {
        self.caches.retain(|cache| !cache.is_closed());
        for cache in &mut self.caches {
            cache.pull();
        }
    }

    /// Ends all holds, since nothing else can happen at this time.
    fn release_at_rest(&mut self) -> bool {
        let mut released = false;
        for answer in &mut self.answers {
            released |= release(&mut answer.hold);
        }
        for pending in &mut self.held {
            released |= release(&mut pending.hold);
        }
        for cache in &mut self.caches {
            released |= cache.release();
        }
        released
    }

    fn kill(&mut self, restart: Duration) {
        self.history.kills += 1;
        self.caches.clear();
        self.received = Received::default();
        self.reconciles.clear();
        self.answers.clear();
        self.held.clear();
        self.counts.clear();
        self.number += 1;
        self.gate = Gate::default();
        self.began = self.clock.elapsed() + restart;
        self.clock.advance_to(self.began);
        self.progress.time = self.began;
        self.process = launch(self.scenario, &self.sandbox, &self.clock, &self.gate, self.number, &self.pulse);
        self.last_fault = self.clock.elapsed();
    }
}

fn launch(
    scenario: &Scenario,
    sandbox: &Sandbox,
    clock: &ManualClock,
    gate: &Gate,
    number: u32,
    pulse: &Pulse,
) -> Process {
    let mut process = Process::new(pulse.clone()).expect("the operating system must grant a runtime");
    let start = sandbox.now().checked_sub(clock.elapsed()).unwrap_or(Timestamp::MIN);
    let wall = WorldClock { start, clock: clock.clone() };
    let builder = scenario.manager.manager(wall, u64::from(number));
    process.start(|| {
        let manager = builder.build(gate.client(), "sandbox:443");
        async move {
            if let Err(error) = manager.run(Stop::default()).await {
                tracing::error!(%error, "The manager ended");
            }
        }
    });
    process
}
