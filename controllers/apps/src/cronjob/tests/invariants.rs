//! The rules of CronJobs for every history.

use jiff::Timestamp;
use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::{CronJob, Job};
use kcm_simulation::{Change, History, Invariant, Objects};
use kcm_testing::sandbox::Verb;
use serde_json::{Value, json};

use crate::tests::cluster::NAMESPACE;
use crate::tests::invariants::{
    Held, Story, check, controlled, has_condition, holds, holds_at_rest, is_terminating, items, name, of, seen_owner,
    text, uid, writes_of,
};

const LOOP: &str = "cronjob";
const SCHEDULED: &str = "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[
    starts_one_job_for_each_time,
    starts_jobs_in_order,
    keeps_the_concurrency_policy,
    starts_nothing_while_suspended,
    last_schedule_time_never_falls,
    keeps_the_history,
    lists_unfinished_jobs_at_rest,
];

fn has_finished(job: &Value) -> bool {
    has_condition(job, "Complete") || has_condition(job, "Failed")
}

/// Calls `look` for each job that the loop creates, with the owner that the reconcile has seen.
fn created_jobs(history: &History, mut look: impl FnMut(usize, &Change, &Objects, (&Value, &Value)) -> Held) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let job = change.after.as_deref().filter(|_| change.creates() && change.resource == Job::RESOURCE);
        let Some(job) = job else { return Ok(()) };
        let Some(cron_job) = seen_owner(history, at, &CronJob::RESOURCE, job) else { return Ok(()) };
        look(at, change, objects, (job, &cron_job))
    })
}

/// D7.1: a scheduled time has one job in the whole history of a CronJob.
fn starts_one_job_for_each_time(history: &History) -> Held {
    let minute = |job: &Value| name(job).rsplit_once('-').map(|(_, minute)| minute.to_owned());
    created_jobs(history, |at, change, _, (job, cron_job)| {
        let mut earlier =
            history.changes[..at].iter().filter(|earlier| earlier.creates()).filter_map(|it| it.after.as_deref());
        let is_twin = |other: &Value| {
            let owner = crate::tests::invariants::controller(other);
            owner.is_some_and(|owner| owner["uid"] == uid(cron_job)) && minute(other) == minute(job)
        };
        holds(!earlier.any(is_twin), "D7.1", "a time has a second job", at, change)
    })
}

/// D7.2: a job is for a time after the last time that the reconcile has seen.
fn starts_jobs_in_order(history: &History) -> Held {
    let time = |object: &Value, field: &str| text(object, field).parse::<Timestamp>().ok();
    created_jobs(history, |at, change, _, (job, cron_job)| {
        let Some(scheduled) = time(job, SCHEDULED) else { return Ok(()) };
        let is_later = time(cron_job, "/status/lastScheduleTime").is_none_or(|last| scheduled > last);
        holds(is_later, "D7.2", "a job is for a time that has passed", at, change)
    })
}

/// D7.3: `Forbid` starts no job while another has not finished, and `Replace` only after the others were deleted.
fn keeps_the_concurrency_policy(history: &History) -> Held {
    created_jobs(history, |at, change, objects, (_, cron_job)| {
        let unfinished = || controlled(objects, &Job::RESOURCE, uid(cron_job)).filter(|job| !has_finished(job));
        let may_start = match text(cron_job, "/spec/concurrencyPolicy") {
            "Forbid" => unfinished().next().is_none(),
            "Replace" => unfinished().all(is_terminating),
            _ => true,
        };
        holds(may_start, "D7.3", "a job is started beside another", at, change)
    })
}

/// D7.4: a suspended CronJob starts nothing, nor does a terminating one.
fn starts_nothing_while_suspended(history: &History) -> Held {
    created_jobs(history, |at, change, _, (_, cron_job)| {
        let may_start = cron_job["spec"]["suspend"] != true && !is_terminating(cron_job);
        holds(may_start, "D7.4", "a suspended CronJob starts a job", at, change)
    })
}

/// D7.5: the last time of a schedule never falls.
fn last_schedule_time_never_falls(history: &History) -> Held {
    let last = |object: &Value| text(object, "/status/lastScheduleTime").parse::<Timestamp>().ok();
    writes_of(history, LOOP, |at, change, _| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(()) };
        let is_status = change.resource == CronJob::RESOURCE;
        holds(!is_status || last(before) <= last(after), "D7.5", "the last schedule time falls", at, change)
    })
}

/// D7.6: only finished jobs are deleted for the history, and as many are kept as the limits say. `Replace` deletes the
/// unfinished ones.
fn keeps_the_history(history: &History) -> Held {
    writes_of(history, LOOP, |at, change, objects| {
        let is_deletion = change.verb == Verb::Delete && change.resource == Job::RESOURCE;
        let Some(job) = change.before.as_deref().filter(|_| is_deletion) else { return Ok(()) };
        let Some(cron_job) = seen_owner(history, at, &CronJob::RESOURCE, job) else { return Ok(()) };
        if !has_finished(job) {
            let is_replaced = text(&cron_job, "/spec/concurrencyPolicy") == "Replace";
            return holds(is_replaced, "D7.6", "an unfinished job is deleted", at, change);
        }
        let (of_kind, limit, default) = if has_condition(job, "Complete") {
            ("Complete", "/spec/successfulJobsHistoryLimit", 3)
        } else {
            ("Failed", "/spec/failedJobsHistoryLimit", 1)
        };
        let limit = cron_job.pointer(limit).map_or(default, |limit| limit.as_i64().unwrap_or(default));
        let kept = controlled(objects, &Job::RESOURCE, uid(&cron_job))
            .filter(|other| has_condition(other, of_kind) && uid(other) != uid(job));
        holds(crate::tests::invariants::count(kept) >= limit, "D7.6", "a job is deleted that is kept", at, change)
    })
}

/// D7.7: at rest the status lists the unfinished jobs.
fn lists_unfinished_jobs_at_rest(history: &History) -> Held {
    let end = history.end();
    for cron_job in of(&end, &CronJob::RESOURCE).filter(|one| !is_terminating(one)) {
        let mut listed: Vec<&str> = items(cron_job, "/status/active").iter().map(|one| text(one, "/uid")).collect();
        let unfinished = controlled(&end, &Job::RESOURCE, uid(cron_job)).filter(|job| !has_finished(job));
        let mut unfinished: Vec<&str> = unfinished.map(uid).collect();
        listed.sort_unstable();
        unfinished.sort_unstable();
        holds_at_rest(listed == unfinished, "D7.7", "the status lists other jobs", cron_job)?;
    }
    Ok(())
}

fn cron_job(spec: &Value) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": spec,
        "status": { "lastScheduleTime": "2026-01-02T12:00:00Z" },
    })
}

fn job(minute: i64, ended: Option<&str>) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{minute}"), "namespace": NAMESPACE, "uid": format!("u-{minute}"),
            "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": format!("2026-01-02T12:{minute:02}:00Z") },
            "ownerReferences": [{ "name": "web", "uid": "u-web", "controller": true }],
        },
        "status": { "conditions": ended.map(|type_| json!({ "type": type_, "status": "True" })).into_iter().collect::<Vec<_>>() },
    })
}

fn story(spec: &Value, jobs: impl IntoIterator<Item = Value>) -> Story {
    let jobs = jobs.into_iter().map(|job| (Job::RESOURCE, job));
    Story::of([(CronJob::RESOURCE, cron_job(spec))].into_iter().chain(jobs))
}

fn started(story: Story, minute: i64) -> Story {
    story.create(LOOP, &Job::RESOURCE, job(minute, None))
}

#[test]
fn a_time_has_one_job_and_times_only_rise() {
    let again = |minute| {
        let story = started(story(&json!({}), []), 5).delete("user", &Job::RESOURCE, "web-5");
        started(story, minute)
    };
    check("D7.1", starts_one_job_for_each_time, again(6), again(5));
    check("D7.2", starts_jobs_in_order, started(story(&json!({}), []), 1), started(story(&json!({}), []), 0));
    let scheduled = |time: &str| {
        story(&json!({}), [])
            .edit(LOOP, &CronJob::RESOURCE, "web", |one| one["status"]["lastScheduleTime"] = time.into())
    };
    check("D7.5", last_schedule_time_never_falls, scheduled("2026-01-02T12:01:00Z"), scheduled("2026-01-02T11:00:00Z"));
}

#[test]
fn jobs_are_started_as_policy_and_suspension_say() {
    let beside = |policy: &str, ended| started(story(&json!({ "concurrencyPolicy": policy }), [job(1, ended)]), 2);
    check("D7.3", keeps_the_concurrency_policy, beside("Forbid", Some("Failed")), beside("Forbid", None));
    check("D7.3", keeps_the_concurrency_policy, beside("Allow", None), beside("Replace", None));
    let suspended = |is_suspended: bool| started(story(&json!({ "suspend": is_suspended }), []), 1);
    check("D7.4", starts_nothing_while_suspended, suspended(false), suspended(true));
}

#[test]
fn only_finished_jobs_beyond_the_limits_are_deleted() {
    let deleted = |first: Option<&str>| {
        let spec = json!({ "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1 });
        story(&spec, [job(1, first), job(2, Some("Complete"))]).delete(LOOP, &Job::RESOURCE, "web-1")
    };
    check("D7.6", keeps_the_history, deleted(Some("Complete")), deleted(Some("Failed")));
    check("D7.6", keeps_the_history, deleted(Some("Complete")), deleted(None));
}

#[test]
fn at_rest_the_status_lists_the_unfinished_jobs() {
    let listing = |uid: &str| {
        let story = story(&json!({}), [job(1, Some("Complete")), job(2, None)]);
        story.edit(LOOP, &CronJob::RESOURCE, "web", |one| one["status"]["active"] = json!([{ "uid": uid }]))
    };
    check("D7.7", lists_unfinished_jobs_at_rest, listing("u-2"), listing("u-1"));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
