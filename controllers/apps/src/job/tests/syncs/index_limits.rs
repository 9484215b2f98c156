//! Indexes with a limit of their own.

use serde_json::json;

use super::{case, check, codes, failed, succeeded, unlimited};
use crate::job::tests::fixtures::{PodBuilder, indexed, pod};

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
