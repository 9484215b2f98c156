//! What a job and its pods amount to, and whether the job ends.

use serde_json::json;

use super::fixtures::{JobBuilder, PodBuilder, before, condition, indexed, job, pod, pods};
use crate::job::assess::assess;
use crate::job::backoff::BackoffRecord;
use crate::job::conditions::JobResult;
use crate::tests::cluster::now;
use crate::tests::fixtures::ago;

/// The counts of succeeded, failed, ready and terminating pods.
fn counts(job: &JobBuilder, builders: &[PodBuilder]) -> [i32; 4] {
    let (job, pods) = (job.build(), pods(builders));
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    [assessment.succeeded, assessment.failed, assessment.ready, assessment.terminating]
}

#[test]
fn pods_are_counted_that_the_status_does_not_count_yet() {
    let counted = job().status("succeeded", json!(2)).status("failed", json!(1));
    let listed =
        counted.clone().status("uncountedTerminatedPods", json!({ "succeeded": ["uid-of-a"], "failed": ["x"] }));
    let failed_only = job().spec("podReplacementPolicy", json!("Failed"));
    let a = || pod("a").succeeded(5);
    for (name, job, pods, expected) in [
        ("no pods", counted.clone(), vec![], [2, 1, 0, 0]),
        ("a new success", counted.clone(), vec![a()], [3, 1, 0, 0]),
        ("without its finalizer it is counted", counted.clone(), vec![a().counted()], [2, 1, 0, 0]),
        ("in the list, with its finalizer", listed.clone(), vec![a()], [3, 2, 0, 0]),
        ("in the list, without its finalizer", listed, vec![a().counted()], [3, 2, 0, 0]),
        ("running pods", counted, vec![pod("a").ready(), pod("b")], [2, 1, 1, 0]),
        ("a terminating pod has failed", job(), vec![pod("a").terminating()], [0, 1, 0, 1]),
        ("unless only failed ones are replaced", failed_only.clone(), vec![pod("a").terminating()], [0, 0, 0, 1]),
        ("a failed one that is being deleted", failed_only, vec![pod("a").failed(1).terminating()], [0, 1, 0, 0]),
        ("indexes count once", indexed(3), vec![a().index(0), pod("b").succeeded(1).index(0)], [1, 0, 0, 0]),
        (
            "indexes beyond the completions, and pods without one, do not count",
            indexed(3),
            vec![a().index(3), pod("b").failed(1), pod("c").failed(1).index(9)],
            [0, 0, 0, 0],
        ),
        (
            "completed indexes count",
            indexed(5).status("completedIndexes", json!("0-2")).status("succeeded", json!(3)),
            vec![a().index(2), pod("b").succeeded(1).index(4)],
            [4, 0, 0, 0],
        ),
        (
            "an ignored failure",
            job()
                .failure_rules(json!([{ "action": "Ignore", "onPodConditions": [{ "type": "X", "status": "True" }] }])),
            vec![pod("a").failed(1).condition("X"), pod("b").failed(1)],
            [0, 1, 0, 0],
        ),
    ] {
        assert_eq!(counts(&job, &pods), expected, "{name}");
    }
}

/// Result, reason and message.
fn ending(job: &JobBuilder, builders: &[PodBuilder]) -> Option<(JobResult, String, String)> {
    let (job, pods) = (job.build(), pods(builders));
    let ending = assess(&job, &pods, BackoffRecord::default(), now()).ending?;
    Some((ending.result, ending.reason.to_string(), ending.message.to_string()))
}

#[test]
fn a_job_ends_by_the_first_criterion_that_it_meets() {
    let failed = |count: i32| (0..count).map(|at| pod(&format!("f{at}")).failed(5)).collect::<Vec<_>>();
    let policy = json!([{ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [1] } }]);
    let deadline = |seconds: i32| job().spec("activeDeadlineSeconds", json!(seconds));
    let announced = |type_, status| job().status("conditions", json!([condition(type_, status, "Reason")]));
    for (name, job, pods, expected) in [
        ("it goes on", job(), failed(6), None),
        ("too many failures", job(), failed(7), Some((JobResult::Failed, "BackoffLimitExceeded"))),
        (
            "no failure is allowed",
            job().spec("backoffLimit", json!(0)),
            failed(1),
            Some((JobResult::Failed, "BackoffLimitExceeded")),
        ),
        ("before its deadline", deadline(3601), vec![], None),
        ("at its deadline", deadline(3600), vec![], Some((JobResult::Failed, "DeadlineExceeded"))),
        ("suspended", deadline(3600).spec("suspend", json!(true)), vec![], None),
        (
            "the limit comes before the deadline",
            deadline(3600),
            failed(7),
            Some((JobResult::Failed, "BackoffLimitExceeded")),
        ),
        (
            "the policy comes before the limit",
            job().failure_rules(policy.clone()),
            failed(7),
            Some((JobResult::Failed, "PodFailurePolicy")),
        ),
        ("an announced failure", announced("FailureTarget", "True"), vec![], Some((JobResult::Failed, "Reason"))),
        (
            "an announced success before failures",
            announced("SuccessCriteriaMet", "True"),
            failed(7),
            Some((JobResult::Complete, "Reason")),
        ),
        ("no announcement", announced("FailureTarget", "False"), vec![], None),
        ("no announcement of a success", announced("SuccessCriteriaMet", "False"), vec![], None),
        (
            "a success policy",
            indexed(3).spec("successPolicy", json!({ "rules": [{ "succeededCount": 1 }] })),
            vec![pod("a").succeeded(1).index(2)],
            Some((JobResult::Complete, "SuccessPolicy")),
        ),
        (
            "failures come before the success policy",
            indexed(3)
                .spec("successPolicy", json!({ "rules": [{ "succeededCount": 1 }] }))
                .spec("backoffLimit", json!(0)),
            vec![pod("a").succeeded(1).index(2), pod("b").failed(1).index(1)],
            Some((JobResult::Failed, "BackoffLimitExceeded")),
        ),
    ] {
        let ended = ending(&job, &pods).map(|(result, reason, _)| (result, reason));
        assert_eq!(ended, expected.map(|(result, reason)| (result, reason.to_owned())), "{name}");
    }
}

#[test]
fn containers_that_restart_too_often_fail_a_job_that_restarts_them() {
    let restarted = |name: &str, count: i32| {
        pod(name).with("/status", "containerStatuses", json!([{ "name": "main", "restartCount": count }]))
    };
    let restarting = |limit: i32| {
        let mut job = job().spec("backoffLimit", json!(limit));
        job.0["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        job
    };
    for (name, limit, pods, fails) in [
        ("none is allowed and none happened", 0, vec![restarted("a", 0)], false),
        ("none is allowed", 0, vec![restarted("a", 1)], true),
        ("one is the limit, of a pod that is pending", 1, vec![restarted("a", 1).phase("Pending")], true),
        ("fewer than the limit", 3, vec![restarted("a", 1), restarted("b", 1)], false),
        ("as many as the limit", 3, vec![restarted("a", 1), restarted("b", 2)], true),
        ("of a finished pod", 3, vec![restarted("a", 9).phase("Succeeded")], false),
    ] {
        assert_eq!(ending(&restarting(limit), &pods).is_some(), fails, "{name}");
        assert_eq!(ending(&job().spec("backoffLimit", json!(limit)), &pods), None, "{name}, by the kubelet alone");
    }
}

#[test]
fn indexes_fail_by_their_own_limit() {
    let limited =
        |limit: i32| indexed(3).spec("backoffLimitPerIndex", json!(limit)).spec("backoffLimit", json!(i32::MAX));
    let failed = |name: &str, index: i32, failures: i32| pod(name).failed(5).index(index).failures_before(failures, 0);
    let fail_index = json!([{ "action": "FailIndex", "onExitCodes": { "operator": "In", "values": [1] } }]);
    for (name, job, pods, indexes, reason) in [
        ("one failure of two", limited(1), vec![failed("a", 1, 0)], "", None),
        ("two failures of two", limited(1), vec![failed("a", 1, 1)], "1", None),
        ("counted before", limited(1).status("failedIndexes", json!("0")), vec![failed("a", 1, 1)], "0,1", None),
        ("without its finalizer", limited(1), vec![failed("a", 1, 1).counted()], "", None),
        ("the policy fails the index", limited(5).failure_rules(fail_index), vec![failed("a", 2, 0)], "2", None),
        (
            "too many indexes",
            limited(0).spec("maxFailedIndexes", json!(1)),
            vec![failed("a", 0, 0), failed("b", 1, 0)],
            "0,1",
            Some("MaxFailedIndexesExceeded"),
        ),
        (
            "all indexes are done, one of them failed",
            limited(0),
            vec![failed("a", 0, 0), pod("b").succeeded(1).index(1), pod("c").succeeded(1).index(2)],
            "0",
            Some("FailedIndexes"),
        ),
    ] {
        let (built, pods_of_job) = (job.build(), super::fixtures::pods(&pods));
        let assessment = assess(&built, &pods_of_job, BackoffRecord::default(), now());
        let failed = assessment.indexes.unwrap().failed.unwrap();
        assert_eq!(failed.to_string(), indexes, "{name}");
        assert_eq!(assessment.ending.map(|ending| ending.reason.to_string()).as_deref(), reason, "{name}");
    }
}

#[test]
fn the_last_failed_pod_of_an_index_awaits_another_one() {
    let job = indexed(9).spec("backoffLimitPerIndex", json!(3)).build();
    let failed = |name: &str, index: i32, failures: i32, ago: i64| {
        pod(name).failed(ago).index(index).failures_before(failures, 0)
    };
    let pods = pods(&[
        failed("first", 0, 0, 50),
        failed("last", 0, 1, 9),
        failed("replaced", 1, 0, 50),
        pod("replacing").index(1),
        failed("too-often", 2, 3, 9),
        pod("succeeded").succeeded(1).index(3),
        failed("before", 3, 0, 50),
        failed("counted", 4, 0, 50).counted(),
        failed("beyond", 9, 0, 50),
    ]);
    let indexes = assess(&job, &pods, BackoffRecord::default(), now()).indexes.unwrap();
    let awaiting: Vec<_> = indexes.awaiting.iter().map(|(index, pod)| (*index, pod.pod.metadata.key.name())).collect();
    assert_eq!(awaiting, [(0, "last")]);
}

#[test]
fn a_job_starts_when_it_first_runs_unless_it_is_suspended() {
    let start = |job: &JobBuilder| {
        let job = job.build();
        assess(&job, &[], BackoffRecord::default(), now()).start_time
    };
    let new = job().status("startTime", json!(null));
    assert_eq!(start(&new), Some(now()));
    assert_eq!(start(&new.clone().spec("suspend", json!(true))), None);
    assert_eq!(start(&job()), Some(before(3600)));
    assert_eq!(start(&job().status("startTime", json!(ago(5)))), Some(before(5)));
}
