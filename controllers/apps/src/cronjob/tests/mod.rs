mod apply;
mod due;
mod event_mapping;
mod explain;
mod faults;
mod history;
mod invariants;
mod missed;
mod plan;
mod schedule;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kcm_framework::api::views::{CronJob, Job};
use serde_json::{Value, json};

use super::observe::{Observed, OwnedJob};
use super::schedule::{Schedule, TimeZones};
use crate::tests::cluster::NAMESPACE;
use crate::tests::fixtures::{ObjectBuilder, ago};

const UID: &str = "cron-uid";

type CronJobBuilder = ObjectBuilder<CronJob>;
type JobBuilder = ObjectBuilder<Job>;

fn zones() -> TimeZones {
    TimeZones::new(TimeZone::UTC)
}

fn schedule(text: &str) -> Schedule {
    Schedule::parse(text, &zones()).expect("the schedule of a test can be read")
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("must be a time")
}

/// A cron job that was created two hours ago.
fn cron_job(schedule: &str) -> CronJobBuilder {
    CronJobBuilder::from(json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": { "namespace": NAMESPACE, "name": "report", "uid": UID, "creationTimestamp": ago(7200) },
        "spec": {
            "schedule": schedule,
            "jobTemplate": {
                "metadata": { "labels": { "app": "report" }, "annotations": { "example.com/note": "a" } },
                "spec": {
                    "template": {
                        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "example/main:1" }] },
                    },
                },
            },
        },
        "status": {},
    }))
}

impl CronJobBuilder {
    fn spec(self, name: &str, value: Value) -> Self {
        self.with("/spec", name, value)
    }

    fn created_at(self, time: &str) -> Self {
        self.with("/metadata", "creationTimestamp", json!(time))
    }

    fn last_schedule(self, time: &str) -> Self {
        self.with("/status", "lastScheduleTime", json!(time))
    }

    fn active(self, names: &[&str]) -> Self {
        let reference = |name: &&str| {
            json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "namespace": NAMESPACE,
                "name": name,
                "uid": format!("uid-{name}"),
                "resourceVersion": "5",
            })
        };
        self.with("/status", "active", names.iter().map(reference).collect())
    }
}

/// A job of the cron job that was started a minute ago, and runs.
fn job(name: &str) -> JobBuilder {
    let job = JobBuilder::from(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "namespace": NAMESPACE, "name": name, "uid": format!("uid-{name}"), "resourceVersion": "5" },
        "spec": {},
        "status": { "startTime": ago(60) },
    }));
    job.owner("CronJob", "report", UID)
}

impl JobBuilder {
    fn finished(self, type_: &str) -> Self {
        self.with("/status", "conditions", json!([{ "type": type_, "status": "True" }]))
    }

    fn completed(self, seconds_ago: i64) -> Self {
        self.finished("Complete").with("/status", "completionTime", json!(ago(seconds_ago)))
    }

    fn started(self, seconds_ago: i64) -> Self {
        self.with("/status", "startTime", json!(ago(seconds_ago)))
    }
}

fn observed(cron_job: &CronJobBuilder, jobs: &[JobBuilder]) -> Observed {
    let jobs = jobs.iter().map(|job| OwnedJob::of(&job.build())).collect();
    Observed { cron_job: Arc::clone(&cron_job.build()), jobs }
}
