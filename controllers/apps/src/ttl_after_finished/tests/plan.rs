//! When a job is deleted.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{completed, condition, view_of, with};
use crate::tests::cluster::now;
use crate::tests::fixtures::ago;
use crate::ttl_after_finished::plan::{KeepReason, Plan, plan};

fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn conditions(list: Value) -> Value {
    with(completed("a", 0), "/status", "conditions", list)
}

#[test]
fn a_job_is_deleted_its_time_to_live_after_it_has_finished() {
    let keep = |reason| Plan::Keep(reason);
    for (name, job, expected) in [
        ("just finished", completed("a", 0), Plan::Wait { until: after(60) }),
        ("just before the end", completed("a", 59), Plan::Wait { until: after(1) }),
        ("at the end", completed("a", 60), Plan::Delete { expired_at: after(0) }),
        ("long after", completed("a", 3600), Plan::Delete { expired_at: after(-3540) }),
        (
            "failed",
            conditions(json!([condition("FailureTarget", "True", 90), condition("Failed", "True", 70)])),
            Plan::Delete { expired_at: after(-10) },
        ),
        (
            "at once",
            with(completed("a", 0), "/spec", "ttlSecondsAfterFinished", json!(0)),
            Plan::Delete { expired_at: after(0) },
        ),
        ("finished in the future", completed("a", -30), Plan::Wait { until: after(90) }),
        (
            "in the future, to be deleted at once",
            with(completed("a", -30), "/spec", "ttlSecondsAfterFinished", json!(0)),
            Plan::Wait { until: after(30) },
        ),
        ("suspended", conditions(json!([condition("Suspended", "True", 90)])), keep(KeepReason::Unfinished)),
        ("not complete", conditions(json!([condition("Complete", "False", 90)])), keep(KeepReason::Unfinished)),
        ("without a status", conditions(Value::Null), keep(KeepReason::Unfinished)),
        (
            "without a time to live",
            with(completed("a", 90), "/spec", "ttlSecondsAfterFinished", Value::Null),
            keep(KeepReason::NoTimeToLive),
        ),
        (
            "being deleted",
            with(completed("a", 90), "/metadata", "deletionTimestamp", json!(ago(1))),
            keep(KeepReason::Terminating),
        ),
    ] {
        assert_eq!(plan(&view_of(&job), now()), Ok(expected), "{name}");
    }
}

#[test]
fn a_time_to_live_beyond_the_calendar_never_ends() {
    let far = "9999-12-30T00:00:00Z";
    let job = conditions(json!([{ "type": "Complete", "status": "True", "lastTransitionTime": far }]));
    let job = with(job, "/spec", "ttlSecondsAfterFinished", json!(i32::MAX));
    assert_eq!(plan(&view_of(&job), now()), Ok(Plan::Wait { until: Timestamp::MAX }));
}

#[test]
fn a_job_that_finished_at_no_time_is_named() {
    let job = conditions(json!([{ "type": "Complete", "status": "True" }]));
    let error = plan(&view_of(&job), now()).unwrap_err();
    assert_eq!(error.to_string(), "cannot tell when job shop/a finished: its condition has no transition time");
}

#[test]
fn a_plan_in_words_has_its_reason() {
    for (plan, words) in [
        (Plan::Keep(KeepReason::NoTimeToLive), "keeps the job, which has no ttlSecondsAfterFinished"),
        (Plan::Keep(KeepReason::Unfinished), "keeps the job, which has not finished"),
        (Plan::Keep(KeepReason::Terminating), "leaves the job, which is being deleted"),
        (Plan::Wait { until: after(60) }, "keeps the job until 2026-01-02T12:01:00Z, when its time to live ends"),
        (Plan::Delete { expired_at: now() }, "deletes the job, whose time to live ended at 2026-01-02T12:00:00Z"),
    ] {
        assert_eq!(plan.explain(), words);
    }
}
