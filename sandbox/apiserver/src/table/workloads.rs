//! Jobs, and what controls a revision.

use serde_json::Value;

use super::duration::human_duration;
use super::phrase::{NONE, text_of};
use super::row::Row;

pub(super) fn controller(row: &Row<'_>) -> Value {
    let controls = |owner: &&Value| owner["controller"] == true;
    let Some(owner) = row.list("/metadata/ownerReferences").iter().find(controls) else { return NONE.into() };
    let kind = text_of(owner, "kind");
    let kind = match text_of(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    };
    format!("{}/{}", kind.to_lowercase(), text_of(owner, "name")).into()
}

pub(super) fn job_status(row: &Row<'_>) -> &'static str {
    if row.is_true("Complete") {
        return "Complete";
    }
    if row.is_true("Failed") {
        return "Failed";
    }
    if row.is_terminating() {
        return "Terminating";
    }
    let passing = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
    passing.into_iter().find(|kind| row.is_true(kind)).unwrap_or("Running")
}

pub(super) fn job_completions(row: &Row<'_>) -> String {
    let succeeded = row.int("/status/succeeded");
    match row.at("/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if row.int("/spec/parallelism") > 1 => format!("{succeeded}/1 of {}", row.int("/spec/parallelism")),
        None => format!("{succeeded}/1"),
    }
}

pub(super) fn job_duration(row: &Row<'_>) -> String {
    let Some(start) = row.time("/status/startTime") else { return String::new() };
    let end = row.time("/status/completionTime").unwrap_or(row.now);
    human_duration(end.duration_since(start).as_secs())
}
