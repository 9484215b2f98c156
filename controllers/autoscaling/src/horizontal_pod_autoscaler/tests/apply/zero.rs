//! Scaling to zero and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, Status, Verb};

use super::*;

const ZERO: &str = "True ScaledToZero: the HPA controller scaled the workload to zero";
const NOT_ZERO: &str = "False NotScaledToZero: the HPA controller did not scale the workload to zero";

/// An environment with the targets `jobs` and `hits`, whose external and object metrics have this value.
fn measured_by(value: &Arc<AtomicI64>) -> TestEnvironment {
    let served = Arc::clone(value);
    environment().prepare(move |sandbox| {
        // An API server before 1.37 refuses a minimum of zero; a kind that it does not know has none.
        sandbox.unregister(&AUTOSCALERS);
        sandbox.register(AUTOSCALERS);
        for group in ["external", "custom"] {
            let served = Arc::clone(&served);
            sandbox.serve_path(&format!("/apis/{group}.metrics.k8s.io"), move |path, _| {
                let version = json!({ "version": "v1beta1" });
                Some(Ok(if path.ends_with(".k8s.io") {
                    json!({ "preferredVersion": version, "versions": [version] })
                } else {
                    json!({ "items": [{ "value": served.load(Ordering::Relaxed).to_string() }] })
                }))
            });
        }
        let service = json!({ "apiVersion": "v1", "kind": "Service", "name": "main" });
        let target = json!({ "type": "Value", "value": "1" });
        let hits = json!({ "type": "Object", "object": {
            "describedObject": service, "metric": { "name": "hits" }, "target": target,
        } });
        for (name, metric) in [("jobs", external("jobs", "1")), ("hits", hits)] {
            deployment(sandbox, name, 2, "1m");
            let behavior = json!({ "scaleDown": { "stabilizationWindowSeconds": 0 } });
            autoscaler_with(sandbox, name, &json!({ "minReplicas": 0, "metrics": [metric], "behavior": behavior }));
        }
    })
}

/// Sets the replicas in the status of a target that was scaled to zero, as its controller does.
fn end_pods(sandbox: &Sandbox, name: &str) {
    let gone = json!({ "status": { "replicas": 0 } });
    sandbox.patch_status(&DEPLOYMENTS, &key(name), &gone).expect("it is there");
}

/// Scales a target, as a user does.
fn scale_by_hand(sandbox: &Sandbox, name: &str, replicas: i64) {
    let scaled = json!({ "spec": { "replicas": replicas } });
    sandbox.patch(&DEPLOYMENTS, &key(name), &scaled).expect("it is there");
}

/// A fault of the writes of statuses of `jobs`.
fn status_writes() -> Fault {
    Fault::on(Verb::Update).resource(AUTOSCALERS).name("jobs").subresource("status")
}

/// A fault of the writes of scales of `jobs`.
fn scale_writes() -> Fault {
    Fault::on(Verb::Update).resource(DEPLOYMENTS).name("jobs").subresource("scale")
}

/// Asserts that `jobs` is scaled to zero, and returns with the metric.
async fn returns_from_zero(cluster: &TestCluster, value: &AtomicI64) {
    cluster.eventually("it is scaled to zero", |it| replicas(it, "jobs") == 0).await;
    cluster.settle().await;
    assert_eq!(condition(cluster.sandbox(), "jobs", "ScaledToZero"), ZERO);
    end_pods(cluster.sandbox(), "jobs");
    cluster.consistently("there is nothing to do", Duration::from_mins(1), |it| replicas(it, "jobs") == 0).await;
    value.store(3, Ordering::Relaxed);
    cluster.eventually("the metric brings it back", |it| replicas(it, "jobs") == 3).await;
    cluster.settle().await;
    assert_eq!(condition(cluster.sandbox(), "jobs", "ScaledToZero"), NOT_ZERO);
}

#[tokio::test(start_paused = true)]
async fn object_and_external_metrics_scale_to_zero_and_back() {
    let value = Arc::new(AtomicI64::new(0));
    let cluster = start(measured_by(&value)).await;
    cluster.settle().await;
    for name in ["jobs", "hits"] {
        assert_eq!(replicas(cluster.sandbox(), name), 0, "{name}");
        assert_eq!(condition(cluster.sandbox(), name, "ScaledToZero"), ZERO, "{name}");
        end_pods(cluster.sandbox(), name);
    }
    let at_rest = |it: &Sandbox| ["jobs", "hits"].iter().all(|name| replicas(it, name) == 0);
    cluster.consistently("there is nothing to do", Duration::from_mins(1), at_rest).await;
    value.store(3, Ordering::Relaxed);
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    for name in ["jobs", "hits"] {
        assert_eq!(replicas(cluster.sandbox(), name), 3, "{name}");
        assert_eq!(condition(cluster.sandbox(), name, "ScaledToZero"), NOT_ZERO, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn scaling_to_zero_takes_one_more_write_which_is_before_the_scale() {
    let cluster = start(measured_by(&Arc::new(AtomicI64::new(0)))).await;
    cluster.settle().await;
    let writes: Vec<_> = cluster.writes_of("horizontal-pod-autoscaler");
    let writes: Vec<_> =
        writes.iter().filter(|it| it.path.contains("/jobs/")).map(|it| it.path.rsplit('/').next()).collect();
    assert_eq!(writes, [Some("status"), Some("scale"), Some("status")]);
}

#[tokio::test(start_paused = true)]
async fn whatever_write_it_is_killed_after_the_target_returns_from_zero() {
    let value = Arc::new(AtomicI64::new(0));
    let writes = kill_after_each_write(
        || {
            value.store(0, Ordering::Relaxed);
            measured_by(&value)
        },
        async |cluster| {
            returns_from_zero(cluster, &value).await;
            cluster.advance(PERIOD).await;
            cluster.settle().await;
        },
    )
    .await;
    assert!(writes >= 10, "three writes to zero and two back, for two targets: {writes}");
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_of_the_status_the_target_returns_from_zero() {
    let value = Arc::new(AtomicI64::new(0));
    let cluster = start(measured_by(&value).prepare(|sandbox| {
        let conflict = Status::conflict(&AUTOSCALERS, "jobs", "changed");
        sandbox.faults().inject(status_writes().times(1).fail(conflict));
    }))
    .await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "jobs"), 2, "it is not scaled while its status is not written");
    assert!(events(cluster.sandbox()).iter().any(|event| event.starts_with("FailedUpdateStatus")));
    returns_from_zero(&cluster, &value).await;
}

#[tokio::test(start_paused = true)]
async fn while_statuses_are_refused_nothing_is_scaled_to_zero() {
    let value = Arc::new(AtomicI64::new(0));
    let cluster = start(measured_by(&value).prepare(|sandbox| {
        sandbox.faults().inject(status_writes().fail(Status::new(422, "Invalid", "not today")));
    }))
    .await;
    cluster.consistently("it is not scaled", Duration::from_mins(1), |it| replicas(it, "jobs") == 2).await;
    cluster.sandbox().faults().clear();
    returns_from_zero(&cluster, &value).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_response_of_the_scale_the_target_returns_from_zero() {
    let value = Arc::new(AtomicI64::new(0));
    let cluster = start(measured_by(&value).prepare(|sandbox| {
        sandbox.faults().inject(scale_writes().times(1).lose_answer());
    }))
    .await;
    returns_from_zero(&cluster, &value).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_refused_scale_a_target_that_a_user_scales_to_zero_stays_there() {
    let value = Arc::new(AtomicI64::new(0));
    let cluster = start(measured_by(&value).prepare(|sandbox| {
        sandbox.faults().inject(scale_writes().times(1).fail(Status::new(422, "Invalid", "not today")));
    }))
    .await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "jobs"), 2);
    assert_eq!(condition(cluster.sandbox(), "jobs", "ScaledToZero"), NOT_ZERO, "in the same sync");
    scale_by_hand(cluster.sandbox(), "jobs", 0);
    value.store(3, Ordering::Relaxed);
    cluster.consistently("it is disabled", Duration::from_mins(2), |it| replicas(it, "jobs") == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_condition_of_an_earlier_scale_brings_no_target_back_that_a_user_scales_to_zero() {
    let value = Arc::new(AtomicI64::new(2));
    let cluster = start(measured_by(&value).prepare(|sandbox| {
        let zero = json!({ "type": "ScaledToZero", "status": "True", "reason": "ScaledToZero", "message": "x",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let status = json!({ "status": { "conditions": [zero] } });
        sandbox.patch_status(&AUTOSCALERS, &key("jobs"), &status).expect("it is there");
    }))
    .await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "jobs"), 2, "there is nothing to scale");
    assert_eq!(condition(cluster.sandbox(), "jobs", "ScaledToZero"), NOT_ZERO);
    scale_by_hand(cluster.sandbox(), "jobs", 0);
    value.store(3, Ordering::Relaxed);
    cluster.consistently("it is disabled", Duration::from_mins(2), |it| replicas(it, "jobs") == 0).await;
}

/// The condition, and not the memory of the process, says who has scaled to zero.
#[tokio::test(start_paused = true)]
async fn a_target_that_a_user_scales_to_zero_stays_disabled_after_a_restart() {
    let value = Arc::new(AtomicI64::new(2));
    let cluster = start(measured_by(&value)).await;
    cluster.settle().await;
    scale_by_hand(cluster.sandbox(), "jobs", 0);
    cluster.advance(PERIOD).await;
    cluster.kill();
    value.store(3, Ordering::Relaxed);
    cluster.consistently("it is disabled", Duration::from_mins(2), |it| replicas(it, "jobs") == 0).await;
    let disabled = "False ScalingDisabled: scaling is disabled since the replica count of the target is zero";
    assert_eq!(condition(cluster.sandbox(), "jobs", "ScalingActive"), disabled);
}
