//! The status after a whole reconcile whose requests all succeed: the pod failure policy, the limits of indexes and the
//! success policy together.

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
    let mut text = format!(
        "{} active, {} failed, {} succeeded, {} terminating",
        status.active,
        status.failed,
        status.succeeded,
        status.terminating.unwrap_or(-1)
    );
    if !status.completed_indexes.is_empty() {
        text += &format!("; done {}", status.completed_indexes);
    }
    if let Some(failed) = status.failed_indexes.as_deref().filter(|failed| !failed.is_empty()) {
        text += &format!("; failed {failed}");
    }
    for condition in status.conditions.iter().filter(|condition| condition.status == ConditionStatus::True) {
        text += &format!("; {}({})", condition.type_, condition.reason);
    }
    text
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
fn a_success_policy_ends_a_job_unless_it_fails_before() {
    let rules = |rules: Value| json!({ "rules": rules });
    let one_of_both = || rules(json!([{ "succeededIndexes": "0,1", "succeededCount": 1 }]));
    let of = |completions: i32| unlimited(indexed(completions)).spec("successPolicy", one_of_both());
    let per_index = |job: JobBuilder, limit: i32| job.spec("backoffLimitPerIndex", json!(limit));
    let disrupted = || json!([on_condition("FailJob", "DisruptionTarget")]);
    let met = |job: JobBuilder| announced(job, "SuccessCriteriaMet", "SuccessPolicy");
    let met_by_one = |job: JobBuilder| met(job).status("succeeded", json!(1)).status("completedIndexes", json!("1"));
    let three_run = || vec![failed("a1").index(0), pod("a2").index(0), succeeded("b").index(1), pod("c").index(2)];
    let two = || vec![failed("a1").index(0), pod("a2").index(0), succeeded("b").index(1)];
    for case in [
        case(
            "the policy is met and an index has failed",
            of(3),
            three_run(),
            "0 active, 1 failed, 1 succeeded, 2 terminating; done 1; SuccessCriteriaMet(SuccessPolicy)",
        ),
        case(
            "the pod failure policy matches nothing",
            of(2).failure_rules(disrupted()),
            two(),
            "0 active, 1 failed, 1 succeeded, 1 terminating; done 1; SuccessCriteriaMet(SuccessPolicy)",
        ),
        case(
            "no index exceeds its limit",
            per_index(of(2), 2),
            two(),
            "0 active, 1 failed, 1 succeeded, 1 terminating; done 1; SuccessCriteriaMet(SuccessPolicy)",
        ),
        case(
            "it is announced, and all pods have finished",
            met(per_index(of(2), 2)),
            vec![failed("a").index(0), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; SuccessCriteriaMet(SuccessPolicy); \
             Complete(SuccessPolicy)",
        ),
        case(
            "it is announced, and some pods run",
            met(per_index(of(3), 3)),
            vec![failed("a1").index(0), pod("a2").index(1), succeeded("b").index(1), pod("c").index(2)],
            "0 active, 1 failed, 1 succeeded, 2 terminating; done 1; SuccessCriteriaMet(SuccessPolicy)",
        ),
        case(
            "the pod failure policy comes first",
            of(2).failure_rules(disrupted()),
            vec![failed("a1").index(0).condition("DisruptionTarget"), pod("a2").index(0), succeeded("b").index(1)],
            "0 active, 2 failed, 1 succeeded, 1 terminating; done 1; FailureTarget(PodFailurePolicy)",
        ),
        case(
            "the limit of an index comes first",
            per_index(of(2), 1),
            vec![failed("a").index(0).failures_before(1, 0), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; failed 0; FailureTarget(FailedIndexes); \
             Failed(FailedIndexes)",
        ),
        case(
            "the back-off limit comes first",
            of(2).spec("backoffLimit", json!(1)),
            vec![failed("a1").index(0), failed("a2").index(0), succeeded("b").index(1)],
            "0 active, 2 failed, 1 succeeded, 0 terminating; done 1; FailureTarget(BackoffLimitExceeded); \
             Failed(BackoffLimitExceeded)",
        ),
        case(
            "it is announced, and the pod failure policy matches later",
            met_by_one(of(2).failure_rules(disrupted())),
            vec![failed("a").index(0).condition("DisruptionTarget"), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; SuccessCriteriaMet(SuccessPolicy); \
             Complete(SuccessPolicy)",
        ),
        case(
            "it is announced, and an index exceeds its limit later",
            met_by_one(per_index(of(2), 1).spec("successPolicy", rules(json!([{ "succeededIndexes": "1" }])))),
            vec![failed("a").index(0).failures_before(1, 0), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; failed 0; SuccessCriteriaMet(SuccessPolicy); \
             Complete(SuccessPolicy)",
        ),
        case(
            "it is announced, and the back-off limit is exceeded later",
            met_by_one(of(2).spec("backoffLimit", json!(0))),
            vec![failed("a").index(0), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; SuccessCriteriaMet(SuccessPolicy); \
             Complete(SuccessPolicy)",
        ),
        case(
            "the failure is announced, and the policy is met later",
            announced(of(2).failure_rules(disrupted()), "FailureTarget", "PodFailurePolicy").status("failed", json!(1)),
            vec![failed("a").index(0).condition("DisruptionTarget").counted(), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; FailureTarget(PodFailurePolicy); \
             Failed(PodFailurePolicy)",
        ),
        case(
            "all completions are reached without a policy",
            unlimited(indexed(1)),
            vec![succeeded("a").index(0)],
            "0 active, 0 failed, 1 succeeded, 0 terminating; done 0; SuccessCriteriaMet(CompletionsReached); \
             Complete(CompletionsReached)",
        ),
        case(
            "all completions are reached before a rule is met",
            unlimited(indexed(2)).spec("successPolicy", rules(json!([{ "succeededIndexes": "7" }]))),
            vec![succeeded("a").index(0), succeeded("b").index(1)],
            "0 active, 0 failed, 2 succeeded, 0 terminating; done 0,1; SuccessCriteriaMet(CompletionsReached); \
             Complete(CompletionsReached)",
        ),
        case(
            "no rule is met yet",
            of(3).spec("successPolicy", rules(json!([{ "succeededIndexes": "0-2" }]))),
            vec![pod("a").index(0), succeeded("b").index(1), pod("c").index(2)],
            "2 active, 0 failed, 1 succeeded, 0 terminating; done 1",
        ),
    ] {
        check(case);
    }
}

#[test]
fn an_index_fails_by_its_own_limit_and_the_others_go_on() {
    let of = |completions: i32| unlimited(indexed(completions)).spec("backoffLimitPerIndex", json!(1));
    let first = |pod: PodBuilder, index: i32| pod.index(index).failures_before(0, 0);
    let second = |pod: PodBuilder, index: i32| pod.index(index).failures_before(1, 0);
    let rule = |action: &str| json!([codes(action, "In", &[1])]);
    for case in [
        case(
            "an index succeeds after one failure",
            of(2),
            vec![first(failed("a1"), 0), second(succeeded("a2"), 0), first(succeeded("b"), 1)],
            "0 active, 1 failed, 2 succeeded, 0 terminating; done 0,1; SuccessCriteriaMet(CompletionsReached); \
             Complete(CompletionsReached)",
        ),
        case(
            "a failed pod is not counted before the cache shows its replacement",
            of(2),
            vec![first(failed("a"), 0)],
            "2 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "a failed pod is counted once its replacement exists",
            of(2),
            vec![first(failed("a"), 0), second(pod("b").phase("Pending"), 0)],
            "2 active, 1 failed, 0 succeeded, 0 terminating",
        ),
        // kubernetes/kubernetes#139428: the API server refuses more ready pods than active ones.
        case(
            "the running pod of another index stays active while a replacement waits",
            of(2),
            vec![first(pod("a").ready(), 0), first(pod("b").failed(0), 1)],
            "1 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "an index that exceeds its limit fails alone",
            of(2),
            vec![second(failed("a"), 0)],
            "1 active, 1 failed, 0 succeeded, 0 terminating; failed 0",
        ),
        case(
            "the action FailIndex fails the index at once",
            of(2).failure_rules(rule("FailIndex")),
            vec![first(failed("a"), 0)],
            "1 active, 1 failed, 0 succeeded, 0 terminating; failed 0",
        ),
        case(
            "the action FailJob fails the job",
            of(2).failure_rules(rule("FailJob")),
            vec![first(failed("a"), 0)],
            "0 active, 1 failed, 0 succeeded, 0 terminating; FailureTarget(PodFailurePolicy); Failed(PodFailurePolicy)",
        ),
        case(
            "an ignored failure is no failure of the index",
            of(2).failure_rules(rule("Ignore")),
            vec![first(failed("a"), 0)],
            "2 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "the job exceeds its limit before an index does",
            of(2).spec("backoffLimit", json!(1)),
            vec![first(failed("a"), 0), first(failed("b"), 1)],
            "0 active, 2 failed, 0 succeeded, 0 terminating; FailureTarget(BackoffLimitExceeded); \
             Failed(BackoffLimitExceeded)",
        ),
        case(
            "all indexes have finished, and one has failed",
            of(2),
            vec![second(failed("a"), 0), first(succeeded("b"), 1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; failed 0; FailureTarget(FailedIndexes); \
             Failed(FailedIndexes)",
        ),
        case(
            "more indexes have failed than may",
            of(4).spec("maxFailedIndexes", json!(1)),
            vec![second(failed("a"), 0), first(succeeded("b"), 1), second(failed("c"), 2), first(pod("d"), 3)],
            "0 active, 3 failed, 1 succeeded, 1 terminating; done 1; failed 0,2; \
             FailureTarget(MaxFailedIndexesExceeded)",
        ),
    ] {
        check(case);
    }
}

/// Containers that ended with these codes, the first of them `main`.
fn containers(pod: PodBuilder, ended: &[(&str, i32)]) -> PodBuilder {
    let container = |(name, code): &(&str, i32)| {
        let ended = json!({ "exitCode": code, "finishedAt": "2026-01-02T11:45:00Z" });
        json!({ "name": name, "state": { "terminated": ended } })
    };
    pod.with("/status", "containerStatuses", ended.iter().map(container).collect())
}

#[test]
fn a_pod_failure_policy_decides_what_a_failure_means() {
    let ended = |code: i32| containers(failed("a"), &[("main", code)]);
    let rules = || json!([codes("Ignore", "In", &[1, 2, 3]), codes("FailJob", "In", &[5, 6, 7])]);
    let of_main = |mut rule: Value| {
        rule["onExitCodes"]["containerName"] = json!("main");
        rule
    };
    let strict = |job: JobBuilder| job.spec("backoffLimit", json!(0));
    let disrupted = |action: &str| json!([on_condition(action, "DisruptionTarget")]);
    let is_failed = "0 active, 1 failed, 0 succeeded, 0 terminating; FailureTarget(PodFailurePolicy); \
                     Failed(PodFailurePolicy)";
    let two_conditions = json!([
        { "type": "ResourceLimitExceeded", "status": "True" },
        { "type": "DisruptionTarget", "status": "True" },
    ]);
    for case in [
        case(
            "the code of another container",
            job().failure_rules(json!([of_main(rules()[0].clone()), of_main(rules()[1].clone())])),
            vec![containers(failed("a"), &[("monitoring", 5), ("main", 42)])],
            "1 active, 1 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "the code of a pod that runs",
            job().failure_rules(rules()),
            vec![containers(pod("a"), &[("main", 5)])],
            "1 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case("the code fails the job", job().failure_rules(rules()), vec![ended(5)], is_failed),
        case(
            "the failure is announced",
            announced(job().failure_rules(rules()), "FailureTarget", "PodFailurePolicy"),
            vec![ended(5)],
            is_failed,
        ),
        case(
            "the other pods of a job that fails are deleted, and fail",
            job().completions(2).parallelism(2).failure_rules(rules()),
            vec![ended(5), pod("b")],
            "0 active, 2 failed, 0 succeeded, 1 terminating; FailureTarget(PodFailurePolicy)",
        ),
        case("an indexed job", indexed(1).failure_rules(rules()), vec![ended(5).index(0)], is_failed),
        case(
            "a code that is not in the list",
            job().failure_rules(json!([codes("FailJob", "NotIn", &[5, 6, 7])])),
            vec![ended(42)],
            is_failed,
        ),
        case(
            "a code that is in the list of exceptions",
            job().failure_rules(json!([codes("FailJob", "NotIn", &[5, 6, 7])])),
            vec![ended(5)],
            "1 active, 1 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "the code of an init container",
            job().failure_rules(rules()),
            vec![ended(143).with(
                "/status",
                "initContainerStatuses",
                json!([{ "name": "setup", "state": { "terminated": { "exitCode": 5 } } }]),
            )],
            is_failed,
        ),
        case(
            "of two rules that match, the first",
            strict(job()).failure_rules(rules()),
            vec![containers(failed("a"), &[("main", 2), ("side", 6)])],
            "1 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "an ignored failure does not count towards the limit",
            strict(job()).failure_rules(rules()),
            vec![ended(1)],
            "1 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "a failure that no rule matches counts towards the limit",
            strict(job()).failure_rules(rules()),
            vec![ended(10)],
            "0 active, 1 failed, 0 succeeded, 0 terminating; FailureTarget(BackoffLimitExceeded); \
             Failed(BackoffLimitExceeded)",
        ),
        case(
            "a failure counts by code before it is ignored",
            job().failure_rules(json!([codes("Count", "In", &[1, 2]), codes("Ignore", "In", &[2, 3])])),
            vec![ended(2)],
            "1 active, 1 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "a failure counts by condition before it is ignored",
            job().failure_rules(json!([
                on_condition("Count", "ResourceLimitExceeded"),
                on_condition("Ignore", "DisruptionTarget"),
            ])),
            vec![failed("a").with("/status", "conditions", two_conditions)],
            "1 active, 1 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "a failure is ignored by condition",
            strict(job()).failure_rules(disrupted("Ignore")),
            vec![failed("a").condition("DisruptionTarget")],
            "1 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "an ignored failure delays its replacement",
            strict(job()).failure_rules(disrupted("Ignore")),
            vec![pod("a").failed(0).terminating().condition("DisruptionTarget")],
            "0 active, 0 failed, 0 succeeded, 0 terminating",
        ),
        case(
            "a condition fails the job",
            job().failure_rules(disrupted("FailJob")),
            vec![failed("a").condition("DisruptionTarget")],
            is_failed,
        ),
        case(
            "a terminating pod has not failed",
            strict(job().spec("completions", json!(null))).failure_rules(disrupted("Count")),
            vec![pod("a").terminating()],
            "0 active, 0 failed, 0 succeeded, 1 terminating",
        ),
    ] {
        check(case);
    }
}

#[test]
fn the_message_names_the_first_pod_that_failed_the_job_also_if_it_is_deleted() {
    let rules = || json!([codes("FailJob", "In", &[5])]);
    let two = job().completions(2).parallelism(2).failure_rules(rules());
    let ended = |name: &str| containers(failed(name), &[("main", 5)]);
    let message = |name: &str| {
        format!("Container main for pod shop/{name} failed with exit code 5 matching FailJob rule at index 0")
    };
    let mut target = condition("FailureTarget", "True", "PodFailurePolicy");
    target["message"] = json!(message("deleted"));
    let marked = two.clone().status("conditions", json!([target]));
    for (name, job, pods, expected) in [
        ("of two", two, vec![ended("a"), ended("b")], "a"),
        ("the pod of the announced failure is deleted", marked, vec![ended("b")], "deleted"),
    ] {
        let status = synced(&job, &pods);
        let messages: Vec<&str> = status.conditions.iter().map(|condition| &*condition.message).collect();
        assert_eq!(messages, [message(expected), message(expected)], "{name}");
    }
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
