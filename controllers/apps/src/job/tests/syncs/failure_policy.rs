//! Pod failure policies in whole syncs of a Job.

use serde_json::{Value, json};

use super::{announced, case, check, codes, failed, on_condition, synced};
use crate::job::tests::fixtures::{JobBuilder, PodBuilder, condition, indexed, job, pod};

/// The summary of a job that its policy has failed.
const FAILED: &str = "0 active, 1 failed, 0 succeeded, 0 terminating; FailureTarget(PodFailurePolicy); \
                      Failed(PodFailurePolicy)";

fn strict(job: JobBuilder) -> JobBuilder {
    job.spec("backoffLimit", json!(0))
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
fn a_pod_failure_policy_decides_by_exit_codes() {
    let ended = |code: i32| containers(failed("a"), &[("main", code)]);
    let rules = || json!([codes("Ignore", "In", &[1, 2, 3]), codes("FailJob", "In", &[5, 6, 7])]);
    let of_main = |mut rule: Value| {
        rule["onExitCodes"]["containerName"] = json!("main");
        rule
    };
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
        case("the code fails the job", job().failure_rules(rules()), vec![ended(5)], FAILED),
        case(
            "the failure is announced",
            announced(job().failure_rules(rules()), "FailureTarget", "PodFailurePolicy"),
            vec![ended(5)],
            FAILED,
        ),
        case(
            "the other pods of a job that fails are deleted, and fail",
            job().completions(2).parallelism(2).failure_rules(rules()),
            vec![ended(5), pod("b")],
            "0 active, 2 failed, 0 succeeded, 1 terminating; FailureTarget(PodFailurePolicy)",
        ),
        case("an indexed job", indexed(1).failure_rules(rules()), vec![ended(5).index(0)], FAILED),
        case(
            "a code that is not in the list",
            job().failure_rules(json!([codes("FailJob", "NotIn", &[5, 6, 7])])),
            vec![ended(42)],
            FAILED,
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
            FAILED,
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
    ] {
        check(case);
    }
}

#[test]
fn a_pod_failure_policy_decides_by_conditions() {
    let disrupted = |action: &str| json!([on_condition(action, "DisruptionTarget")]);
    let two_conditions = json!([
        { "type": "ResourceLimitExceeded", "status": "True" },
        { "type": "DisruptionTarget", "status": "True" },
    ]);
    for case in [
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
            FAILED,
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
