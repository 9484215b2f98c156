//! How finished pods get into the counters of the status.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::fixtures::{JobBuilder, PodBuilder, applied, condition, indexed, job, pod, pods};
use crate::job::assess::assess;
use crate::job::backoff::BackoffRecord;
use crate::job::conditions::{Ending, JobResult};
use crate::job::plan::{NewPods, Step, plan};
use crate::job::track::{Applied, Tracking, count, finish, track};
use crate::tests::cluster::now;
use kcm_framework::api::views::JobStatus;

/// What a check reads of a tracking.
#[derive(Debug, PartialEq, Eq)]
struct Tracked {
    /// The uids in the list of the status: succeeded, failed.
    listed: (Vec<String>, Vec<String>),
    /// Those whose finalizer is removed.
    released: Vec<String>,
    /// Whether the job ends with this reconcile.
    ends: bool,
}

fn with_tracking<R>(job: &JobBuilder, builders: &[PodBuilder], read: impl FnOnce(Tracking<'_>) -> R) -> R {
    let (job, pods) = (job.build(), pods(builders));
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    let step = plan(&assessment, now());
    read(track(&assessment, &step, applied(&step), true, now()))
}

fn tracked(job: &JobBuilder, builders: &[PodBuilder]) -> Tracked {
    let name = |uid: &kcm_framework::api::Uid| uid.to_string().replace("uid-of-", "");
    with_tracking(job, builders, |tracking| {
        let uncounted = &tracking.status.uncounted;
        Tracked {
            listed: (uncounted.succeeded.iter().map(name).collect(), uncounted.failed.iter().map(name).collect()),
            released: tracking.release.iter().map(|pod| name(pod.uid())).collect(),
            ends: tracking.ending.is_some(),
        }
    })
}

#[test]
fn a_finished_pod_is_listed_before_its_finalizer_is_removed() {
    let five = || job().completions(5).parallelism(5);
    let failing = || five().status("conditions", json!([condition("FailureTarget", "True", "Reason")]));
    let deleted = || five().metadata("deletionTimestamp", json!("2026-01-02T11:00:00Z"));
    let limited = || indexed(3).spec("backoffLimitPerIndex", json!(3)).spec("backoffLimit", json!(i32::MAX));
    let list = |names: &str| names.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (|| pod("a").succeeded(5), || pod("b").failed(5));
    for (name, job, pods, succeeded, failed, released, ends) in [
        ("finished pods", five(), vec![a(), b(), pod("c")], "a", "b", "a b", false),
        (
            "listed already",
            five().status("uncountedTerminatedPods", json!({ "succeeded": ["uid-of-a"] })),
            vec![a()],
            "a",
            "",
            "a",
            false,
        ),
        (
            "listed as failed, and succeeds afterwards",
            five().status("uncountedTerminatedPods", json!({ "failed": ["uid-of-a"] })),
            vec![a()],
            "",
            "a",
            "a",
            false,
        ),
        (
            "listed and without finalizer: counted",
            five().status("uncountedTerminatedPods", json!({ "failed": ["uid-of-b"] })),
            vec![b().counted()],
            "",
            "",
            "",
            false,
        ),
        (
            "of other pods nothing is known",
            five().status("uncountedTerminatedPods", json!({ "failed": ["uid-of-x"] })),
            vec![],
            "",
            "",
            "",
            false,
        ),
        ("a terminating pod", five(), vec![pod("t").terminating()], "", "t", "t", false),
        ("the last success", job(), vec![a()], "a", "", "a", true),
        ("pods of a failing job fail", failing(), vec![a(), pod("c")], "a", "c", "a c", true),
        (
            "those of a job that is being deleted lose the finalizer",
            deleted(),
            vec![a(), pod("c")],
            "a",
            "",
            "a c",
            false,
        ),
        ("indexes are no uids", indexed(3), vec![a().index(1), b().index(2)], "", "b", "a b", false),
        ("an invalid index is not counted", indexed(1), vec![b().index(7)], "", "", "b", false),
        ("a failed pod awaits another one of its index", limited(), vec![b().index(0)], "", "", "", false),
        (
            "which exists",
            limited(),
            vec![b().index(0), pod("next").index(0).failures_before(1, 0), pod("x").index(1)],
            "",
            "b",
            "b",
            false,
        ),
        (
            "an ignored failure",
            five().failure_rules(json!([{ "action": "Ignore", "onExitCodes": { "operator": "In", "values": [1] } }])),
            vec![b()],
            "",
            "",
            "b",
            false,
        ),
        (
            "pods of a job that its success policy ended are not failures",
            indexed(3).spec("successPolicy", json!({ "rules": [{ "succeededCount": 1 }] })),
            vec![a().index(0), pod("c").index(1)],
            "",
            "",
            "a c",
            true,
        ),
    ] {
        let expected = Tracked { listed: (list(succeeded), list(failed)), released: list(released), ends };
        assert_eq!(tracked(&job, &pods), expected, "{name}");
    }
}

#[test]
fn at_most_500_pods_are_listed_and_the_job_waits_for_the_rest() {
    let all: Vec<_> = (0..600).map(|at| pod(&format!("p{at:03}")).succeeded(5)).collect();
    let first = tracked(&job().completions(600).parallelism(600), &all);
    assert_eq!((first.listed.0.len(), first.released.len(), first.ends), (500, 500, false));

    let of_indexes: Vec<_> = (0..).zip(&all).map(|(index, pod)| pod.clone().index(index)).collect();
    let first = with_tracking(&indexed(600), &of_indexes, |tracking| {
        (
            tracking.release.len(),
            tracking.ending.is_some(),
            tracking.status.succeeded,
            tracking.status.completed_indexes,
        )
    });
    assert_eq!(first, (500, false, 600, "0-599".into()));
}

#[test]
fn what_is_listed_and_has_no_finalizer_is_counted_once() {
    let job = job().status("uncountedTerminatedPods", json!({ "succeeded": ["a", "b"], "failed": ["c", "d", "e"] }));
    let mut status = job.status("succeeded", json!(10)).status("failed", json!(20)).build().status.clone();
    let (b, d) = ("b".into(), "d".into());
    count(&mut status, &HashSet::from([&b, &d]));
    assert_eq!((status.succeeded, status.failed), (11, 22));
    assert_eq!((&status.uncounted.succeeded, &status.uncounted.failed), (&vec![b], &vec![d]));
    count(&mut status, &HashSet::new());
    count(&mut status, &HashSet::new());
    assert_eq!((status.succeeded, status.failed), (12, 23));
}

#[test]
fn a_job_ends_after_its_pods_are_counted_and_none_is_terminating() {
    let ending = |result| Ending::new(result, "Reason", "Message");
    let finished = |status: &JobStatus, ending: Option<&Ending>| {
        let mut status = status.clone();
        let has = finish(&mut status, ending, now());
        let types: Vec<_> = status.conditions.iter().map(|condition| condition.type_.to_string()).collect();
        (has, types.join(" "), status.completion_time)
    };
    let status = |job: &JobBuilder| job.build().status.clone();
    let (plain, complete) = (status(&job()), ending(JobResult::Complete));
    assert_eq!(finished(&plain, Some(&complete)), (true, "Complete".to_owned(), Some(now())));
    assert_eq!(finished(&plain, Some(&ending(JobResult::Failed))), (true, "Failed".to_owned(), None));
    assert_eq!(finished(&plain, None), (false, String::new(), None));
    for waiting in [
        job().status("terminating", json!(1)),
        job().status("uncountedTerminatedPods", json!({ "failed": ["x"] })),
        job().status("uncountedTerminatedPods", json!({ "succeeded": ["x"] })),
    ] {
        assert_eq!(finished(&status(&waiting), Some(&complete)), (false, String::new(), None));
    }
}

/// Type and status of the conditions.
fn conditions(status: &JobStatus) -> String {
    let text = |condition: &kcm_framework::api::Condition| {
        format!("{}={:?}({})", condition.type_, condition.status, condition.reason)
    };
    status.conditions.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_end_is_announced_once_and_a_job_is_suspended_and_resumed() {
    let suspended = |job: JobBuilder| job.spec("suspend", json!(true));
    let was = |status: &str| job().status("conditions", json!([condition("Suspended", status, "JobSuspended")]));
    for (name, job, pods, expected, event) in [
        ("nothing to say", job(), vec![pod("a")], "", None),
        ("complete", job(), vec![pod("a").succeeded(1)], "SuccessCriteriaMet=True(CompletionsReached)", None),
        (
            "failed",
            job().spec("backoffLimit", json!(0)),
            vec![pod("a").failed(1)],
            "FailureTarget=True(BackoffLimitExceeded)",
            None,
        ),
        (
            "announced before",
            job().status("conditions", json!([condition("FailureTarget", "True", "Reason")])),
            vec![],
            "FailureTarget=True(Reason)",
            None,
        ),
        ("suspended", suspended(job()), vec![pod("a")], "Suspended=True(JobSuspended)", Some(true)),
        ("resumed", was("True"), vec![pod("a")], "Suspended=False(JobResumed)", Some(false)),
        (
            "complete while suspended",
            suspended(job()),
            vec![pod("a").succeeded(1)],
            "SuccessCriteriaMet=True(CompletionsReached)",
            None,
        ),
    ] {
        let read = with_tracking(&job, &pods, |tracking| (conditions(&tracking.status), tracking.suspension));
        assert_eq!(read, (expected.to_owned(), event), "{name}");
    }
}

#[test]
fn a_suspended_job_has_no_start_time_and_a_resumed_one_a_new_one() {
    let start = |job: &JobBuilder, unsets: bool| {
        let job = job.build();
        let assessment = assess(&job, &[], BackoffRecord::default(), now());
        let step = plan(&assessment, now());
        track(&assessment, &step, Applied::default(), unsets, now()).status.start_time
    };
    let suspended = job().spec("suspend", json!(true));
    let resumed = job().status("conditions", json!([condition("Suspended", "True", "JobSuspended")]));
    assert_eq!(start(&suspended, true), None);
    assert!(start(&suspended, false).is_some_and(|time| time < now()));
    assert_eq!((start(&resumed, true), start(&resumed, false)), (Some(now()), Some(now())));
}

#[test]
fn the_status_has_what_was_done_to_the_pods() {
    let counts = |job: &JobBuilder, builders: &[PodBuilder], applied| {
        let (job, pods) = (job.build(), pods(builders));
        let assessment = assess(&job, &pods, BackoffRecord::default(), now());
        let status = track(&assessment, &plan(&assessment, now()), applied, true, now()).status;
        (status.active, status.ready, status.terminating)
    };
    let three = [pod("a").ready(), pod("b").ready(), pod("c").terminating()];
    let created = Applied { created: 2, ..Applied::default() };
    assert_eq!(counts(&job().completions(9).parallelism(9), &three, created), (4, Some(2), Some(1)));
    let some_refused = Applied { created: 1, ..Applied::default() };
    assert_eq!(counts(&job().completions(9).parallelism(9), &[], some_refused), (1, Some(0), Some(0)));
    let deleted = Applied { deleted: 1, deleted_ready: 1, created: 0 };
    assert_eq!(counts(&job().parallelism(0), &three, deleted), (1, Some(1), Some(2)));
}

#[test]
fn a_job_does_not_end_before_all_its_active_pods_are_deleted() {
    let job = job().status("conditions", json!([condition("FailureTarget", "True", "Reason")])).build();
    let pods = pods(&[pod("a"), pod("b")]);
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    let step = plan(&assessment, now());
    let ends = |deleted| {
        let applied = Applied { deleted, ..Applied::default() };
        track(&assessment, &step, applied, true, now()).ending.is_some()
    };
    assert_eq!([1, 2].map(ends), [false, true]);
}

#[test]
fn the_actions_of_a_failure_policy_are_counted() {
    let rules = json!([
        { "action": "Ignore", "onExitCodes": { "operator": "In", "values": [7] } },
        { "action": "Count", "onExitCodes": { "operator": "In", "values": [8] } },
    ]);
    let exited = |name: &str, code: i32| pod(name).phase("Failed").exited(code, 5);
    let pods = [exited("a", 7), exited("b", 8), exited("c", 7), exited("d", 9)];
    let actions = with_tracking(&job().failure_rules(rules), &pods, |tracking| tracking.policy_actions);
    assert_eq!(actions, BTreeMap::from([("Ignore", 2), ("Count", 1)]));
}

#[test]
fn a_step_says_how_metrics_name_it() {
    let create = Step::Create { pods: NewPods::Plain(1), wanted: 1 };
    let steps = [Step::DeleteActive(vec![]), Step::Suspend(vec![]), create, Step::BackOff { until: now() }, Step::Keep];
    let actions = steps.each_ref().map(Step::action);
    assert_eq!(actions, ["reconciling", "pods_deleted", "pods_created", "pods_created", "tracking"]);
}
