//! Success policies, and criteria that are met at the same time.

use serde_json::{Value, json};

use super::{announced, case, check, failed, on_condition, succeeded, unlimited};
use crate::job::tests::fixtures::{JobBuilder, indexed, pod};

fn rules(rules: &Value) -> Value {
    json!({ "rules": rules })
}

/// An indexed job that is complete when one of its first two indexes has succeeded.
fn of(completions: i32) -> JobBuilder {
    let one_of_both = json!([{ "succeededIndexes": "0,1", "succeededCount": 1 }]);
    unlimited(indexed(completions)).spec("successPolicy", rules(&one_of_both))
}

fn per_index(job: JobBuilder, limit: i32) -> JobBuilder {
    job.spec("backoffLimitPerIndex", json!(limit))
}

fn disrupted() -> Value {
    json!([on_condition("FailJob", "DisruptionTarget")])
}

fn met(job: JobBuilder) -> JobBuilder {
    announced(job, "SuccessCriteriaMet", "SuccessPolicy")
}

#[test]
fn a_success_policy_ends_a_job_unless_it_fails_before() {
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
            "all completions are reached without a policy",
            unlimited(indexed(1)),
            vec![succeeded("a").index(0)],
            "0 active, 0 failed, 1 succeeded, 0 terminating; done 0; SuccessCriteriaMet(CompletionsReached); \
             Complete(CompletionsReached)",
        ),
        case(
            "all completions are reached before a rule is met",
            unlimited(indexed(2)).spec("successPolicy", rules(&json!([{ "succeededIndexes": "7" }]))),
            vec![succeeded("a").index(0), succeeded("b").index(1)],
            "0 active, 0 failed, 2 succeeded, 0 terminating; done 0,1; SuccessCriteriaMet(CompletionsReached); \
             Complete(CompletionsReached)",
        ),
        case(
            "no rule is met yet",
            of(3).spec("successPolicy", rules(&json!([{ "succeededIndexes": "0-2" }]))),
            vec![pod("a").index(0), succeeded("b").index(1), pod("c").index(2)],
            "2 active, 0 failed, 1 succeeded, 0 terminating; done 1",
        ),
    ] {
        check(case);
    }
}

#[test]
fn the_end_that_is_announced_first_stays() {
    let met_by_one = |job: JobBuilder| met(job).status("succeeded", json!(1)).status("completedIndexes", json!("1"));
    for case in [
        case(
            "it is announced, and the pod failure policy matches later",
            met_by_one(of(2).failure_rules(disrupted())),
            vec![failed("a").index(0).condition("DisruptionTarget"), succeeded("b").index(1)],
            "0 active, 1 failed, 1 succeeded, 0 terminating; done 1; SuccessCriteriaMet(SuccessPolicy); \
             Complete(SuccessPolicy)",
        ),
        case(
            "it is announced, and an index exceeds its limit later",
            met_by_one(per_index(of(2), 1).spec("successPolicy", rules(&json!([{ "succeededIndexes": "1" }])))),
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
    ] {
        check(case);
    }
}
