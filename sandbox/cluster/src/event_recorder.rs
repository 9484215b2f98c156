//! Event recorder: writes events, aggregates repeated ones, and deletes old ones.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kcm_api::ObjectKey;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::timers::Timers;
use kcm_sandbox_apiserver::EVENTS;
use kcm_sandbox_apiserver::direct::DeleteOptions;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::direct::EVENT_LIFE;
use kcm_sandbox_apiserver::direct::Now;
use kcm_sandbox_apiserver::json;

/// Maximum number of tracked events for aggregation; older ones start again at count 1.
const KNOWN: usize = 4096;

/// The source of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reporter<'a> {
    Scheduler,
    Kubelet { node: &'a str },
    NodeController,
    TaintEviction,
}

impl Reporter<'_> {
    const fn component(self) -> &'static str {
        match self {
            Self::Scheduler => "default-scheduler",
            Self::Kubelet { .. } => "kubelet",
            Self::NodeController => "node-controller",
            Self::TaintEviction => "taint-eviction-controller",
        }
    }
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The container that the event concerns.
    pub(crate) field: Option<String>,
}

impl Note {
    pub(crate) fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: false, reason, message: message.into(), field: None }
    }

    pub(crate) fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, message) }
    }
}

type Fingerprint = (String, &'static str, String);

#[derive(Debug)]
pub(crate) struct EventRecorder {
    dice: Dice,
    known: BTreeMap<Fingerprint, (ObjectKey, u64)>,
    known_order: VecDeque<Fingerprint>,
    written: u64,
    /// The deletion times of events.
    kept: Timers<ObjectKey>,
    limit: usize,
}

impl EventRecorder {
    pub(crate) fn new(dice: Dice, limit: usize) -> Self {
        Self { dice, known: BTreeMap::new(), known_order: VecDeque::new(), written: 0, kept: Timers::default(), limit }
    }

    /// Records an event about an object; a repeated one increments its count.
    ///
    /// Errors are ignored: the namespace may be terminating.
    pub(crate) fn record(&mut self, api: &DirectClient, reporter: Reporter<'_>, about: &Value, note: Note) {
        if self.limit == 0 {
            return;
        }
        let now = api.now();
        let fingerprint = (json::uid(about).to_owned(), note.reason, note.message.clone());
        if let Some((key, count)) = self.known.get_mut(&fingerprint) {
            *count += 1;
            let again = json!({ "count": *count, "lastTimestamp": now.stamp(0) });
            if api.merge(&EVENTS, key, None, &again).is_ok() {
                return;
            }
        }
        self.written += 1;
        let suffix = self.dice.hex(16, &["event", &self.written.to_string()]);
        let event = event(reporter, about, note, &suffix, now);
        let key = ObjectKey::namespaced(
            json::text(&event, &["metadata", "namespace"]).unwrap_or("default"),
            json::name(&event),
        );
        if api.create(&EVENTS, event).is_ok() && self.known.insert(fingerprint.clone(), (key, 1)).is_none() {
            self.known_order.push_back(fingerprint);
            if self.known_order.len() > KNOWN
                && let Some(oldest) = self.known_order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }

    /// Observes a written or deleted event, of any source.
    pub(crate) fn observe(&mut self, event: &ObjectKey, is_there: bool, now: Duration) {
        if self.limit > 0 {
            self.kept.set(event, is_there.then(|| now + EVENT_LIFE));
        }
    }

    /// Deletes expired events, and the oldest beyond the limit.
    pub(crate) fn act(&mut self, api: &DirectClient, budget: usize) {
        let now = api.now().elapsed;
        for _ in 0..budget {
            let oldest = if self.kept.len() > self.limit { self.kept.pop() } else { self.kept.pop_due(now) };
            let Some(key) = oldest else { return };
            // Not found is success.
            drop(api.delete(&EVENTS, &key, &DeleteOptions::default()));
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        if self.kept.len() > self.limit { Some(Duration::ZERO) } else { self.kept.next() }
    }
}

/// # Upstream
/// The scheduler reports through `events.k8s.io`, which the core group serves with an event time and an action.
fn event(reporter: Reporter<'_>, about: &Value, note: Note, suffix: &str, now: Now) -> Value {
    let name = json::name(about);
    let namespace = json::text(about, &["metadata", "namespace"]).unwrap_or("default");
    let mut involved = json!({
        "apiVersion": about["apiVersion"], "kind": about["kind"], "name": name, "uid": about["metadata"]["uid"],
        "resourceVersion": about["metadata"]["resourceVersion"],
    });
    if let Some(namespace) = json::text(about, &["metadata", "namespace"]) {
        involved["namespace"] = json!(namespace);
    }
    if let Some(field) = note.field {
        involved["fieldPath"] = json!(field);
    }
    let mut event = json!({
        "metadata": { "name": format!("{name}.{suffix}"), "namespace": namespace },
        "involvedObject": involved,
        "type": if note.warning { "Warning" } else { "Normal" },
        "reason": note.reason, "message": note.message,
        "reportingComponent": reporter.component(),
    });
    let fields = match reporter {
        Reporter::Scheduler => json!({
            "eventTime": kcm_api::time::format_micros(now.time), "source": {},
            "action": if note.reason == "Scheduled" { "Binding" } else { "Scheduling" },
            "reportingInstance": "default-scheduler-sandbox",
        }),
        Reporter::Kubelet { node } => json!({
            "source": { "component": "kubelet", "host": node }, "reportingInstance": node,
            "firstTimestamp": now.stamp(0), "lastTimestamp": now.stamp(0), "count": 1,
        }),
        Reporter::NodeController | Reporter::TaintEviction => json!({
            "source": { "component": reporter.component() }, "reportingInstance": "",
            "firstTimestamp": now.stamp(0), "lastTimestamp": now.stamp(0), "count": 1,
        }),
    };
    if let Value::Object(fields) = fields {
        json::map_of(&mut event).extend(fields);
    }
    event
}
