//! The conductor: decides what happens next whenever everything waits. It runs in no runtime.
//!
//! The default order at such a point is the first of: deliver the oldest response, perform the oldest request, deliver
//! the waiting events of all caches, a step of the kubelets, the next action of the script, and the passing of time.

mod faults;
mod launch;
mod order;
mod record;
mod traffic;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Extensions;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::{ManualClock, Sandbox};

use crate::deliver::{Cache, Received};
use crate::gate::Gate;
use crate::history::{Author, History, Objects, Seen};
use crate::holds::{Hold, Progress, release};
use crate::kubelets;
use crate::log::{Errors, Pulse};
use crate::plant::Plant;
use crate::process::{Process, Settled};
use crate::requests::{Answer, Deviation, Landing, Nature, Pending};
use crate::scenario::Scenario;
use crate::schedule::{Anchor, Place, Schedule, Settings, Until};
use crate::state::Digest;
use crate::violation::Violation;

use faults::NextStep;
use launch::{WallClock, launch};
use order::Shuffle;

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
    /// The kind of the event.
    pub nature: Nature,
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
    perform_planted(scenario, scenario.plant, schedule, observe)
}

/// As [`perform`], with this bug instead of the planted bug of the scenario.
pub(crate) fn perform_planted(scenario: &Scenario, plant: Option<Plant>, schedule: &Schedule, observe: Observe) -> Run {
    let pulse = Pulse::default();
    let errors = Errors::capture(&pulse);
    let mut conductor = Conductor::new(scenario, plant, schedule, pulse, observe);
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

/// A reconcile that has sent a request.
struct Reconcile {
    /// The key as its requests have it. Each reconcile has a text of its own, so that its address tells reconciles apart.
    key: Arc<str>,
    seen: Seen,
}

struct Conductor<'a> {
    scenario: &'a Scenario,
    plant: Option<Plant>,
    schedule: &'a Schedule,
    sandbox: Sandbox,
    clock: ManualClock,
    wall: WallClock,
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
    landing: Vec<Landing>,
    /// The state outside of the cluster.
    outside: Extensions,
    kubelet: NextStep,
    /// The version of the store at which the kubelets have nothing to do.
    kubelets_rest_at: Option<u64>,
    shuffle: Shuffle,
    paused_until: Option<Duration>,
    /// Time at which the API server can be reached again.
    out_until: Duration,
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
    fn new(
        scenario: &'a Scenario,
        plant: Option<Plant>,
        schedule: &'a Schedule,
        pulse: Pulse,
        observe: Observe,
    ) -> Self {
        let clock = ManualClock::default();
        let sandbox = scenario.sandbox.fork(clock.clone());
        let (_, objects) = DirectClient::new(&sandbox).snapshot();
        let parsed = objects.into_iter().map(|(resource, objects)| {
            (resource, objects.into_iter().map(|(key, object)| (key, object.value())).collect())
        });
        let history = History { start: parsed.collect(), ..History::default() };
        let (gate, number) = (Gate::default(), 1);
        let outside = scenario.begin_outside();
        let wall = WallClock::of(&sandbox, &clock);
        let process = launch(&scenario.manager_with(Settings::Same, &outside), &wall, &gate, number, &pulse);
        let version = sandbox.version();
        Self {
            scenario,
            plant,
            schedule,
            began: clock.elapsed(),
            sandbox,
            clock,
            wall,
            pulse,
            process,
            gate,
            number,
            caches: Vec::new(),
            received: Received::default(),
            reconciles: BTreeMap::new(),
            answers: VecDeque::new(),
            held: Vec::new(),
            landing: Vec::new(),
            outside,
            kubelet: NextStep::default(),
            kubelets_rest_at: None,
            shuffle: Shuffle::default(),
            paused_until: None,
            out_until: Duration::ZERO,
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
        self.begin();
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
                if let Some(violation) = self.broken() {
                    return Some(violation);
                }
                continue;
            }
            let now = self.clock.elapsed();
            let is_done =
                self.script == self.scenario.script.len() && (self.scenario.goal)(&self.sandbox, &self.outside);
            let is_held = self.is_holding();
            match quiet_since {
                Some((since, writes)) if is_done && !is_held && self.last_fault <= since => {
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
            // What is due waits for the end of an outage.
            let due = self.due.iter().copied().filter(|due| *due > now);
            let limit = due.fold(limit, Duration::min);
            settled = self.process.wait(limit.saturating_sub(self.began));
            self.clock.advance_to(self.began + self.process.elapsed());
            self.progress.time = self.clock.elapsed();
        }
    }

    /// The first rule of every moment that does not hold.
    fn broken(&self) -> Option<Violation> {
        let holds = |holds: &dyn Fn(&Sandbox, &Extensions) -> bool| holds(&self.sandbox, &self.outside);
        let (rule, what, _) = self.scenario.always.iter().find(|(_, _, condition)| !holds(&**condition))?;
        Some(Violation::new(rule, what))
    }

    /// Does what comes next at this time. Returns `false` if nothing does.
    fn step(&mut self) -> bool {
        if self.paused_until.is_some() {
            // Requests that were sent still arrive.
            return self.perform_request() || self.kubelet_acts() || self.user_acts() || self.resume();
        }
        self.shuffled() == Some(true)
            || self.deliver_response()
            || self.land()
            || self.perform_request()
            || self.deliver_events()
            || self.kubelet_acts()
            || self.user_acts()
            || self.release_at_rest()
    }

    fn user_can_act(&self) -> bool {
        let next = self.scenario.script.get(self.script);
        !self.is_out() && next.is_some_and(|(when, _)| when(&self.sandbox))
    }

    fn user_acts(&mut self) -> bool {
        if !self.is_out() && self.tick() {
            return true;
        }
        if !self.user_can_act() {
            return false;
        }
        let Some((_, action)) = self.scenario.script.get(self.script) else { return false };
        action(&self.sandbox);
        self.script += 1;
        self.note("the user acts");
        self.record_of(&Author::User);
        self.last_fault = self.last_fault.max(self.clock.elapsed());
        true
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
            || !self.landing.is_empty()
            || (self.kubelet.hold.is_some() && kubelets::next(&self.sandbox).is_some())
            || self.answers.iter().any(|answer| answer.hold.is_some())
            || self.caches.iter().any(|cache| cache.is_held() && !cache.waiting.is_empty())
    }

    const fn hold(&self, until: Until) -> Hold {
        Hold::new(until, self.progress)
    }

    /// Counts an event, and returns the perturbations of its anchor.
    fn pass(&mut self, place: Place, nature: Nature) -> Vec<Deviation> {
        let number = self.counts.entry(place.clone()).or_default();
        *number += 1;
        let anchor = Anchor { process: self.number, place, number: *number };
        let here = self.schedule.0.iter().enumerate().filter(|(_, perturbation)| perturbation.at == anchor);
        let deviations = here.map(|(index, one)| Deviation { index, what: one.what.clone() }).collect();
        self.anchors.insert(anchor, Passed { step: self.steps, nature });
        deviations
    }

    /// A perturbation takes effect.
    fn applies(&mut self, index: usize) {
        if self.applied.insert(index)
            && let Some(perturbation) = self.schedule.0.get(index)
        {
            self.perturbed = self.steps;
            self.note(&format!("** {perturbation}"));
            self.last_fault = self.last_fault.max(self.clock.elapsed());
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
        for landing in &mut self.landing {
            released |= release(&mut landing.hold);
        }
        released | release(&mut self.kubelet.hold)
    }
}
