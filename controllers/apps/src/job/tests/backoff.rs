//! The back-off of failed pods.

use std::time::Duration;

use jiff::SignedDuration;
use kcm_framework::api::ObjectKey;

use serde_json::{Value, json};

use super::fixtures::{PodBuilder, before, pod, pods};
use crate::job::backoff::{BackoffRecord, BackoffStore, index_backoff_until};
use crate::job::event_mapping::delay_until;
use crate::job::job_pod::{INDEX_FAILURE_COUNT, JobPod};
use crate::tests::cluster::now;
use crate::tests::fixtures::ago;

fn after(record: BackoffRecord, succeeded: &[i64], failed: &[i64]) -> BackoffRecord {
    let succeeded = pods(&succeeded.iter().map(|at| pod("a").succeeded(*at)).collect::<Vec<_>>());
    let failed = pods(&failed.iter().map(|at| pod("b").failed(*at)).collect::<Vec<_>>());
    record.after(&succeeded.iter().collect::<Vec<_>>(), &failed.iter().collect::<Vec<_>>())
}

/// How many seconds are left.
fn left(record: BackoffRecord) -> i64 {
    record.until(now()).map_or(0, |until| until.duration_since(now()).as_secs())
}

#[test]
fn failures_in_a_row_double_the_wait_and_a_success_ends_it() {
    let none = BackoffRecord::default();
    let two = after(none, &[], &[5, 1]);
    for (name, record, expected) in [
        ("nothing has failed", none, 0),
        ("one failure", after(none, &[], &[0]), 10),
        ("a while ago", after(none, &[], &[4]), 6),
        ("just over", after(none, &[], &[10]), 0),
        ("two failures, from the last on", two, 19),
        ("a third in another reconcile", after(two, &[], &[0]), 40),
        ("nothing new", after(two, &[], &[]), 19),
        ("a success", after(two, &[3], &[]), 0),
        ("a failure after a success", after(two, &[3], &[9, 1]), 9),
        ("a failure at the time of a success", after(two, &[3], &[3]), 0),
        ("six failures", after(none, &[], &[0; 6]), 320),
        ("seven failures", after(none, &[], &[0; 7]), 600),
        ("eight failures", after(none, &[], &[0; 8]), 600),
        ("ten minutes at most", after(none, &[], &[0; 40]), 600),
    ] {
        assert_eq!(left(record), expected, "{name}");
    }
}

#[test]
fn an_index_waits_by_the_failures_that_its_last_pod_carries() {
    let left = |pod: JobPod| index_backoff_until(&pod, now()).map_or(0, |until| until.duration_since(now()).as_secs());
    assert_eq!(left(pod("a").failed(0).build()), 10);
    assert_eq!(left(pod("a").failed(0).failures_before(1, 1).build()), 40);
    assert_eq!(left(pod("a").failed(45).failures_before(2, 0).build()), 0);
    assert_eq!(left(pod("a").failed(0).failures_before(i32::MAX, i32::MAX).build()), 600);
}

#[test]
fn a_pod_without_a_time_of_its_end_failed_when_it_was_deleted_or_created() {
    let at = |pod: JobPod| pod.finished_at();
    assert_eq!(at(pod("a").phase("Failed").build()), before(600));
    assert_eq!(at(pod("a").phase("Failed").terminating().build()), before(1));
    assert_eq!(at(pod("a").failed(30).terminating().build()), before(30));
}

#[test]
fn a_pod_finished_when_its_last_container_did() {
    let ended = |name: &str, seconds: i64| json!({ "name": name, "state": { "terminated": { "exitCode": 1, "finishedAt": ago(seconds) } } });
    let running = |name: &str| json!({ "name": name, "state": { "running": {} } });
    let of = |statuses: Value| pod("a").phase("Failed").with("/status", "containerStatuses", statuses);
    let ready = |status: &str| json!([{ "type": "Ready", "status": status, "lastTransitionTime": ago(40) }]);
    let sidecar = |pod: PodBuilder, status: Value| {
        let init = json!([{ "name": "proxy", "restartPolicy": "Always" }, { "name": "setup" }]);
        let statuses = json!([status, ended("setup", 1)]);
        pod.with("/spec", "initContainers", init).with("/status", "initContainerStatuses", statuses)
    };
    for (name, pod, expected) in [
        ("of two containers, the later", of(json!([ended("a", 30), ended("b", 20)])), 20),
        ("one container runs: the deletion", of(json!([ended("a", 30), running("b")])).terminating(), 1),
        (
            "the deletion was requested a grace period before",
            of(json!([running("a")])).terminating().with("/metadata", "deletionGracePeriodSeconds", json!(30)),
            31,
        ),
        ("not ready since", of(json!([running("a")])).terminating().with("/status", "conditions", ready("False")), 40),
        ("ready since", of(json!([running("a")])).terminating().with("/status", "conditions", ready("True")), 1),
        ("a sidecar that ended later", sidecar(of(json!([ended("a", 30)])), ended("proxy", 10)), 10),
        ("a sidecar that ended before", sidecar(of(json!([ended("a", 30)])), ended("proxy", 50)), 30),
    ] {
        assert_eq!(pod.build().finished_at(), before(expected), "{name}");
    }
}

#[test]
fn an_annotation_that_is_no_number_of_failures_counts_as_none() {
    for (text, expected) in [("2", 2), ("2147483647", i32::MAX), ("2147483648", 0), ("-1", 0), ("xyz", 0), ("", 0)] {
        let pod = pod("a").with("/metadata/annotations", INDEX_FAILURE_COUNT, json!(text)).build();
        assert_eq!(pod.index_failures(), expected, "{text:?}");
    }
    assert_eq!(pod("a").build().index_failures(), 0);
}

#[test]
fn a_record_is_that_of_one_job_and_a_delay_is_a_second_at_least() {
    let (store, key) = (BackoffStore::default(), ObjectKey::namespaced("shop", "sum"));
    let record = after(BackoffRecord::default(), &[], &[0]);
    store.put(&key, &"first".into(), record);
    assert_eq!(
        (store.get(&key, &"first".into()), store.get(&key, &"second".into())),
        (record, BackoffRecord::default())
    );
    store.remove(&key);
    assert_eq!(store.get(&key, &"first".into()), BackoffRecord::default());

    let in_ms = |ms| delay_until(now() + SignedDuration::from_millis(ms), now());
    assert_eq!([in_ms(-5), in_ms(20), in_ms(2500)], [1000, 1000, 2500].map(Duration::from_millis));
}
