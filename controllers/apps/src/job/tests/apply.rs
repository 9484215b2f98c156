//! Whole reconciles on an API server in the process: life, foreign changes, orphans.

use std::time::Duration;

use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};

use super::kubelet::{Cluster, JOBS, Kubelet, finalizers, is_finished, job, new_job, status};
use crate::tests::cluster::{NAMESPACE, key};

const SECOND: Duration = Duration::from_secs(1);

fn condition_types(sandbox: &Sandbox) -> Vec<String> {
    let conditions = status(sandbox)["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .iter()
        .map(|condition| format!("{}={}", condition["type"], condition["status"]).replace('"', ""))
        .collect()
}

fn field(sandbox: &Sandbox, name: &str) -> i64 {
    status(sandbox)[name].as_i64().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_pods_until_enough_have_succeeded() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(3, 2));
    let kubelet = Kubelet::succeeding();
    cluster.eventually("two pods are there", |sandbox| sandbox.list(&PODS, Some(NAMESPACE)).len() == 2).await;
    cluster.advance(5 * SECOND).await;
    assert_eq!((cluster.pods().len(), field(cluster.sandbox(), "active")), (2, 2), "no more at once than it says");
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    cluster.settle().await;

    let mut status = status(cluster.sandbox());
    for time in ["startTime", "completionTime"] {
        assert!(status.as_object_mut().unwrap().remove(time).is_some_and(|time| time.is_string()), "{time}");
    }
    let conditions = status.as_object_mut().unwrap().remove("conditions").unwrap();
    let told: Vec<_> = conditions.as_array().unwrap().iter().map(|told| (&told["type"], &told["reason"])).collect();
    let reason = json!("CompletionsReached");
    assert_eq!(told, [(&json!("SuccessCriteriaMet"), &reason), (&json!("Complete"), &reason)]);
    status.as_object_mut().unwrap().retain(|_, value| *value != json!(0));
    assert_eq!(status, json!({ "succeeded": 3, "uncountedTerminatedPods": {} }));
    assert_eq!((cluster.pods().len(), finalizers(cluster.sandbox())), (3, 0));
    let reasons: Vec<_> = cluster.events().into_iter().map(|(_, reason, _)| reason).collect();
    assert_eq!(reasons.iter().filter(|reason| *reason == "SuccessfulCreate").count(), 3, "{reasons:?}");
    assert!(cluster.events().contains(&("Normal".into(), "Completed".into(), "Job completed".into())), "{reasons:?}");
    let counted = |line: &str| assert!(cluster.metrics().lines().any(|found| found == line), "{}", cluster.metrics());
    counted(
        "job_controller_jobs_finished_total{completion_mode=\"NonIndexed\",result=\"succeeded\",reason=\"CompletionsReached\"} 1",
    );
    counted("job_controller_job_pods_finished_total{completion_mode=\"NonIndexed\",result=\"succeeded\"} 3");
    counted("job_controller_terminated_pods_tracking_finalizer_total{event=\"delete\"} 3");
    counted("job_controller_stale_sync_skips_total{group=\"batch\",resource=\"jobs\"} 0");

    let writes = cluster.requests("").len();
    cluster.advance(120 * SECOND).await;
    assert_eq!(cluster.requests("").len(), writes, "a finished job is left alone");
}

#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_later_and_later_until_the_job_fails() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(1, 1);
    spec["spec"]["backoffLimit"] = json!(2);
    cluster.create(spec);
    let started = cluster.sandbox().now();
    let kubelet = Kubelet::failing();
    kubelet.run(&cluster, "the job has failed", is_finished).await;
    cluster.settle().await;
    let took = cluster.sandbox().now().duration_since(started).as_secs();
    assert!((30..45).contains(&took), "10 s and 20 s of back-off: {took} s");
    assert_eq!((field(cluster.sandbox(), "failed"), cluster.pods().len()), (3, 3));
    assert_eq!(condition_types(cluster.sandbox()), ["FailureTarget=True", "Failed=True"]);
    let failed =
        ("Warning".into(), "BackoffLimitExceeded".into(), "Job has reached the specified backoff limit".into());
    assert!(cluster.events().contains(&failed), "{:?}", cluster.events());
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_runs_each_index_once_and_repeats_those_that_fail() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(4, 4);
    spec["spec"]["completionMode"] = json!("Indexed");
    cluster.create(spec);
    let kubelet = Kubelet::failing_once_of_index(2);
    kubelet.run(&cluster, "the job is complete", is_finished).await;
    let status = status(cluster.sandbox());
    assert_eq!(
        (&status["completedIndexes"], &status["succeeded"], &status["failed"]),
        (&json!("0-3"), &json!(4), &json!(1))
    );
    assert_eq!(kubelet.outcomes(), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_index_fails_alone_and_its_pods_carry_their_failures() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(3, 3);
    spec["spec"]["completionMode"] = json!("Indexed");
    spec["spec"]["backoffLimitPerIndex"] = json!(1);
    cluster.create(spec);
    let kubelet = Kubelet::failing_of_index(1);
    kubelet.run(&cluster, "the job has failed", is_finished).await;
    let status = status(cluster.sandbox());
    assert_eq!((&status["completedIndexes"], &status["failedIndexes"]), (&json!("0,2"), &json!("1")));
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(2), &json!(2)));
    assert_eq!(status["conditions"][1]["reason"], "FailedIndexes");
    let count = |pod: &Value| pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"].clone();
    let mut counts: Vec<_> =
        cluster.pods().iter().filter(|pod| super::kubelet::index(pod) == Some(1)).map(count).collect();
    counts.sort_by_key(ToString::to_string);
    assert_eq!(counts, ["0", "1"]);
    assert_eq!(finalizers(cluster.sandbox()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_has_no_pods_and_a_resumed_one_starts_again() {
    let cluster = Cluster::start(|_| {}).await;
    cluster.create(new_job(2, 2));
    cluster.eventually("it runs", |sandbox| field(sandbox, "active") == 2).await;
    let suspend = |suspend: bool| {
        let patch = json!({ "spec": { "suspend": suspend } });
        cluster.sandbox().patch(&JOBS, &key("sum"), &patch).expect("the job must be there");
    };
    suspend(true);
    cluster.eventually("it is suspended", |sandbox| condition_types(sandbox) == ["Suspended=True"]).await;
    cluster.eventually("its pods are gone", |sandbox| sandbox.list(&PODS, Some(NAMESPACE)).is_empty()).await;
    cluster.settle().await;
    let suspended = status(cluster.sandbox());
    assert!(suspended["startTime"].is_null(), "{suspended}");
    assert_eq!(field(cluster.sandbox(), "failed"), 0, "deleted pods are no failures");

    cluster.advance(600 * SECOND).await;
    suspend(false);
    cluster.eventually("it runs again", |sandbox| field(sandbox, "active") == 2).await;
    assert_eq!(condition_types(cluster.sandbox()), ["Suspended=False"]);
    assert!(status(cluster.sandbox())["startTime"].is_string());
    Kubelet::succeeding().run(&cluster, "the job is complete", is_finished).await;
    assert_eq!(field(cluster.sandbox(), "succeeded"), 2);
    let reasons: Vec<_> = cluster.events().into_iter().map(|(_, reason, _)| reason).collect();
    for reason in ["Suspended", "Resumed", "SuccessfulDelete", "Completed"] {
        assert!(reasons.iter().any(|found| found == reason), "{reason}: {reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_at_its_deadline_without_an_event() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(1, 1);
    spec["spec"]["activeDeadlineSeconds"] = json!(90);
    cluster.create(spec);
    cluster.eventually("it runs", |sandbox| field(sandbox, "active") == 1).await;
    cluster.advance(85 * SECOND).await;
    assert!(!is_finished(cluster.sandbox()));
    cluster.advance(10 * SECOND).await;
    cluster.eventually("it has failed", is_finished).await;
    let status = status(cluster.sandbox());
    assert_eq!((&status["conditions"][1]["reason"], &status["failed"]), (&json!("DeadlineExceeded"), &json!(1)));
    assert!(cluster.pods().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_the_job_selects_is_adopted_with_the_finalizer_and_counted() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(1, 1);
    spec["spec"]["manualSelector"] = json!(true);
    spec["spec"]["selector"] = json!({ "matchLabels": { "app": "sum" } });
    let orphan = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": "orphan", "labels": { "app": "sum" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "image" }] },
    });
    cluster.sandbox().create(&PODS, orphan).unwrap();
    let owner = cluster.create(spec);
    let adopted = |sandbox: &Sandbox| sandbox.get(&PODS, &key("orphan")).unwrap()["metadata"].clone();
    let uid = &owner["metadata"]["uid"];
    cluster.eventually("it is adopted", |sandbox| adopted(sandbox)["ownerReferences"][0]["uid"] == *uid).await;
    assert_eq!(adopted(cluster.sandbox())["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    cluster.settle().await;
    assert!(cluster.requests("POST").is_empty());

    let relabelled = json!({ "metadata": { "labels": { "app": "other" } } });
    cluster.sandbox().patch(&PODS, &key("orphan"), &relabelled).unwrap();
    cluster.eventually("it is released", |sandbox| adopted(sandbox)["ownerReferences"].is_null()).await;
    assert!(adopted(cluster.sandbox())["finalizers"].is_null());
    Kubelet::succeeding().run(&cluster, "the job is complete", is_finished).await;
}

#[tokio::test(start_paused = true)]
async fn pods_whose_job_is_gone_lose_the_finalizer() {
    let cluster = Cluster::start(|sandbox| {
        let orphan = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": NAMESPACE, "name": "orphan", "finalizers": ["batch.kubernetes.io/job-tracking", "example.com/a"],
            },
            "spec": { "containers": [{ "name": "main", "image": "image" }] },
        });
        sandbox.create(&PODS, orphan).unwrap();
    })
    .await;
    let left = |sandbox: &Sandbox| sandbox.get(&PODS, &key("orphan")).unwrap()["metadata"]["finalizers"].clone();
    cluster.eventually("the orphan has lost it", |sandbox| left(sandbox) == json!(["example.com/a"])).await;

    cluster.create(new_job(2, 2));
    cluster.eventually("it runs", |sandbox| field(sandbox, "active") == 2).await;
    cluster.sandbox().delete_now(&JOBS, &key("sum")).unwrap();
    let patch = json!({ "metadata": { "finalizers": null } });
    if job(cluster.sandbox()).is_some() {
        cluster.sandbox().patch(&JOBS, &key("sum"), &patch).unwrap();
    }
    cluster.eventually("its pods have lost it", |sandbox| finalizers(sandbox) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_another_controller_manages_is_left_alone() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(1, 1);
    spec["spec"]["managedBy"] = json!("example.com/queue");
    cluster.create(spec);
    cluster.advance(60 * SECOND).await;
    assert!(cluster.requests("").is_empty());
    let line = "job_controller_jobs_by_external_controller_total{controller_name=\"example.com/queue\"} 1";
    assert!(cluster.metrics().lines().any(|found| found == line), "{}", cluster.metrics());
}

#[tokio::test(start_paused = true)]
async fn what_the_view_does_not_read_survives_a_status_update() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(1, 1);
    spec["metadata"]["annotations"] = json!({ "example.com/note": "kept" });
    let created = cluster.create(spec);
    Kubelet::succeeding().run(&cluster, "the job is complete", is_finished).await;
    assert!(!cluster.bodies("PUT").is_empty());
    for put in cluster.bodies("PUT") {
        assert_eq!(put["spec"], created["spec"]);
        assert_eq!(put["metadata"]["annotations"], created["metadata"]["annotations"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_scales_with_its_completions() {
    let cluster = Cluster::start(|_| {}).await;
    let mut spec = new_job(4, 4);
    spec["spec"]["completionMode"] = json!("Indexed");
    cluster.create(spec);
    let indexes = |sandbox: &Sandbox| {
        let pods = sandbox.list(&PODS, Some(NAMESPACE));
        let mut indexes: Vec<_> = pods.iter().filter_map(super::kubelet::index).collect();
        indexes.sort_unstable();
        indexes
    };
    let scale = |count: i32| {
        let patch = json!({ "spec": { "completions": count, "parallelism": count } });
        cluster.sandbox().patch(&JOBS, &key("sum"), &patch).expect("the job must be there");
    };
    cluster.eventually("four run", |sandbox| indexes(sandbox) == [0, 1, 2, 3]).await;
    scale(2);
    cluster.eventually("two run", |sandbox| indexes(sandbox) == [0, 1]).await;
    scale(3);
    cluster.eventually("three run", |sandbox| indexes(sandbox) == [0, 1, 2]).await;
    Kubelet::succeeding().run(&cluster, "the job is complete", is_finished).await;
    assert_eq!(
        (&status(cluster.sandbox())["completedIndexes"], field(cluster.sandbox(), "failed")),
        (&json!("0-2"), 0)
    );
}

/// Upstream 1.36 kept what it expected of the Job that was deleted, and did nothing for five minutes.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_recreated_before_its_pods_are_seen_has_pods_at_once() {
    for is_suspended in [false, true] {
        let cluster = Cluster::start(|_| {}).await;
        cluster.sandbox().faults().hold_watches(&PODS);
        cluster.create(new_job(2, 2));
        cluster.eventually("two pods are created", |sandbox| sandbox.list(&PODS, Some(NAMESPACE)).len() == 2).await;
        cluster.sandbox().delete_now(&JOBS, &key("sum")).unwrap();
        if job(cluster.sandbox()).is_some() {
            let patch = json!({ "metadata": { "finalizers": null } });
            cluster.sandbox().patch(&JOBS, &key("sum"), &patch).unwrap();
        }
        let mut spec = new_job(2, 2);
        spec["spec"]["suspend"] = json!(is_suspended);
        let uid = cluster.create(spec)["metadata"]["uid"].clone();
        if is_suspended {
            cluster.eventually("it is suspended", |sandbox| condition_types(sandbox) == ["Suspended=True"]).await;
            let resumed = json!({ "spec": { "suspend": false } });
            cluster.sandbox().patch(&JOBS, &key("sum"), &resumed).unwrap();
        }
        let created = |sandbox: &Sandbox| {
            let pods = sandbox.list(&PODS, Some(NAMESPACE));
            pods.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == uid).count()
        };
        cluster.advance(2 * SECOND).await;
        assert_eq!(created(cluster.sandbox()), 2, "suspended: {is_suspended}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_selector_is_invalid_counts_as_an_error_and_waits_for_a_change() {
    let near = json!([{ "key": "app", "operator": "Near", "values": ["sum"] }]);
    let mut spec = new_job(1, 1);
    spec["spec"]["selector"] = json!({ "matchExpressions": near });
    let cluster = Cluster::start(|sandbox| {
        // The API server stores Jobs as they are, as if another version had checked them.
        sandbox.unregister(&JOBS);
        sandbox.register(JOBS);
    })
    .await;
    cluster.create(spec);
    let errors = |count: u32| {
        let line = format!(
            "job_controller_job_syncs_total{{completion_mode=\"NonIndexed\",result=\"error\",action=\"reconciling\"}} {count}"
        );
        cluster.metrics().lines().any(|found| found == line)
    };
    cluster.advance(120 * SECOND).await;
    assert!(errors(1), "{}", cluster.metrics());
    assert!(cluster.pods().is_empty());
    assert_eq!(cluster.take_errors().len(), 1);
}
