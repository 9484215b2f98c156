//! Metrics of Pods that are created, finish and are counted.

use kcm_framework::informers::Change;
use serde_json::json;

use super::fixtures::{JobBuilder, PodBuilder, job, pod, pods};
use crate::job::assess::assess;
use crate::job::backoff::BackoffRecord;
use crate::job::metrics::Metrics;
use crate::job::track::Applied;
use crate::tests::cluster::now;

/// The lines of a metric that `count` counts.
fn counted(metric: &str, count: impl FnOnce(&Metrics)) -> Vec<String> {
    let registry = kcm_framework::Metrics::new();
    count(&Metrics::register(&registry).expect("the names are valid"));
    let text = registry.encode();
    let lines = text.lines().filter_map(|line| line.strip_prefix(metric));
    lines.filter(|line| line.starts_with('{') && !line.ends_with(" 0")).map(str::to_owned).collect()
}

#[test]
fn finished_pods_are_counted_when_they_get_and_lose_their_finalizer() {
    let updated = |old: PodBuilder, new: PodBuilder| Change::Updated { old: old.view(), new: new.view() };
    let deleted = |pod: PodBuilder| Change::Deleted { last: pod.view(), final_state_known: true };
    let (succeeded, failed) = (|| pod("a").succeeded(1), || pod("a").failed(1));
    let (add, delete) = (r#"{event="add"} 1"#, r#"{event="delete"} 1"#);
    for (name, change, expected) in [
        ("a new pod", Change::Added(pod("a").view()), None),
        ("a pod that has failed already", Change::Added(failed().view()), Some(add)),
        ("a pod that runs on", updated(pod("a"), pod("a").ready()), None),
        ("a pod that fails", updated(pod("a"), failed()), Some(add)),
        ("a pod that succeeds", updated(pod("a"), succeeded()), Some(add)),
        ("a pod that is counted", updated(succeeded(), succeeded().counted()), Some(delete)),
        ("a pod that is deleted before it is counted", deleted(succeeded()), Some(delete)),
        ("a pod that is deleted after it is counted", deleted(succeeded().counted()), None),
    ] {
        let lines = counted("job_controller_terminated_pods_tracking_finalizer_total", |metrics| {
            metrics.observe_pod(&change);
        });
        assert_eq!(lines, expected.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn created_pods_are_counted_by_the_pods_that_they_replace() {
    let count = |job: &JobBuilder, builders: &[PodBuilder], failures| {
        let (job, pods) = (job.build(), pods(builders));
        let assessment = assess(&job, &pods, BackoffRecord::default(), now());
        let applied = Applied { created: 2, ..Applied::default() };
        counted("job_controller_job_pods_creation_total", |metrics| metrics.created(&assessment, applied, failures))
    };
    let failed_only = || job().spec("podReplacementPolicy", json!("Failed"));
    let policy_alone = || job().failure_rules(json!([])).spec("podReplacementPolicy", json!(null));
    let failed = || vec![pod("a").failed(700)];
    for (name, job, pods, reason) in [
        ("a new job", job(), vec![], "new"),
        ("a failed pod", job(), failed(), "recreate_terminating_or_failed"),
        ("a terminating pod", job(), vec![pod("a").terminating()], "recreate_terminating_or_failed"),
        ("a failed pod, and only failed ones are replaced", failed_only(), failed(), "recreate_failed"),
        ("a failed pod of a pod failure policy alone", policy_alone(), failed(), "recreate_terminating_or_failed"),
        (
            "a terminating pod beside a failed one",
            failed_only(),
            vec![pod("a").failed(700), pod("b").terminating()],
            "recreate_failed",
        ),
    ] {
        let line = |status: &str, count: u32| format!("{{reason=\"{reason}\",status=\"{status}\"}} {count}");
        assert_eq!(count(&job, &pods, 0), [line("succeeded", 2)], "{name}");
        let mut lines = count(&job, &pods, 3);
        lines.sort();
        assert_eq!(lines, [line("failed", 3), line("succeeded", 2)], "{name}, and some are refused");
    }
}
