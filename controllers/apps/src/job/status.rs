//! The document of a job with another status.

use kcm_framework::api::time::format_seconds;
use kcm_framework::api::views::JobStatus;
use kcm_framework::api::{Condition, Document, EditError, Uid};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

const CONDITIONS: [&str; 2] = ["status", "conditions"];

/// The whole job, whose status is `current`, with another status. Unknown fields stay, and so do conditions that do not
/// change.
pub(super) fn with_status(document: &Document, current: &JobStatus, status: &JobStatus) -> Result<Document, EditError> {
    let mut document = document.clone();
    for (name, before, count) in [
        ("active", current.active, status.active),
        ("succeeded", current.succeeded, status.succeeded),
        ("failed", current.failed, status.failed),
    ] {
        if before != count {
            document.set(&["status", name], &count)?;
        }
    }
    for (name, before, count) in
        [("ready", current.ready, status.ready), ("terminating", current.terminating, status.terminating)]
    {
        if before != count {
            set_or_remove(&mut document, name, count.as_ref())?;
        }
    }
    for (name, before, time) in [
        ("startTime", current.start_time, status.start_time),
        ("completionTime", current.completion_time, status.completion_time),
    ] {
        if before != time {
            set_or_remove(&mut document, name, time.map(format_seconds).as_ref())?;
        }
    }
    if current.completed_indexes != status.completed_indexes {
        document.set(&["status", "completedIndexes"], &status.completed_indexes)?;
    }
    if current.failed_indexes != status.failed_indexes {
        set_or_remove(&mut document, "failedIndexes", status.failed_indexes.as_ref())?;
    }
    document.set(&["status", "uncountedTerminatedPods"], &Uncounted::of(status))?;
    if current.conditions != status.conditions {
        set_conditions(&mut document, &current.conditions, &status.conditions)?;
    }
    Ok(document)
}

fn set_or_remove<T: Serialize>(document: &mut Document, name: &str, value: Option<&T>) -> Result<(), EditError> {
    match value {
        Some(value) => document.set(&["status", name], value),
        None => document.remove(&["status", name]),
    }
}

/// The list of the status; upstream writes it also where it is empty.
#[derive(Serialize)]
struct Uncounted<'a> {
    #[serde(skip_serializing_if = "<[Uid]>::is_empty")]
    succeeded: &'a [Uid],
    #[serde(skip_serializing_if = "<[Uid]>::is_empty")]
    failed: &'a [Uid],
}

impl<'a> Uncounted<'a> {
    fn of(status: &'a JobStatus) -> Self {
        Self { succeeded: &status.uncounted.succeeded, failed: &status.uncounted.failed }
    }
}

fn set_conditions(document: &mut Document, current: &[Condition], wanted: &[Condition]) -> Result<(), EditError> {
    let path = || CONDITIONS.join(".");
    let present: Vec<Box<RawValue>> = document.items(&CONDITIONS)?.into_iter().map(ToOwned::to_owned).collect();
    let condition = |condition: &Condition| {
        let at = current.iter().position(|present| present == condition);
        match at.and_then(|at| present.get(at)) {
            Some(unchanged) => Ok(unchanged.clone()),
            None => to_raw_value(&NewCondition::of(condition)),
        }
    };
    let conditions: Result<Vec<_>, _> = wanted.iter().map(condition).collect();
    let conditions = conditions.map_err(|source| EditError::Value { path: path(), source })?;
    document.set(&CONDITIONS, &conditions)
}

/// A condition as jobs have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewCondition<'a> {
    #[serde(flatten)]
    condition: &'a Condition,
    last_probe_time: Option<String>,
}

impl<'a> NewCondition<'a> {
    fn of(condition: &'a Condition) -> Self {
        Self { condition, last_probe_time: condition.last_transition_time.map(format_seconds) }
    }
}
