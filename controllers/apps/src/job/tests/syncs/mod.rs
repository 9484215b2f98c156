//! The status after a whole reconcile whose requests all succeed: the pod failure policy, the limits of indexes and the
//! success policy together.

mod failure_policy;
mod index_limits;
mod success_policy;

use serde_json::{Value, json};

use super::fixtures::{JobBuilder, PodBuilder, applied, condition, indexed, job, pod, pods};
use crate::job::assess::assess;
use crate::job::backoff::BackoffRecord;
use crate::job::plan::plan;
use crate::job::track::{count, finish, track};
use crate::tests::cluster::now;
use kcm_framework::api::ConditionStatus;
use kcm_framework::api::views::JobStatus;

fn synced(job: &JobBuilder, builders: &[PodBuilder]) -> JobStatus {
    let (job, pods) = (job.build(), pods(builders));
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    let step = plan(&assessment, now());
    let mut tracking = track(&assessment, &step, applied(&step), true, now());
    for pod in tracking.release {
        tracking.tracked.remove(pod.uid());
    }
    count(&mut tracking.status, &tracking.tracked);
    finish(&mut tracking.status, tracking.ending.as_ref(), now());
    tracking.status
}

/// Active, failed, succeeded and terminating pods, the indexes that have succeeded and failed, and the conditions.
fn summary(status: &JobStatus) -> String {
    let uncounted = &status.uncounted;
    assert!(uncounted.succeeded.is_empty() && uncounted.failed.is_empty(), "all finalizers are removed: {uncounted:?}");
    let terminating = status.terminating.unwrap_or(-1);
    let pods = format!(
        "{} active, {} failed, {} succeeded, {terminating} terminating",
        status.active, status.failed, status.succeeded
    );
    let indexes = |what: &str, indexes: &str| (!indexes.is_empty()).then(|| format!("{what} {indexes}"));
    let done = indexes("done", &status.completed_indexes);
    let failed = indexes("failed", status.failed_indexes.as_deref().unwrap_or_default());
    let conditions = status.conditions.iter().filter(|condition| condition.status == ConditionStatus::True);
    let conditions = conditions.map(|condition| format!("{}({})", condition.type_, condition.reason));
    let parts: Vec<String> = [pods].into_iter().chain(done).chain(failed).chain(conditions).collect();
    parts.join("; ")
}

struct Case {
    name: &'static str,
    job: JobBuilder,
    pods: Vec<PodBuilder>,
    expected: &'static str,
}

fn case(name: &'static str, job: JobBuilder, pods: Vec<PodBuilder>, expected: &'static str) -> Case {
    Case { name, job, pods, expected }
}

fn check(Case { name, job, pods, expected }: Case) {
    assert_eq!(summary(&synced(&job, &pods)), expected, "{name}");
}

fn codes(action: &str, operator: &str, values: &[i32]) -> Value {
    json!({ "action": action, "onExitCodes": { "operator": operator, "values": values } })
}

fn on_condition(action: &str, type_: &str) -> Value {
    json!({ "action": action, "onPodConditions": [{ "type": type_, "status": "True" }] })
}

fn announced(job: JobBuilder, type_: &str, reason: &str) -> JobBuilder {
    job.status("conditions", json!([condition(type_, "True", reason)]))
}

/// Failed so long ago that no back-off is left.
fn failed(name: &str) -> PodBuilder {
    pod(name).failed(700)
}

fn succeeded(name: &str) -> PodBuilder {
    pod(name).succeeded(700)
}

fn unlimited(job: JobBuilder) -> JobBuilder {
    job.spec("backoffLimit", json!(i32::MAX))
}

#[test]
fn pods_that_run_stay_active_while_failed_ones_wait_for_their_back_off() {
    let wide = || job().completions(3).parallelism(3);
    for (name, pods, expected) in [
        ("two run", vec![pod("a").ready(), pod("b"), pod("c").failed(3)], (2, Some(1))),
        ("none runs", vec![pod("c").failed(3)], (0, Some(0))),
        ("all are ready", vec![pod("a").ready(), pod("b").ready(), pod("c").failed(3)], (2, Some(2))),
    ] {
        let status = synced(&wide(), &pods);
        assert_eq!((status.active, status.ready), expected, "{name}");
    }
}

#[test]
fn completions_that_were_lowered_leave_out_the_indexes_beyond() {
    let lowered =
        || indexed(3).status("completedIndexes", json!("0,2,4-6")).status("succeeded", json!(5)).parallelism(1);
    check(case(
        "without a new success",
        lowered(),
        vec![pod("a").index(1)],
        "1 active, 0 failed, 2 succeeded, 0 terminating; done 0,2",
    ));
    check(case(
        "with one in range and one beyond",
        lowered(),
        vec![succeeded("a").index(1), succeeded("b").index(7)],
        "0 active, 0 failed, 3 succeeded, 0 terminating; done 0-2; SuccessCriteriaMet(CompletionsReached); \
         Complete(CompletionsReached)",
    ));
}
