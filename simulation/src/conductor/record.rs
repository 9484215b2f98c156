//! The record of a run: its writes, and its states.

use std::sync::Arc;

use http::Uri;
use kcm_sandbox_apiserver::direct::{DirectClient, EventKind};
use kcm_sandbox_apiserver::{EVENTS, LineKind, Verb};
use serde_json::Value;

use super::{Conductor, Observe};
use crate::history::{Author, Change, Seen};
use crate::requests::subresource;
use crate::state::{EventOnTheWay, ProcessState, Surroundings, digest};

impl Conductor<'_> {
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
    pub(super) fn record_of(&mut self, author: &Author) {
        let sent = Sent { verb: Verb::Get, uri: &Uri::default(), body: Arc::new(Value::Null), seen: None };
        self.record(author, &sent);
    }

    /// Adds the writes since the last call to the history.
    pub(super) fn record(&mut self, author: &Author, sent: &Sent<'_>) {
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
pub(super) struct Sent<'a> {
    pub(super) verb: Verb,
    pub(super) uri: &'a Uri,
    pub(super) body: Arc<Value>,
    pub(super) seen: Option<&'a Seen>,
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
