//! Which job is started, and what changes in the status.

use kcm_framework::api::Uid;
use kcm_framework::events::{Event as _, EventText};
use serde_json::json;

use super::{CronJobBuilder, JobBuilder, cron_job, job, observed, time, zones};
use crate::cronjob::due::due;
use crate::cronjob::events::CronJobEvent;
use crate::cronjob::plan::{Decision, Plan, plan};
use crate::tests::cluster::now;

/// The job of the start at [`now`].
const DUE: &str = "report-29455920";

fn planned(cron_job: &CronJobBuilder, jobs: &[JobBuilder], deleted: &[&str], missing: &[&str]) -> Plan {
    let uids = |names: &[&str]| names.iter().map(|name| Uid::from(&*format!("uid-{name}"))).collect::<Vec<_>>();
    let observed = observed(cron_job, jobs);
    let due = due(&observed.cron_job, &zones(), now());
    plan(&observed, due, &uids(deleted), &uids(missing))
}

fn word(decision: &Decision) -> String {
    match decision {
        Decision::Never(_) => "never".to_owned(),
        Decision::NotYet => "not yet".to_owned(),
        Decision::AlreadyStarted { .. } => "started before".to_owned(),
        Decision::Record { job, .. } => format!("record {}", job.name()),
        Decision::StillActive { .. } => "still active".to_owned(),
        Decision::Start { replaced, .. } => {
            let replaced: Vec<&str> = replaced.iter().map(|job| &*job.name).collect();
            format!("start, replacing {replaced:?}")
        }
    }
}

fn as_text(event: &CronJobEvent) -> String {
    let EventText { reason, message, .. } = event.text();
    format!("{reason}: {message}")
}

fn hourly() -> CronJobBuilder {
    cron_job("0 * * * *").last_schedule("2026-01-02T11:00:00Z")
}

fn policy(cron_job: CronJobBuilder, policy: &str) -> CronJobBuilder {
    cron_job.spec("concurrencyPolicy", json!(policy))
}

#[test]
fn a_job_is_started_by_the_concurrency_policy() {
    let running = || vec![job("a")];
    let active = || hourly().active(&["a"]);
    let done = || vec![job("a").completed(60)];
    for (name, cron_job, jobs, expected) in [
        ("nothing is active", hourly(), vec![], "start, replacing []"),
        ("Allow beside another", policy(active(), "Allow"), running(), "start, replacing []"),
        ("an unknown policy allows", policy(active(), "Queue"), running(), "start, replacing []"),
        ("Forbid beside another", policy(active(), "Forbid"), running(), "still active"),
        ("Forbid after another", policy(active(), "Forbid"), done(), "start, replacing []"),
        ("Forbid beside one that is not active", policy(hourly(), "Forbid"), running(), "start, replacing []"),
        ("Replace another", policy(active(), "Replace"), running(), r#"start, replacing ["a"]"#),
        ("Replace after another", policy(active(), "Replace"), done(), "start, replacing []"),
        ("not due", active().last_schedule("2026-01-02T12:00:00Z"), running(), "not yet"),
        ("suspended", active().spec("suspend", json!(true)), running(), "never"),
        ("active under the name of the start", hourly().active(&[DUE]), vec![job(DUE)], "started before"),
        ("exists under the name of the start", hourly(), vec![job(DUE)], "record report-29455920"),
        ("has finished under that name", hourly(), vec![job(DUE).completed(1)], "record report-29455920"),
        (
            "exists, and another is active",
            policy(active(), "Forbid"),
            vec![job("a"), job(DUE)],
            "record report-29455920",
        ),
        (
            "a second start of the minute",
            cron_job("@every 20s").last_schedule("2026-01-02T12:00:00Z").created_at("2026-01-02T11:59:00Z"),
            vec![],
            "not yet",
        ),
    ] {
        assert_eq!(word(&planned(&cron_job, &jobs, &[], &[]).decision), expected, "{name}");
    }
}

#[test]
fn of_a_week_of_missed_starts_the_last_is_started_within_any_deadline() {
    let overdue = || cron_job("0 * * * *").created_at("2025-12-01T00:00:00Z").last_schedule("2025-12-26T12:00:00Z");
    for concurrency in ["Allow", "Forbid", "Replace"] {
        for (deadline, is_warned) in [(None, true), (Some(1_000_000), true), (Some(7200), false), (Some(10), false)] {
            let cron_job = policy(overdue(), concurrency).spec("startingDeadlineSeconds", json!(deadline));
            let plan = planned(&cron_job, &[], &[], &[]);
            assert_eq!(word(&plan.decision), "start, replacing []", "{concurrency}, deadline {deadline:?}");
            let warned = plan.events.contains(&CronJobEvent::TooManyMissed);
            assert_eq!(warned, is_warned, "{concurrency}, deadline {deadline:?}");
        }
    }
}

#[test]
fn a_job_of_the_start_that_the_status_does_not_have_is_added_under_each_policy() {
    for concurrency in ["Allow", "Forbid", "Replace"] {
        let plan = planned(&policy(hourly(), concurrency), &[job(DUE)], &[], &[]);
        assert_eq!(word(&plan.decision), "record report-29455920", "{concurrency}");
    }
}

#[test]
fn of_several_starts_in_a_minute_one_is_started() {
    let observed = observed(&cron_job("@every 20s").last_schedule("2026-01-02T12:00:00Z"), &[]);
    let later = time("2026-01-02T12:00:41Z");
    let due = due(&observed.cron_job, &zones(), later);
    let plan = plan(&observed, due, &[], &[]);
    assert_eq!(plan.decision, Decision::AlreadyStarted { at: time("2026-01-02T12:00:40Z") });
    assert_eq!(plan.next, Some(time("2026-01-02T12:01:00Z")));
}

#[test]
fn the_status_has_the_jobs_that_run_and_the_last_success() {
    let waiting = || cron_job("0 1 * * *");
    let of = |plan: &Plan| {
        let active: Vec<String> = plan.status.active.iter().map(|job| job.name.to_string()).collect();
        let success = plan.status.last_successful_time.map(|at| now().duration_since(at).as_secs());
        let events: Vec<String> = plan.events.iter().map(as_text).collect();
        (active.join(" "), success, events.join("; "))
    };
    let had_success =
        |cron_job: CronJobBuilder| cron_job.with("/status", "lastSuccessfulTime", json!("2026-01-02T11:59:00Z"));
    for (name, cron_job, jobs, deleted, missing, expected) in [
        ("a job runs", waiting().active(&["a"]), vec![job("a")], &[][..], &[][..], ("a", None, "")),
        (
            "a job completed",
            waiting().active(&["a", "b"]),
            vec![job("a").completed(5), job("b")],
            &[],
            &[],
            ("b", Some(5), "SawCompletedJob: Saw completed job: a, condition: Complete"),
        ),
        (
            "a job failed",
            waiting().active(&["a"]),
            vec![job("a").finished("Failed")],
            &[],
            &[],
            ("", None, "SawCompletedJob: Saw completed job: a, condition: Failed"),
        ),
        (
            "a job that completed was deleted",
            waiting().active(&["a"]),
            vec![job("a").completed(5)],
            &["a"],
            &[],
            ("", Some(5), ""),
        ),
        ("an earlier success", had_success(waiting()), vec![job("a").completed(90)], &[], &[], ("", Some(60), "")),
        ("a later success", had_success(waiting()), vec![job("a").completed(50)], &[], &[], ("", Some(50), "")),
        ("a success without a time", waiting(), vec![job("a").finished("Complete")], &[], &[], ("", None, "")),
        (
            "a job is missing",
            waiting().active(&["a", "b"]),
            vec![job("b")],
            &[],
            &["a"],
            ("b", None, "MissingJob: Active job went missing: a"),
        ),
        ("a job is not in the cache yet", waiting().active(&["a"]), vec![], &[], &[], ("a", None, "")),
        (
            "a job was not created by the controller",
            waiting(),
            vec![job("a")],
            &[],
            &[],
            ("", None, "UnexpectedJob: Saw a job that the controller did not create or forgot: a"),
        ),
        ("the job of the start was created before", hourly(), vec![job(DUE)], &[], &[], ("", None, "")),
        (
            "a cron job that is being deleted",
            waiting().terminating().active(&["a"]),
            vec![job("a").completed(5)],
            &[],
            &[],
            ("", Some(5), "SawCompletedJob: Saw completed job: a, condition: Complete"),
        ),
    ] {
        let plan = planned(&cron_job, &jobs, deleted, missing);
        let (active, success, events) = of(&plan);
        assert_eq!((&*active, success, &*events), expected, "{name}");
    }
}

#[test]
fn what_keeps_a_job_from_being_started_is_an_event() {
    let page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
    let unsupported = |schedule: &str| {
        format!(
            "UnsupportedSchedule: CRON_TZ or TZ used in schedule {schedule:?} is not officially supported, see {page} for more details"
        )
    };
    let minutely = || cron_job("* * * * *");
    for (name, cron_job, expected) in [
        (
            "unparseable",
            cron_job("60 * * * *"),
            vec![r#"UnparseableSchedule: unparseable schedule: "60 * * * *" : end of range (60) above maximum (59): 60"#.to_owned()],
        ),
        (
            "never",
            cron_job("0 0 31 2 *"),
            vec!["InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second".to_owned()],
        ),
        (
            "unknown time zone",
            minutely().spec("timeZone", json!("Mars/Olympus")),
            vec![r#"UnknownTimeZone: invalid timeZone: "Mars/Olympus": unknown time zone Mars/Olympus"#.to_owned()],
        ),
        ("time zone in the schedule", cron_job("TZ=UTC 0 1 * * *"), vec![unsupported("TZ=UTC 0 1 * * *")]),
        (
            "unparseable time zone in the schedule",
            cron_job("TZ=UTC"),
            vec![
                unsupported("TZ=UTC"),
                r#"UnparseableSchedule: unparseable schedule: "TZ=UTC" : invalid schedule format: runtime error: slice bounds out of range [:-1]"#.to_owned(),
            ],
        ),
        ("suspended", cron_job("TZ=UTC").spec("suspend", json!(true)), vec![]),
        (
            "many were missed",
            minutely(),
            vec![
                "TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                    .to_owned(),
            ],
        ),
        (
            "another job runs",
            policy(hourly().active(&["a"]), "Forbid"),
            vec!["JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid".to_owned()],
        ),
    ] {
        let plan = planned(&cron_job, &[], &[], &[]);
        let events: Vec<String> = plan.events.iter().map(as_text).collect();
        assert_eq!(events, expected, "{name}");
    }
}

#[test]
fn types_and_reasons_of_events_are_those_of_upstream() {
    use kcm_framework::events::EventType::{Normal, Warning};

    let job = || "a".to_owned();
    for (event, expected) in [
        (CronJobEvent::Created { job: job() }, (Normal, "SuccessfulCreate", "Created job a")),
        (CronJobEvent::CreateFailed { error: job() }, (Warning, "FailedCreate", "Error creating job: a")),
        (CronJobEvent::Deleted { job: job() }, (Normal, "SuccessfulDelete", "Deleted job a")),
        (CronJobEvent::DeleteFailed { error: job() }, (Warning, "FailedDelete", "Deleted job: a")),
        (
            CronJobEvent::Completed { job: job(), condition: "Failed" },
            (Normal, "SawCompletedJob", "Saw completed job: a, condition: Failed"),
        ),
        (CronJobEvent::Missing { job: job() }, (Normal, "MissingJob", "Active job went missing: a")),
    ] {
        let EventText { type_, reason, message } = event.text();
        assert_eq!((type_, &*reason, &*message), expected);
    }
}
