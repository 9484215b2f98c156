//! Which pods are created or deleted.

use serde_json::json;

use super::fixtures::{JobBuilder, PodBuilder, condition, indexed, job, pod, pods};
use crate::job::assess::assess;
use crate::job::backoff::BackoffRecord;
use crate::job::plan::{NewPods, Step, index_failures, plan};
use crate::tests::cluster::now;

/// The step in short: what it does, and to which pods or indexes.
fn step(job: &JobBuilder, builders: &[PodBuilder]) -> String {
    let (job, pods) = (job.build(), pods(builders));
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    let names = |pods: &[&crate::job::job_pod::JobPod]| {
        pods.iter().map(|pod| pod.pod.metadata.key.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    match plan(&assessment, now()) {
        Step::DeleteActive(pods) => format!("end {}", names(&pods)),
        Step::Suspend(pods) => format!("suspend {}", names(&pods)),
        Step::DeleteSurplus { pods, wanted: _ } => format!("delete {}", names(&pods)),
        Step::Create { pods: NewPods::Plain(count), wanted: _ } => format!("create {count}"),
        Step::Create { pods: NewPods::Indexed(indexes), wanted: _ } => format!("create {indexes:?}"),
        Step::BackOff { until } => format!("wait {}", until.duration_since(now()).as_secs()),
        Step::Keep => "keep".to_owned(),
        Step::LeaveToDeletion => "leave".to_owned(),
    }
}

#[test]
fn a_job_has_as_many_active_pods_as_it_needs() {
    let wide = || job().completions(5).parallelism(3);
    let any = || job().spec("completions", json!(null)).parallelism(3);
    let a = || pod("a");
    for (name, job, pods, expected) in [
        ("a new job", wide(), vec![], "create 3"),
        ("some are there", wide(), vec![a()], "create 2"),
        ("enough are there", job(), vec![a()], "keep"),
        ("no more than completions are left", wide().status("succeeded", json!(4)), vec![], "create 1"),
        ("a success is replaced by the next completion", wide(), vec![a().succeeded(1)], "create 3"),
        ("none is wanted", wide().parallelism(0), vec![], "keep"),
        ("fewer are wanted", wide().parallelism(0), vec![a()], "delete a"),
        ("too many succeeded", wide().status("succeeded", json!(9)), vec![a()], "delete a"),
        ("any success stands for the job: none is created", any(), vec![a().succeeded(1)], "keep"),
        ("and none is deleted", any().parallelism(0), vec![pod("b").succeeded(1), a()], "keep"),
        ("any number of completions", any(), vec![a()], "create 2"),
        ("500 at most", wide().completions(9_999).parallelism(9_999), vec![], "create 500"),
        ("a failed pod is replaced after 10 s", wide(), vec![a().failed(3)], "wait 7"),
        ("after the back-off", wide(), vec![a().failed(11)], "create 3"),
        (
            "a terminating pod is replaced",
            job(),
            vec![a().terminating().with("/metadata", "creationTimestamp", json!("2026-01-02T11:00:00Z"))],
            "wait 9",
        ),
        (
            "unless only failed ones are",
            job().spec("podReplacementPolicy", json!("Failed")),
            vec![a().terminating()],
            "keep",
        ),
        (
            "a pod failure policy alone replaces terminating pods too",
            job().failure_rules(json!([])).spec("podReplacementPolicy", json!(null)),
            vec![a().terminating().with("/metadata", "creationTimestamp", json!("2026-01-02T11:00:00Z"))],
            "wait 9",
        ),
        ("suspended", wide().spec("suspend", json!(true)), vec![a()], "suspend a"),
        ("suspended without pods", wide().spec("suspend", json!(true)), vec![], "suspend "),
        (
            "suspended and being deleted",
            wide().spec("suspend", json!(true)).metadata("deletionTimestamp", json!("2026-01-02T11:00:00Z")),
            vec![a()],
            "leave",
        ),
        (
            "more are terminating than are wanted",
            wide().spec("podReplacementPolicy", json!("Failed")),
            ["a", "b", "c", "d", "e"].map(|name| pod(name).terminating()).into(),
            "keep",
        ),
        (
            "more are terminating than are wanted, and are replaced",
            wide(),
            ["a", "b", "c", "d", "e"].map(|name| pod(name).terminating()).into(),
            "wait 159",
        ),
        ("being deleted", wide().metadata("deletionTimestamp", json!("2026-01-02T11:00:00Z")), vec![a()], "leave"),
        (
            "failing",
            wide().status("conditions", json!([condition("FailureTarget", "True", "Reason")])),
            vec![a(), pod("b").failed(1)],
            "end a",
        ),
        (
            "failing while suspended",
            wide()
                .spec("suspend", json!(true))
                .status("conditions", json!([condition("FailureTarget", "True", "Reason")])),
            vec![a()],
            "end a",
        ),
    ] {
        assert_eq!(step(&job, &pods), expected, "{name}");
    }
}

#[test]
fn pods_are_deleted_in_the_earliest_stage_of_their_life() {
    let created = |pod: PodBuilder, seconds: i64| {
        pod.with("/metadata", "creationTimestamp", json!(crate::tests::fixtures::ago(seconds)))
    };
    let pods = [
        created(pod("ready").ready(), 900),
        created(pod("old"), 900),
        created(pod("young"), 5),
        pod("pending").phase("Pending"),
        pod("unassigned").phase("Pending").with("/spec", "nodeName", json!(null)),
        pod("unknown").phase("Unknown"),
        pod("restarted").with("/status", "containerStatuses", json!([{ "name": "main", "restartCount": 3 }])),
    ];
    let order = "unassigned pending unknown restarted young old ready";
    assert_eq!(step(&job().parallelism(0), &pods), format!("delete {order}"));
    assert_eq!(step(&job().completions(9).parallelism(5), &pods), "delete unassigned pending");
}

#[test]
fn an_indexed_job_has_one_pod_of_each_index() {
    let five = || indexed(5).parallelism(3);
    for (name, job, pods, expected) in [
        ("a new job", five(), vec![], "create [0, 1, 2]"),
        ("free indexes", five(), vec![pod("a").index(1)], "create [0, 2]"),
        (
            "done ones are not repeated",
            five().status("completedIndexes", json!("0,2")).status("succeeded", json!(2)),
            vec![pod("a").index(1)],
            "create [3, 4]",
        ),
        ("two of an index", five(), vec![pod("a").index(1).ready(), pod("b").index(1)], "delete b"),
        ("beyond the completions", five(), vec![pod("a").index(5), pod("b").index(0)], "delete a"),
        ("without an index", five(), vec![pod("a"), pod("b").index(0)], "delete a"),
        (
            "scaled down",
            indexed(2),
            vec![pod("a").index(0), pod("b").index(1), pod("c").index(2), pod("d").index(3)],
            "delete c d",
        ),
        ("fewer at a time", indexed(5).parallelism(1), vec![pod("a").index(0), pod("b").index(1).ready()], "delete a"),
        (
            "a terminating one is replaced",
            indexed(2),
            vec![pod("a").index(0).failed(60).terminating(), pod("b").index(1)],
            "create [0]",
        ),
        (
            "unless only failed ones are",
            indexed(3).spec("podReplacementPolicy", json!("Failed")),
            vec![pod("a").index(0).terminating(), pod("b").index(1)],
            "create [2]",
        ),
    ] {
        assert_eq!(step(&job, &pods), expected, "{name}");
    }
}

#[test]
fn indexes_with_limits_of_their_own_wait_one_by_one() {
    let limited = || indexed(3).spec("backoffLimitPerIndex", json!(3)).spec("backoffLimit", json!(i32::MAX));
    let failed = |name: &str, index: i32, ago: i64| pod(name).failed(ago).index(index).failures_before(0, 0);
    for (name, pods, expected) in [
        ("the others do not wait", vec![failed("a", 0, 3)], "create [1, 2]"),
        ("the first that is ready", vec![failed("a", 0, 3), failed("b", 1, 5), failed("c", 2, 1)], "wait 5"),
        ("after the back-off", vec![failed("a", 0, 11), pod("b").index(1), pod("c").index(2)], "create [0]"),
        ("a failed index is not repeated", vec![failed("a", 0, 60).failures_before(3, 0)], "create [1, 2]"),
    ] {
        assert_eq!(step(&limited(), &pods), expected, "{name}");
    }
}

#[test]
fn a_new_pod_of_an_index_takes_over_its_failures() {
    let rules = json!([{ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] }]);
    let job = indexed(4).spec("backoffLimitPerIndex", json!(5)).failure_rules(rules).build();
    let pods = pods(&[
        pod("a").failed(60).index(0).failures_before(1, 2),
        pod("b").failed(60).index(1).failures_before(1, 2).condition("DisruptionTarget"),
        pod("c").failed(60).index(2),
    ]);
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    let failures = [0, 1, 2, 3].map(|index| index_failures(&assessment, index));
    assert_eq!(failures, [Some((2, 2)), Some((1, 3)), Some((1, 0)), Some((0, 0))]);

    let unlimited = indexed(4).build();
    assert_eq!(index_failures(&assess(&unlimited, &pods, BackoffRecord::default(), now()), 0), None);
}
