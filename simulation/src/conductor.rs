//! The conductor: decides what happens next whenever everything waits. It runs in no runtime.
//!
//! The default order at such a point is the first of: deliver the oldest response, perform the oldest request, deliver
//! the waiting events of all caches, a step of the kubelets, the next action of the script, and the passing of time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use jiff::Timestamp;
use kcm_framework::Stop;
use kcm_framework::clock::Clock;
use kcm_sandbox_apiserver::direct::{DirectClient, EventKind};
use kcm_sandbox_apiserver::{ConnectionLost, EVENTS, Exchanged, LineKind, ManualClock, Sandbox, Verb};
use serde_json::Value;

use crate::deliver::{Cache, Received};
use crate::gate::{Gate, Waiting, stream, whole};
use crate::history::{Author, Change, History, Objects, Seen};
use crate::holds::{Hold, Progress, is_free, release};
use crate::kubelets;
use crate::log::{Errors, Pulse};
use crate::plant::Wire;
use crate::process::{Process, Settled};
use crate::requests::{
    Answer, Deviation, Pending, fails, failure, holds_request, holds_response, is_guarded, subresource, take, verb_of,
};
use crate::scenario::Scenario;
use crate::schedule::{Access, Anchor, Moment, Place, Schedule, Until, What};
use crate::state::{Digest, EventOnTheWay, ProcessState, Surroundings, digest};
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

    fn deliver_response(&mut self) -> bool {
        let now = self.progress;
        let Some(index) = self.answers.iter().position(|answer| is_free(answer.hold.as_ref(), now, None)) else {
            return false;
        };
        let Some(answer) = self.answers.remove(index) else { return false };
        self.note(&format!("response {}", answer.text));
        let is_lost = answer.response.is_err();
        // A client that has given up reads no response.
        let arrives = answer.reply.send(answer.response).is_ok();
        if arrives && !is_lost && answer.is_truthful {
            for change in &mut self.history.changes[answer.changes] {
                change.answered = true;
            }
        }
        true
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

    /// Performs the oldest request that is not held.
    fn perform_request(&mut self) -> bool {
        let now = self.progress;
        let free = self.held.iter().position(|pending| is_free(pending.hold.as_ref(), now, None));
        let pending = match free {
            Some(index) => self.held.remove(index),
            None => match self.gate.take() {
                Some(waiting) => self.arrive(waiting),
                None => return false,
            },
        };
        self.handle(pending);
        true
    }

    /// Counts a request, and the reconcile that it begins.
    fn arrive(&mut self, waiting: Waiting) -> Pending {
        let mut deviations = Vec::new();
        let key = waiting.key();
        if !key.is_empty() && !waiting.request.uri().path().contains("/events") {
            let of = waiting.name();
            if let Some(address) = waiting.origin.as_ref().and_then(|origin| origin.key.clone()) {
                let last = self.reconciles.get(&(of.clone(), key.clone()));
                if last.is_none_or(|last| !Arc::ptr_eq(&last.key, &address)) {
                    self.note_reconcile(&of, &key);
                    let begun = Reconcile { key: address, seen: self.received.seen() };
                    self.reconciles.insert((of.clone(), key.clone()), begun);
                    deviations.extend(self.pass(Place::Taken { of: of.clone(), key: key.clone() }, false));
                }
            }
            let access = if waiting.writes() { Access::Write } else { Access::Read };
            deviations.extend(self.pass(Place::Request { of, key, access }, is_guarded(&waiting)));
        }
        Pending { waiting, deviations, hold: None }
    }

    fn note_reconcile(&mut self, of: &str, key: &str) {
        let behind: Vec<String> = self
            .caches
            .iter()
            .filter(|cache| !cache.waiting.is_empty())
            .map(|cache| format!("{} is {} behind", cache.name, cache.waiting.len()))
            .collect();
        let sees = if behind.is_empty() { "sees everything".to_owned() } else { behind.join(", ") };
        self.note(&format!("{of} reconciles {key}: {sees}"));
    }

    /// Handles a request: what happens to it before the API server gets it, and the request itself.
    fn handle(&mut self, mut pending: Pending) {
        if let Some((index, until)) = take(&mut pending.deviations, holds_request) {
            self.applies(index);
            pending.hold = Some(self.hold(until));
            self.held.push(pending);
            return;
        }
        let Pending { waiting, mut deviations, .. } = pending;
        let act = |what: &What| if let What::Act(name) = what { Some(name.clone()) } else { None };
        while let Some((index, name)) = take(&mut deviations, act) {
            self.act(index, &name);
        }
        if let Some((index, restart)) = take(&mut deviations, |what| kills(what, Moment::Before)) {
            self.applies(index);
            self.kill(restart);
            return;
        }
        self.perform(waiting, deviations);
    }

    fn act(&mut self, index: usize, name: &str) {
        let act = self.scenario.acts.iter().find(|(known, _)| known == name).map(|(_, act)| Arc::clone(act));
        if let Some(act) = act {
            self.applies(index);
            act(&self.sandbox);
            self.record_of(&Author::User);
        }
    }

    fn perform(&mut self, waiting: Waiting, mut deviations: Vec<Deviation>) {
        let (method, uri) = (waiting.request.method().clone(), waiting.request.uri().clone());
        if waiting.writes() {
            self.progress.writes += 1;
        }
        let (name, key) = (waiting.name(), waiting.key());
        let seen = self.reconciles.get(&(name.clone(), key.clone())).map(|reconcile| reconcile.seen.clone());
        let guarded = is_guarded(&waiting);
        let Waiting { mut request, reply, .. } = waiting;
        let sent: Arc<Value> = Arc::new(serde_json::from_slice(request.body()).unwrap_or_default());
        if let Some(plant) = self.scenario.plant {
            plant.request(&mut request);
        }
        let first = self.history.changes.len();
        let may_fail = |what: &What| fails(what, Moment::Before).filter(|code| *code != 409 || guarded);
        let exchanged = match take(&mut deviations, may_fail) {
            Some((index, code)) => {
                self.applies(index);
                Exchanged::Response(failure(code))
            }
            None => self.sandbox.exchange(request),
        };
        let author = Author::Loop { process: self.number, name, key };
        let body = Arc::clone(&sent);
        self.record(&author, &Sent { verb: verb_of(&method), uri: &uri, body, seen: seen.as_ref() });
        let changes = first..self.history.changes.len();
        let mut is_truthful = true;
        let mut response = match exchanged {
            Exchanged::Response(response) => Ok(match take(&mut deviations, |what| fails(what, Moment::After)) {
                Some((index, code)) => {
                    self.applies(index);
                    is_truthful = false;
                    failure(code)
                }
                None => response,
            }),
            Exchanged::Watch(watch) => {
                let (response, lines) = stream();
                self.open(Cache::new(watch, lines, &uri));
                self.answers.push_back(Answer {
                    reply,
                    response: Ok(response),
                    text: format!("{method} {uri} 200"),
                    changes,
                    is_truthful,
                    hold: None,
                });
                return;
            }
            Exchanged::Lost => Err(ConnectionLost),
            // The client gives up after its timeout.
            Exchanged::Silence => return,
        };
        if let (Some(plant), Ok(response)) = (self.scenario.plant, &mut response) {
            let seen = self.received.seen();
            let wire = Wire { method: &method, uri: &uri, sent: &sent, history: &self.history, seen: &seen };
            plant.response(&wire, response);
        }
        let code = response.as_ref().map_or(0, |response| response.status().as_u16());
        self.note(&format!("{author}: {method} {uri} {code}"));
        if let Some((index, restart)) = take(&mut deviations, |what| kills(what, Moment::After)) {
            self.applies(index);
            self.kill(restart);
            return;
        }
        if let Some((index, ())) = take(&mut deviations, |what| matches!(what, What::LoseResponse).then_some(())) {
            self.applies(index);
            response = Err(ConnectionLost);
        }
        let hold = take(&mut deviations, holds_response).map(|(index, until)| {
            self.applies(index);
            self.hold(until)
        });
        let response = response.map(whole);
        self.answers.push_back(Answer {
            reply,
            response,
            text: format!("{method} {uri} {code}"),
            changes,
            is_truthful,
            hold,
        });
    }

    fn open(&mut self, mut cache: Cache) {
        self.note(&format!("a watch of {} opens", cache.name));
        if let Some(plant) = self.scenario.plant {
            let known = self.received.version(cache.resource(), &cache.name);
            plant.list(&mut cache, &self.history, known);
        }
        self.caches.push(cache);
    }

    fn deliver_events(&mut self) -> bool {
        let mut delivered = false;
        for index in 0..self.caches.len() {
            if self.caches[index].waiting.is_empty() {
                continue;
            }
            if !self.caches[index].is_counted {
                self.caches[index].is_counted = true;
                let cache = self.caches[index].name.clone();
                let mut deviations = self.pass(Place::Delivery { cache }, false);
                let held = |what: &What| if let What::Hold(until) = what { Some(*until) } else { None };
                if let Some((applied, until)) = take(&mut deviations, held) {
                    self.applies(applied);
                    self.caches[index].hold = Some(self.hold(until));
                }
                let relists = |what: &What| if let What::Relist(how) = what { Some(*how) } else { None };
                self.caches[index].relist = take(&mut deviations, relists);
            }
            let waiting = self.caches[index].waiting.len();
            if !is_free(self.caches[index].hold.as_ref(), self.progress, Some(waiting)) {
                continue;
            }
            if let Some((applied, how)) = self.caches[index].relist {
                self.applies(applied);
                self.caches.remove(index).cut(how, &self.sandbox, &mut self.received);
                return true;
            }
            let count = self.caches[index].send(&mut self.received);
            self.progress.events += u32::try_from(count).unwrap_or(u32::MAX);
            let text = format!("{count} events to {}", self.caches[index].name);
            self.note(&text);
            delivered = true;
        }
        delivered
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

    /// Everything of the state beside the store that is known: queues are not.
    fn surroundings(&self) -> Surroundings {
        let events = self.caches.iter().flat_map(|cache| {
            cache.waiting.iter().filter_map(|line| {
                Some(EventOnTheWay {
                    process: self.number,
                    cache: cache.name.clone(),
                    kind: kind_of(line.kind)?,
                    resource: cache.resource().clone(),
                    object: line.object.as_ref()?.value(),
                })
            })
        });
        let alive = ProcessState { is_alive: true, leads: true, fence_is_open: true };
        Surroundings {
            events: events.collect(),
            processes: vec![alive; self.number as usize],
            phase: self.script,
            ..Surroundings::default()
        }
    }

    /// Adds the writes of somebody else than a process to the history.
    fn record_of(&mut self, author: &Author) {
        let sent = Sent { verb: Verb::Get, uri: &Uri::default(), body: Arc::new(Value::Null), seen: None };
        self.record(author, &sent);
    }

    /// Adds the writes since the last call to the history.
    fn record(&mut self, author: &Author, sent: &Sent<'_>) {
        let events = DirectClient::new(&self.sandbox).events_after(self.version, usize::MAX).unwrap_or_default();
        self.version = self.sandbox.version();
        let is_loop = match author {
            Author::Loop { .. } => true,
            Author::Cluster | Author::User => false,
        };
        let first = self.history.changes.len();
        for event in events.iter().filter(|event| event.resource != EVENTS) {
            let before = event.previous.as_ref().map(|object| object.value());
            let after = (event.kind != EventKind::Deleted).then(|| event.object.value());
            let change = Change {
                at: self.clock.elapsed(),
                author: author.clone(),
                verb: if is_loop { sent.verb } else { verb_by(before.as_deref(), after.as_deref()) },
                resource: event.resource.clone(),
                subresource: subresource(sent.uri, &event.resource),
                key: event.key.clone(),
                version: event.version,
                before,
                after,
                sent: Arc::clone(&sent.body),
                answered: !is_loop,
                seen: sent.seen.cloned(),
            };
            change.apply_to(&mut self.changed);
            self.history.changes.push(change);
        }
        if self.history.changes.len() > first && self.observe == Observe::States {
            self.states.insert(digest(&self.changed, &self.surroundings()));
        }
    }
}

/// The request by which objects were written.
struct Sent<'a> {
    verb: Verb,
    uri: &'a Uri,
    body: Arc<Value>,
    seen: Option<&'a Seen>,
}

/// The verb of a write without a request.
fn verb_by(before: Option<&Value>, after: Option<&Value>) -> Verb {
    let is_terminating = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
    match (before, after) {
        (None, _) => Verb::Create,
        (Some(_), None) => Verb::Delete,
        (Some(before), Some(after)) if !is_terminating(before) && is_terminating(after) => Verb::Delete,
        (Some(_), Some(_)) => Verb::Update,
    }
}

const fn kind_of(kind: LineKind) -> Option<&'static str> {
    match kind {
        LineKind::Added => Some("ADDED"),
        LineKind::Modified => Some("MODIFIED"),
        LineKind::Deleted => Some("DELETED"),
        LineKind::Bookmark | LineKind::Error => None,
    }
}

fn kills(what: &What, at: Moment) -> Option<Duration> {
    if let What::Kill { moment, restart } = what { (*moment == at).then_some(*restart) } else { None }
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
