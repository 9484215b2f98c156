//! The explanation of a key, as the debug endpoints serve it.

use std::sync::Arc;

use jiff::{Timestamp, Unit};
use kcm_api::ObjectKey;
use serde::{Deserialize, Serialize};

use super::decision::{Decision, Ended, Seen};
use super::notes::{Note, Noted, ResourceName, Wrote};
use super::queue_status::seconds;
use super::trigger::{ChangeKind, Trigger, TriggerCause};

/// The explanation of one key of one loop: its state now, what it waits for, and its last reconciles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct KeyExplanation {
    /// Canonical name of the controller.
    pub controller: String,
    /// Name of the loop and of its queue.
    #[serde(rename = "loop")]
    pub name: String,
    /// The resource of the object that the key names, as `deployments.apps`.
    pub resource: Option<String>,
    /// The key, as `NAMESPACE/NAME`.
    pub key: String,
    /// Whether the cache has the object. `None` if the loop has no cache of its objects.
    pub exists: Option<bool>,
    /// The state of the key in the queue.
    pub state: KeyState,
    /// Seconds for which it has been ready or processing, or has waited for its writes.
    pub state_seconds: Option<f64>,
    /// Number of reconciles that have failed in a row.
    pub failures: u32,
    /// Reasons why it waits. Empty for a key with nothing to do.
    pub waits_for: Vec<WaitExplanation>,
    /// Causes of the next reconcile, if the key is enqueued.
    pub pending_triggers: Vec<TriggerExplanation>,
    /// Its last reconciles that are still kept, the newest first.
    pub reconciles: Vec<ReconcileExplanation>,
}

/// The state of a key in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum KeyState {
    /// It is not enqueued, or it is due later.
    #[default]
    Idle,
    /// It waits for a worker.
    Ready,
    /// A worker reconciles it.
    Processing,
    /// It waits until the caches show its writes.
    WaitingForWrites,
}

/// A reason why a key waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitExplanation {
    /// The kind of wait: `Worker`, `PendingWrite`, `LiveCheck`, `BackOff`, `Requeue`, `Undecodable`, `ApiServer` or
    /// `Loop`.
    pub reason: String,
    /// Description of the wait, for operators.
    pub message: String,
    /// Seconds until the wait ends, if it ends at a known time.
    pub in_seconds: Option<f64>,
}

/// A cause of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerExplanation {
    /// The kind of cause: `Added`, `Updated`, `Deleted`, `Listed`, `Requeue`, `BackOff` or `OutageEnded`.
    ///
    /// `Listed` is the first list, a resync, or another loop of the controller.
    pub reason: String,
    /// The resource of the event.
    pub resource: Option<String>,
    /// The object of the last event, if it is not the object that the key names.
    pub object: Option<String>,
    /// Number of times it occurred since the key was last taken.
    pub count: u32,
    /// Whether the key was enqueued with a delay.
    pub delayed: bool,
}

/// A past reconcile of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReconcileExplanation {
    /// Time at which it ended, in RFC 3339.
    pub at: String,
    /// Seconds since it ended.
    pub seconds_ago: f64,
    /// Duration of the reconcile, in seconds.
    pub took_seconds: f64,
    /// Number of the try in a row, from 1.
    pub attempt: u32,
    /// Why the key was enqueued.
    pub triggers: Vec<TriggerExplanation>,
    /// The resource version of the object that was seen.
    pub resource_version: Option<String>,
    /// Whether that object was being deleted.
    pub terminating: bool,
    /// Whether the cache lacked the object.
    pub missing: bool,
    /// Decisions of the controller with their reasons, in its words.
    pub decisions: Vec<String>,
    /// Writes of the reconcile, one entry per verb and resource.
    pub writes: Vec<WriteExplanation>,
    /// The events that it recorded.
    pub events: Vec<EventExplanation>,
    /// Number of decisions, writes and events that are not listed.
    pub left_out: u32,
    /// Outcome of the reconcile: `Succeeded`, `Failed`, `Unreachable` or `Panicked`.
    pub outcome: String,
    /// The class of the error, as the metric `controller_reconciles` has it.
    pub class: Option<String>,
    /// The error with its causes, or the message of the panic.
    pub error: Option<String>,
    /// Seconds after which it asked to be called again.
    pub requeue_after_seconds: Option<f64>,
}

/// Writes of one reconcile with the same verb, resource and subresource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteExplanation {
    /// The verb, as RBAC names it.
    pub verb: String,
    /// The resource, as `pods`, or `replicasets.apps/status`.
    pub resource: String,
    /// The object of the first request.
    pub object: Option<String>,
    /// Number of requests that were sent.
    pub count: u32,
    /// Number of requests that failed.
    pub failed: u32,
    /// The error of the first failed request.
    pub error: Option<String>,
}

/// Events of one reconcile with the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventExplanation {
    /// Reason of the events, in upper camel case.
    pub reason: String,
    /// The message of the first event.
    pub message: String,
    /// Number of events with this reason.
    pub count: u32,
}

/// Makes decisions readable: the resources of the caches of a loop, by their positions, and the time.
pub(crate) struct Reader<'a> {
    pub(crate) resources: &'a [String],
    pub(crate) now: Timestamp,
}

impl WaitExplanation {
    pub(crate) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into(), in_seconds: None }
    }

    pub(crate) fn due_in(self, due_in: std::time::Duration) -> Self {
        Self { in_seconds: Some(seconds(due_in)), ..self }
    }
}

impl Reader<'_> {
    /// The explanations of decisions.
    pub(crate) fn reconciles(&self, decisions: &[Arc<Decision>]) -> Vec<ReconcileExplanation> {
        decisions.iter().map(|decision| self.reconcile(decision)).collect()
    }

    /// The explanations of triggers.
    pub(crate) fn triggers(&self, triggers: &[Trigger]) -> Vec<TriggerExplanation> {
        triggers.iter().map(|trigger| self.trigger(trigger)).collect()
    }

    fn resource(&self, cache: usize) -> String {
        self.resources.get(cache).cloned().unwrap_or_default()
    }

    fn trigger(&self, trigger: &Trigger) -> TriggerExplanation {
        let (reason, resource) = match trigger.cause {
            TriggerCause::Event { cache, change } => {
                let reason = match change {
                    ChangeKind::Added => "Added",
                    ChangeKind::Updated => "Updated",
                    ChangeKind::Undecodable => "Undecodable",
                    ChangeKind::Deleted => "Deleted",
                };
                (reason, Some(self.resource(cache)))
            }
            TriggerCause::Requeue => ("Requeue", None),
            TriggerCause::BackOff => ("BackOff", None),
            TriggerCause::OutageEnded => ("OutageEnded", None),
            TriggerCause::Unrecorded => ("Listed", None),
        };
        TriggerExplanation {
            reason: reason.to_owned(),
            resource,
            object: trigger.object.as_ref().map(ObjectKey::to_string),
            count: trigger.count,
            delayed: trigger.due.is_some(),
        }
    }

    fn reconcile(&self, decision: &Decision) -> ReconcileExplanation {
        let Decision { at, took, attempt, triggers, seen, noted, ended } = decision;
        let ago = std::time::Duration::try_from(self.now.duration_since(*at)).unwrap_or_default();
        let (resource_version, terminating) = match seen {
            None | Some(Seen::Missing) => (None, false),
            Some(Seen::Version(version)) => (Some(version.to_string()), false),
            Some(Seen::Terminating(version)) => (Some(version.to_string()), true),
        };
        let (outcome, class, error, requeue_after) = match ended {
            Ended::Succeeded { requeue_after } => ("Succeeded", None, None, *requeue_after),
            Ended::Failed { class, error } => ("Failed", Some((*class).to_owned()), Some(error), None),
            Ended::Unreachable { error } => ("Unreachable", None, Some(error), None),
            Ended::Panicked(message) => ("Panicked", None, Some(message), None),
        };
        let mut explained = ReconcileExplanation {
            at: rfc3339(*at),
            seconds_ago: seconds(ago),
            took_seconds: (took.as_secs_f64() * 1e6).round() / 1e6,
            attempt: *attempt,
            triggers: self.triggers(triggers),
            resource_version,
            terminating,
            missing: *seen == Some(Seen::Missing),
            decisions: Vec::new(),
            writes: Vec::new(),
            events: Vec::new(),
            left_out: noted.left_out,
            outcome: outcome.to_owned(),
            class,
            error: error.map(ToString::to_string),
            requeue_after_seconds: requeue_after.map(seconds),
        };
        self.add_notes(noted, &mut explained);
        explained
    }

    fn add_notes(&self, noted: &Noted, explained: &mut ReconcileExplanation) {
        for note in &noted.notes {
            match note {
                Note::Words(words) => explained.decisions.push(words.to_string()),
                Note::Wrote(wrote) => explained.writes.push(self.write(wrote)),
                Note::Recorded { reason, message, count } => explained.events.push(EventExplanation {
                    reason: reason.to_string(),
                    message: message.to_string(),
                    count: *count,
                }),
            }
        }
    }

    fn write(&self, wrote: &Wrote) -> WriteExplanation {
        let resource = match &wrote.resource {
            ResourceName::Cache(cache) => self.resource(*cache),
            ResourceName::Other(name) => name.to_string(),
        };
        let subresource = wrote.subresource.map(|subresource| format!("/{subresource}"));
        WriteExplanation {
            verb: wrote.verb.to_owned(),
            resource: resource + &subresource.unwrap_or_default(),
            object: wrote.object.as_ref().map(ObjectKey::to_string),
            count: wrote.count,
            failed: wrote.failed,
            error: wrote.error.as_deref().map(str::to_owned),
        }
    }
}

/// The time in RFC 3339, to milliseconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    at.round(Unit::Millisecond).unwrap_or(at).to_string()
}
