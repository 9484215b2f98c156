//! The rule of the time to live of jobs for every history.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::Job;
use kcm_simulation::{History, Invariant};
use kcm_testing::sandbox::Verb;
use serde_json::{Value, json};

use crate::tests::cluster::{NAMESPACE, now};
use crate::tests::invariants::{Held, Story, check, holds, items, text, writes_of};

const LOOP: &str = "ttl_jobs_to_delete";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] = &[deletes_only_what_has_expired];

/// D10: a job is deleted only if it has finished and its time to live has passed.
fn deletes_only_what_has_expired(history: &History) -> Held {
    let start = now();
    writes_of(history, LOOP, |at, change, _| {
        let Some(job) = change.before.as_deref().filter(|_| change.verb == Verb::Delete) else { return Ok(()) };
        let ended = items(job, "/status/conditions")
            .iter()
            .find(|one| ["Complete", "Failed"].contains(&text(one, "/type")) && one["status"] == "True");
        let ended = ended.and_then(|one| text(one, "/lastTransitionTime").parse::<Timestamp>().ok());
        let lives = job.pointer("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64);
        let is_over = ended
            .zip(lives)
            .is_some_and(|(ended, lives)| start + change.at >= ended + SignedDuration::from_secs(lives));
        holds(is_over, "D10", "a job is deleted that has not expired", at, change)
    })
}

fn deleted(finished: bool, lives: Option<i64>) -> Story {
    let status = if finished { "True" } else { "False" };
    let job = json!({
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "u-web" },
        "spec": { "ttlSecondsAfterFinished": lives },
        "status": { "conditions": [
            { "type": "Complete", "status": status, "lastTransitionTime": "2026-01-02T12:00:00Z" },
        ] },
    });
    Story::of([(Job::RESOURCE, job)]).delete(LOOP, &Job::RESOURCE, "web").at(Duration::from_mins(1))
}

#[test]
fn only_jobs_whose_time_has_passed_are_deleted() {
    for refused in [deleted(true, Some(61)), deleted(false, Some(60)), deleted(true, None)] {
        check("D10", deletes_only_what_has_expired, deleted(true, Some(60)), refused);
    }
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
