//! The conductor: decides what happens next whenever everything waits. It runs in no runtime.
//!
//! The default order at such a point is the first of: deliver the oldest response, perform the oldest request, deliver
//! the waiting events of all caches, a step of the kubelets, the next action of the script, and the passing of time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Frame;
use jiff::Timestamp;
use kcm_framework::Stop;
use kcm_framework::clock::Clock;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::{
    ConnectionLost, EVENTS, Exchanged, ManualClock, OpenWatch, Sandbox, Status, Verb, WatchLine, WatchStep,
};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::gate::{Gate, Lines, Reply, Waiting, stream, whole};
use crate::history::{Author, Change, History};
use crate::kubelets;
use crate::log::Errors;
use crate::process::Process;
use crate::scenario::Scenario;
use crate::schedule::{Access, Anchor, Moment, Place, Relist, Schedule, Until, What};
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
    pub anchors: BTreeSet<Anchor>,
    /// The perturbations whose anchors were not reached, by index.
    pub not_applied: Vec<usize>,
    /// Number of steps of the run.
    pub steps: u32,
}

/// Runs a scenario with the perturbations of a schedule.
///
/// # Panics
/// If the operating system refuses a runtime.
#[must_use]
pub fn run(scenario: &Scenario, schedule: &Schedule) -> Run {
    let errors = Errors::capture();
    let mut conductor = Conductor::new(scenario, schedule);
    let violation = conductor.conduct().or_else(|| {
        let line = errors.first()?;
        Some(Violation::new("O5", "an error was logged").detail(line))
    });
    let broken = || scenario.invariants.iter().find_map(|holds| holds(&conductor.history).err());
    let violation = violation.or_else(broken);
    let not_applied = (0..schedule.len()).filter(|index| !conductor.applied.contains(index)).collect();
    let Conductor { history, trace, anchors, steps, .. } = conductor;
    Run { violation, history, trace, anchors, not_applied, steps }
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

/// A watch of the process, with the events that wait for it.
struct Cache {
    watch: OpenWatch,
    lines: Lines,
    waiting: VecDeque<WatchLine>,
    name: String,
    hold: Option<Hold>,
    /// The delivery for the waiting events has been counted.
    is_counted: bool,
}

/// A hold, and the counters at its begin.
#[derive(Clone, Copy)]
struct Hold {
    until: Until,
    since: Duration,
    writes: u32,
}

struct Answer {
    reply: oneshot::Sender<Reply>,
    response: Reply,
    text: String,
    /// The changes of the request, in the history.
    changes: std::ops::Range<usize>,
    hold: Option<Hold>,
}

struct Conductor<'a> {
    scenario: &'a Scenario,
    schedule: &'a Schedule,
    sandbox: Sandbox,
    clock: ManualClock,
    /// The time of the world at which the process started.
    began: Duration,
    process: Process,
    gate: Gate,
    number: u32,
    caches: Vec<Cache>,
    answers: VecDeque<Answer>,
    held: Vec<(Waiting, Hold)>,
    counts: BTreeMap<Place, u32>,
    writes: u32,
    script: usize,
    history: History,
    version: u64,
    trace: String,
    anchors: BTreeSet<Anchor>,
    applied: BTreeSet<usize>,
    steps: u32,
    /// Time of the last fault, action or write that is not at rest.
    last_fault: Duration,
}

impl<'a> Conductor<'a> {
    fn new(scenario: &'a Scenario, schedule: &'a Schedule) -> Self {
        let clock = ManualClock::default();
        let sandbox = scenario.sandbox.fork(clock.clone());
        let (_, objects) = DirectClient::new(&sandbox).snapshot();
        let parsed = objects.into_iter().map(|(resource, objects)| {
            (resource, objects.into_iter().map(|(key, object)| (key, object.value())).collect())
        });
        let history = History { start: parsed.collect(), ..History::default() };
        let (gate, number) = (Gate::default(), 1);
        let process = launch(scenario, &sandbox, &clock, &gate, number);
        let version = sandbox.version();
        Self {
            scenario,
            schedule,
            began: clock.elapsed(),
            sandbox,
            clock,
            process,
            gate,
            number,
            caches: Vec::new(),
            answers: VecDeque::new(),
            held: Vec::new(),
            counts: BTreeMap::new(),
            writes: 0,
            script: 0,
            history,
            version,
            trace: String::new(),
            anchors: BTreeSet::new(),
            applied: BTreeSet::new(),
            steps: 0,
            last_fault: Duration::ZERO,
        }
    }

    fn conduct(&mut self) -> Option<Violation> {
        let mut quiet_since: Option<(Duration, u32)> = None;
        loop {
            self.process.settle();
            if self.process.has_ended() {
                return Some(Violation::new("O5", "the manager ended"));
            }
            self.steps += 1;
            if self.steps > STEPS {
                return Some(Violation::new("O1", "the run has no end"));
            }
            self.pull();
            if self.deliver_response() || self.perform_request() || self.deliver_events() {
                continue;
            }
            if kubelets::step(&self.sandbox) {
                self.note("kubelet");
                self.record(&Author::Cluster, Verb::Update, &Arc::new(Value::Null), true);
                continue;
            }
            if let Some((when, action)) = self.scenario.script.get(self.script)
                && when(&self.sandbox)
            {
                action(&self.sandbox);
                self.script += 1;
                self.note("user acts");
                self.record(&Author::User, Verb::Update, &Arc::new(Value::Null), true);
                self.last_fault = self.clock.elapsed();
                continue;
            }
            if self.release_at_rest() {
                continue;
            }
            let now = self.clock.elapsed();
            let is_done = self.script == self.scenario.script.len() && (self.scenario.goal)(&self.sandbox);
            let is_held = self.is_holding();
            match quiet_since {
                Some((since, writes)) if is_done && !is_held => {
                    if self.writes != writes && now > since {
                        return Some(Violation::new("O4", "a loop writes at rest"));
                    }
                    if now >= since + SETTLE_TIME {
                        return None;
                    }
                }
                Some(_) | None => quiet_since = (is_done && !is_held).then_some((now, self.writes)),
            }
            if !is_done && now > self.last_fault + PATIENCE {
                return Some(Violation::new("O2", "the goal is not reached"));
            }
            // To the next timer of the process, or to the limit.
            let limit = now + if is_done { SETTLE_TIME } else { Duration::from_mins(1) };
            self.process.wait(limit.saturating_sub(self.began));
            self.clock.advance_to(self.began + self.process.elapsed());
        }
    }

    fn note(&mut self, text: &str) {
        let at = self.clock.elapsed();
        writeln!(self.trace, "{} {at:?} {text}", self.steps).expect("a string accepts everything");
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
            || self.answers.iter().any(|answer| answer.hold.is_some())
            || self.caches.iter().any(|cache| cache.hold.is_some() && !cache.waiting.is_empty())
    }

    fn hold(&self, until: Until) -> Hold {
        Hold { until, since: self.clock.elapsed(), writes: self.writes }
    }

    /// Counts an event, and returns the perturbations of its anchor.
    fn pass(&mut self, place: Place) -> Vec<What> {
        let number = self.counts.entry(place.clone()).or_default();
        *number += 1;
        let anchor = Anchor { process: self.number, place, number: *number };
        let mut deviations = Vec::new();
        for (index, perturbation) in self.schedule.0.iter().enumerate() {
            if perturbation.at == anchor && self.applied.insert(index) {
                deviations.push(perturbation.what.clone());
            }
        }
        for what in &deviations {
            self.note(&format!("{anchor}: {what}"));
            self.last_fault = self.clock.elapsed();
        }
        self.anchors.insert(anchor);
        deviations
    }

    /// Reads the lines of all watches that the store has for them.
    fn pull(&mut self) {
        self.caches.retain(|cache| !cache.lines.is_closed());
        for cache in &mut self.caches {
            while let WatchStep::Line(line) = cache.watch.step() {
                cache.waiting.push_back(line);
            }
        }
    }

    fn deliver_response(&mut self) -> bool {
        let Some(index) = self.answers.iter().position(|answer| self.is_over(answer.hold, 0)) else { return false };
        let Some(answer) = self.answers.remove(index) else { return false };
        self.note(&format!("response {}", answer.text));
        let is_lost = answer.response.is_err();
        // A client that has given up reads no response.
        let arrives = answer.reply.send(answer.response).is_ok();
        if arrives && !is_lost {
            for change in &mut self.history.changes[answer.changes] {
                change.answered = true;
            }
        }
        true
    }

    fn is_over(&self, hold: Option<Hold>, events: usize) -> bool {
        let Some(hold) = hold else { return true };
        match hold.until {
            Until::Writes(count) => self.writes >= hold.writes + count,
            Until::Events(count) => events >= count as usize,
            Until::Rest => false,
            Until::After(time) => self.clock.elapsed() >= hold.since + time,
        }
    }

    /// Ends all holds, since nothing else can happen at this time.
    fn release_at_rest(&mut self) -> bool {
        let ends = |hold: &Option<Hold>| hold.is_some_and(|hold| !matches!(hold.until, Until::After(_)));
        let mut released = false;
        for answer in &mut self.answers {
            released |= ends(&answer.hold);
            answer.hold = answer.hold.filter(|hold| matches!(hold.until, Until::After(_)));
        }
        for (_, hold) in &mut self.held {
            if !matches!(hold.until, Until::After(_)) {
                hold.until = Until::Writes(0);
                released = true;
            }
        }
        for cache in &mut self.caches {
            released |= ends(&cache.hold);
            cache.hold = cache.hold.filter(|hold| matches!(hold.until, Until::After(_)));
        }
        released
    }

    fn perform_request(&mut self) -> bool {
        if let Some(index) = self.held.iter().position(|(_, hold)| self.is_over(Some(*hold), 0)) {
            let (waiting, _) = self.held.remove(index);
            self.perform(waiting, &[]);
            return true;
        }
        let Some(waiting) = self.gate.take() else { return false };
        let mut deviations = Vec::new();
        let key = waiting.key();
        if !key.is_empty() && !waiting.request.uri().path().contains("/events") {
            let access = if waiting.writes() { Access::Write } else { Access::Read };
            deviations = self.pass(Place::Request { of: waiting.name(), key, access });
        }
        for what in &deviations {
            match what {
                What::HoldRequest(until) => {
                    let hold = self.hold(*until);
                    self.held.push((waiting, hold));
                    return true;
                }
                What::Kill { moment: Moment::Before, restart } => {
                    self.kill(*restart);
                    return true;
                }
                What::Act(name) => self.act(name),
                What::Kill { .. }
                | What::LoseResponse
                | What::HoldResponse(_)
                | What::Hold(_)
                | What::Relist(_)
                | What::Fail { .. } => {}
            }
        }
        self.perform(waiting, &deviations);
        true
    }

    fn act(&mut self, name: &str) {
        let act = self.scenario.acts.iter().find(|(known, _)| known == name).map(|(_, act)| Arc::clone(act));
        if let Some(act) = act {
            act(&self.sandbox);
            self.record(&Author::User, Verb::Update, &Arc::new(Value::Null), true);
        }
    }

    fn perform(&mut self, waiting: Waiting, deviations: &[What]) {
        let (method, uri) = (waiting.request.method().clone(), waiting.request.uri().clone());
        let writes = waiting.writes();
        let author = Author::Loop { process: self.number, name: waiting.name(), key: waiting.key() };
        let Waiting { request, reply, .. } = waiting;
        let sent = Arc::new(serde_json::from_slice(request.body()).unwrap_or_default());
        let verb = verb_of(&method);
        if writes {
            self.writes += 1;
        }
        let fails = |at: Moment| {
            deviations.iter().find_map(|what| match what {
                What::Fail { moment, code } if *moment == at => Some(*code),
                What::Fail { .. }
                | What::Kill { .. }
                | What::LoseResponse
                | What::HoldRequest(_)
                | What::HoldResponse(_)
                | What::Hold(_)
                | What::Relist(_)
                | What::Act(_) => None,
            })
        };
        let first = self.history.changes.len();
        let exchanged = match fails(Moment::Before) {
            Some(code) => Exchanged::Response(failure(code)),
            None => self.sandbox.exchange(request),
        };
        self.record(&author, verb, &sent, false);
        let changes = first..self.history.changes.len();
        let mut response = match exchanged {
            Exchanged::Response(response) => Ok(whole(response)),
            Exchanged::Watch(watch) => {
                let (response, lines) = stream();
                let name = watch.resource().plural.to_string();
                let cache = Cache { watch, lines, waiting: VecDeque::new(), name, hold: None, is_counted: false };
                self.caches.push(cache);
                Ok(response)
            }
            Exchanged::Lost => Err(ConnectionLost),
            // The client gives up after its timeout.
            Exchanged::Silence => return,
        };
        if let Some(code) = fails(Moment::After) {
            response = Ok(whole(failure(code)));
        }
        let code = response.as_ref().map_or(0, |response| response.status().as_u16());
        self.note(&format!("{author:?} {method} {uri} {code}"));
        let mut hold = None;
        for what in deviations {
            match what {
                What::Kill { moment: Moment::After, restart } => {
                    self.kill(*restart);
                    return;
                }
                What::LoseResponse => response = Err(ConnectionLost),
                What::HoldResponse(until) => hold = Some(self.hold(*until)),
                What::Kill { .. }
                | What::HoldRequest(_)
                | What::Hold(_)
                | What::Relist(_)
                | What::Fail { .. }
                | What::Act(_) => {}
            }
        }
        self.answers.push_back(Answer { reply, response, text: format!("{method} {uri} {code}"), changes, hold });
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
                for what in self.pass(Place::Delivery { cache }) {
                    match what {
                        What::Hold(until) => self.caches[index].hold = Some(self.hold(until)),
                        What::Relist(how) => {
                            self.cut(index, how);
                            return true;
                        }
                        What::Kill { .. }
                        | What::LoseResponse
                        | What::HoldRequest(_)
                        | What::HoldResponse(_)
                        | What::Fail { .. }
                        | What::Act(_) => {}
                    }
                }
            }
            if !self.is_over(self.caches[index].hold, self.caches[index].waiting.len()) {
                continue;
            }
            let cache = &mut self.caches[index];
            (cache.hold, cache.is_counted) = (None, false);
            let count = cache.waiting.len();
            for line in cache.waiting.drain(..) {
                // A receiver that is gone has ended its watch.
                drop(cache.lines.send(Ok(Frame::data(line.bytes))));
            }
            let text = format!("{count} events to {}", cache.name);
            self.note(&text);
            delivered = true;
        }
        delivered
    }

    /// Ends a watch, whose waiting events are lost.
    fn cut(&mut self, index: usize, how: Relist) {
        let cache = self.caches.remove(index);
        match how {
            Relist::Clean => {}
            Relist::Broken => drop(cache.lines.send(Err(ConnectionLost))),
            Relist::Compacted => self.sandbox.compact(),
            Relist::Expired => {
                let status = Status::expired("too old resource version".to_owned());
                let line = format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.to_json());
                drop(cache.lines.send(Ok(Frame::data(Bytes::from(line)))));
            }
        }
    }

    fn kill(&mut self, restart: Duration) {
        self.history.kills += 1;
        self.caches.clear();
        self.answers.clear();
        self.held.clear();
        self.counts.clear();
        self.number += 1;
        self.gate = Gate::default();
        self.began = self.clock.elapsed() + restart;
        self.clock.advance_to(self.began);
        self.process = launch(self.scenario, &self.sandbox, &self.clock, &self.gate, self.number);
        self.last_fault = self.clock.elapsed();
    }

    /// Adds the writes since the last call to the history.
    fn record(&mut self, author: &Author, verb: Verb, sent: &Arc<Value>, answered: bool) {
        let events = DirectClient::new(&self.sandbox).events_after(self.version, usize::MAX).unwrap_or_default();
        self.version = self.sandbox.version();
        for event in events.iter().filter(|event| event.resource != EVENTS) {
            let is_deleted = event.kind == kcm_sandbox_apiserver::direct::EventKind::Deleted;
            self.history.changes.push(Change {
                at: self.clock.elapsed(),
                author: author.clone(),
                verb,
                resource: event.resource.clone(),
                subresource: None,
                key: event.key.clone(),
                version: event.version,
                before: event.previous.as_ref().map(|object| object.value()),
                after: (!is_deleted).then(|| event.object.value()),
                sent: Arc::clone(sent),
                answered,
                seen: None,
            });
        }
    }
}

fn launch(scenario: &Scenario, sandbox: &Sandbox, clock: &ManualClock, gate: &Gate, number: u32) -> Process {
    let mut process = Process::new().expect("the operating system must grant a runtime");
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

fn verb_of(method: &http::Method) -> Verb {
    match method.as_str() {
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => Verb::Get,
    }
}

fn failure(code: u16) -> Response<Bytes> {
    let status = Status::new(code, "", "the simulation fails this request".to_owned()).to_json();
    let mut response = Response::new(Bytes::from(status.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
