//! Jobs and cron jobs.

use super::column::{AGE, NAME, Row, boolean, integer, text};
use super::duration::human_duration;
use super::phrase::{self, NONE, UNSET};
use super::pods::{CONTAINERS, IMAGES};
use super::workloads::SELECTOR;
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "jobs" => JOBS,
        "cronjobs" => CRON_JOBS,
        _ => PLAIN,
    }
}

const JOBS: Columns = &[
    NAME,
    text("Status", "How far the job is.", |row| status(row).into()),
    text("Completions", "Pods that succeeded, of those wanted.", |row| completions(row).into()),
    text("Duration", "How long the job took or has been taking.", |row| duration(row).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOBS: Columns = &[
    NAME,
    text("Schedule", "When jobs are made, in the form of cron.", |row| row.text("/spec/schedule")),
    text("Timezone", "The time zone of the schedule.", |row| row.text_or("/spec/timeZone", NONE)),
    boolean("Suspend", "Whether no more jobs are made.", |row| match row.at("/spec/suspend") {
        None => UNSET.into(),
        Some(_) if row.flag("/spec/suspend") => "True".into(),
        Some(_) => "False".into(),
    }),
    integer("Active", "Jobs that run.", |row| row.count("/status/active")),
    text("Last Schedule", "How long ago a job was last made.", |row| match row.at("/status/lastScheduleTime") {
        None => NONE.into(),
        Some(_) => row.since("/status/lastScheduleTime").into(),
    }),
    AGE,
    text("Containers", "Names of the containers.", |row| {
        row.joined("/spec/jobTemplate/spec/template/spec/containers", "name")
    })
    .wide(),
    text("Images", "Images of the containers.", |row| {
        row.joined("/spec/jobTemplate/spec/template/spec/containers", "image")
    })
    .wide(),
    text("Selector", "Which pods are selected.", |row| {
        phrase::selector_or_none(row.at("/spec/jobTemplate/spec/selector"))
    })
    .wide(),
];

fn status(row: &Row<'_>) -> &'static str {
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

fn completions(row: &Row<'_>) -> String {
    let succeeded = row.int("/status/succeeded");
    match row.at("/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if row.int("/spec/parallelism") > 1 => format!("{succeeded}/1 of {}", row.int("/spec/parallelism")),
        None => format!("{succeeded}/1"),
    }
}

fn duration(row: &Row<'_>) -> String {
    let Some(start) = row.time("/status/startTime") else { return String::new() };
    let end = row.time("/status/completionTime").unwrap_or(row.now);
    human_duration(end.duration_since(start).as_secs())
}
