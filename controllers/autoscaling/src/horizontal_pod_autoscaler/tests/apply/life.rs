//! From the first sync to the last.

use super::*;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn scales_up_and_after_the_window_down_again() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    deployment(sandbox, "web", 2, "200m");
    autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    assert_eq!(replicas(sandbox, "web"), 4, "twice the target takes twice the pods");
    let sandbox = cluster.sandbox();
    assert_eq!(
        condition(sandbox, "web", "AbleToScale"),
        "True SucceededRescale: the HPA controller was able to update the target scale to 4"
    );
    let current = json!([{ "type": "Resource", "resource": {
        "name": "cpu", "current": { "averageUtilization": 200, "averageValue": "200m" },
    } }]);
    let found = status(sandbox, "web");
    assert_eq!((&found["currentReplicas"], &found["desiredReplicas"]), (&json!(2), &json!(4)));
    assert_eq!(found["currentMetrics"], current);
    assert!(found["lastScaleTime"].is_string());
    let reason = "cpu resource utilization (percentage of request) above target";
    assert_eq!(events(sandbox), [format!("SuccessfulRescale New size: 4; reason: {reason}")]);

    for at in 0..2 {
        let usage = json!({ "metadata": { "annotations": { USAGE_CPU: "10m" } } });
        sandbox.patch(&PODS, &key(&format!("web-{at}")), &usage).expect("the pod is there");
    }
    cluster.consistently("the window keeps it", Duration::from_secs(280), |it| replicas(it, "web") == 4).await;
    cluster.eventually("it scales down", |it| replicas(it, "web") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn writes_nothing_at_rest_and_reads_its_metrics_once_in_a_period() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "100m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    cluster.sandbox().clear_requests();
    cluster.advance(Duration::from_secs(150)).await;
    let requests = requests(&cluster);
    let of = |part: &str| requests.iter().filter(|request| request.contains(part)).count();
    assert_eq!((of("/scale"), of("/metrics.k8s.io/")), (10, 10), "{requests:?}");
    assert_eq!(requests.len(), 20, "{requests:?}");
    assert_eq!(events(cluster.sandbox()), Vec::<String>::new(), "nothing is scaled");
}

#[tokio::test(start_paused = true)]
async fn a_target_outside_of_its_bounds_is_brought_back_without_metrics() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    deployment(sandbox, "few", 1, "NaN");
    deployment(sandbox, "many", 5, "NaN");
    deployment(sandbox, "none", 0, "1");
    for name in ["few", "many", "none"] {
        autoscaler(sandbox, name, (2, 4), &[cpu(100)]);
    }
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    assert_eq!(["few", "many", "none"].map(|name| replicas(sandbox, name)), [2, 4, 0]);
    let disabled = "False ScalingDisabled: scaling is disabled since the replica count of the target is zero";
    assert_eq!(condition(sandbox, "none", "ScalingActive"), disabled);
    assert!(!requests(&cluster).iter().any(|request| request.contains("metrics.k8s.io")), "bounds take no metrics");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_not_there_is_reported() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    autoscaler(sandbox, "web", (2, 4), &[cpu(100)]);
    let lamp = json!({
        "metadata": { "namespace": "shop", "name": "lamp" },
        "spec": { "scaleTargetRef": { "apiVersion": "example.com/v1", "kind": "Lamp", "name": "a" }, "maxReplicas": 3 },
    });
    sandbox.create(&AUTOSCALERS, lamp).expect("the autoscaler must be valid");
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    let unable = "False FailedGetScale: the HPA controller was unable to get the target's current scale:";
    let (web, lamp) = ("deployments.apps \"web\" not found", "no matches for kind \"Lamp\" in group \"example.com\"");
    assert_eq!(condition(sandbox, "web", "AbleToScale"), format!("{unable} {web}"));
    assert_eq!(condition(sandbox, "lamp", "AbleToScale"), format!("{unable} {lamp}"));
    assert_eq!(events(sandbox), [format!("FailedGetScale {web}"), format!("FailedGetScale {lamp}")]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_two_autoscalers_are_scaled_by_none() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    deployment(sandbox, "web", 2, "500m");
    autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
    cluster.advance(Duration::from_secs(1)).await;
    let second = json!({
        "metadata": { "namespace": "shop", "name": "also-web" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "maxReplicas": 10, "metrics": [cpu(100)],
        },
    });
    cluster.sandbox().create(&AUTOSCALERS, second).expect("the autoscaler must be valid");
    cluster.advance(PERIOD * 2).await;
    cluster.settle().await;
    let several = "False AmbiguousSelector: pods by selector app=web are controlled by more than one HPA (e.g. [shop/also-web shop/web])";
    for name in ["web", "also-web"] {
        assert_eq!(condition(cluster.sandbox(), name, "ScalingActive"), several);
    }
    cluster.sandbox().delete(&AUTOSCALERS, &key("also-web")).expect("it is there");
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    let active = condition(cluster.sandbox(), "web", "ScalingActive");
    assert!(active.starts_with("True ValidMetricFound"), "{active}");
}

#[tokio::test(start_paused = true)]
async fn a_new_autoscaler_and_a_new_spec_are_synced_at_once_and_a_new_status_is_not() {
    let cluster = start(environment().prepare(|sandbox| {
        // As the API server of 1.37, which counts the generations of autoscalers.
        sandbox.unregister(&AUTOSCALERS);
        sandbox.register_built_in(AUTOSCALERS, true, true);
    }))
    .await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
    assert_eq!(status(cluster.sandbox(), "web")["observedGeneration"], 1);

    cluster.advance(Duration::from_secs(3)).await;
    let most = json!({ "spec": { "maxReplicas": 3 } });
    cluster.sandbox().patch(&AUTOSCALERS, &key("web"), &most).expect("it is there");
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 3);
    assert_eq!(status(cluster.sandbox(), "web")["observedGeneration"], 2);

    cluster.sandbox().clear_requests();
    let lie = json!({ "status": { "currentReplicas": 7 } });
    cluster.sandbox().patch_status(&AUTOSCALERS, &key("web"), &lie).expect("it is there");
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(requests(&cluster), Vec::<String>::new(), "it waits for the end of the period");
}

/// An API server before 1.37 sets no generation.
#[tokio::test(start_paused = true)]
async fn without_generations_a_new_spec_is_synced_at_once_too() {
    let cluster = start(environment().prepare(|sandbox| {
        sandbox.unregister(&AUTOSCALERS);
        sandbox.register_built_in(AUTOSCALERS, true, false);
    }))
    .await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.settle().await;
    assert_eq!(status(cluster.sandbox(), "web")["observedGeneration"], 0, "as upstream");
    let most = json!({ "spec": { "maxReplicas": 3 } });
    cluster.sandbox().patch(&AUTOSCALERS, &key("web"), &most).expect("it is there");
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 3);
    cluster.sandbox().clear_requests();
    cluster.advance(Duration::from_secs(40)).await;
    let writes = requests(&cluster).into_iter().filter(|request| !request.starts_with("GET")).collect::<Vec<_>>();
    assert_eq!(writes.len(), 1, "the status after the rescale is written once: {writes:?}");
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_of_generations_a_new_spec_waits_for_the_period_and_the_status_has_none() {
    let environment = environment().arguments(&["--feature-gates=HPAGeneration=false"]).prepare(|sandbox| {
        sandbox.unregister(&AUTOSCALERS);
        sandbox.register_built_in(AUTOSCALERS, true, true);
    });
    let cluster = start(environment).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    let observed = json!({ "status": { "observedGeneration": 1 } });
    cluster.sandbox().patch_status(&AUTOSCALERS, &key("web"), &observed).expect("it is there");
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
    assert_eq!(status(cluster.sandbox(), "web").get("observedGeneration"), None, "it would never change again");
    let most = json!({ "spec": { "maxReplicas": 3 } });
    cluster.sandbox().patch(&AUTOSCALERS, &key("web"), &most).expect("it is there");
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4, "the period has not passed");
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 3);
}

/// kubernetes#138294
#[tokio::test(start_paused = true)]
async fn a_new_autoscaler_has_its_conditions_before_the_period_ends() {
    let cluster = start(environment().arguments(&["--horizontal-pod-autoscaler-sync-period=10m"])).await;
    deployment(cluster.sandbox(), "web", 2, "100m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.advance(Duration::from_secs(1)).await;
    let active = condition(cluster.sandbox(), "web", "ScalingActive");
    assert!(active.starts_with("True ValidMetricFound"), "{active}");
}

#[tokio::test(start_paused = true)]
async fn metrics_count_syncs_and_autoscalers_by_upstreams_names() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.settle().await;
    let name = |rest: &str| format!("horizontal_pod_autoscaler_controller_{rest}");
    let page = cluster.metrics();
    for line in [
        "reconciliations_total{action=\"scale_up\",error=\"none\"} 1",
        "metric_computation_total{action=\"scale_up\",error=\"none\",metric_type=\"Resource\"} 1",
        "num_horizontal_pod_autoscalers 1",
        "stale_sync_skips_total{group=\"autoscaling\",resource=\"horizontalpodautoscalers\"} 0",
        "desired_replicas{namespace=\"shop\",hpa_name=\"web\"} 4",
    ] {
        assert!(page.contains(&name(line)), "{line}: {page}");
    }
    for (family, stability) in [
        ("reconciliations", "[BETA]"),
        ("reconciliation_duration_seconds", "[BETA]"),
        ("metric_computation", "[BETA]"),
        ("metric_computation_duration_seconds", "[BETA]"),
        ("num_horizontal_pod_autoscalers", "[ALPHA]"),
        ("desired_replicas", "[ALPHA]"),
        ("stale_sync_skips", "[ALPHA]"),
    ] {
        let help = format!("# HELP {} {stability} ", name(family));
        assert!(page.contains(&help), "{help}: {page}");
    }
    cluster.sandbox().delete(&AUTOSCALERS, &key("web")).expect("it is there");
    cluster.settle().await;
    let page = cluster.metrics();
    assert!(page.contains(&name("num_horizontal_pod_autoscalers 0")));
    assert!(!page.contains(&name("desired_replicas{")), "it ends with its autoscaler");
}

#[tokio::test(start_paused = true)]
async fn metrics_tell_what_was_wrong_and_which_way_was_scaled() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    autoscaler(sandbox, "absent", (1, 10), &[cpu(100)]);
    let target = json!({ "apiVersion": "a/b/c", "kind": "Deployment", "name": "web" });
    autoscaler_with(sandbox, "wrong", &json!({ "scaleTargetRef": target, "metrics": [cpu(100)] }));
    deployment(sandbox, "web", 4, "10m");
    let behavior = json!({ "scaleDown": { "stabilizationWindowSeconds": 0 } });
    autoscaler_with(sandbox, "web", &json!({ "metrics": [cpu(100)], "behavior": behavior }));
    deployment(sandbox, "rest", 2, "100m");
    autoscaler(sandbox, "rest", (1, 10), &[cpu(100)]);
    cluster.settle().await;
    let page = cluster.metrics();
    for (action, error) in [("none", "internal"), ("none", "spec"), ("scale_down", "none"), ("none", "none")] {
        let labels = format!("{{action=\"{action}\",error=\"{error}\"}}");
        for family in ["reconciliations_total", "reconciliation_duration_seconds_count"] {
            let line = format!("horizontal_pod_autoscaler_controller_{family}{labels} 1");
            assert!(page.contains(&line), "{line}: {page}");
        }
    }
    // The replicas that a metric proposes are compared with those of the status, which the first sync writes.
    cluster.advance(PERIOD).await;
    let page = cluster.metrics();
    for action in ["scale_down", "none"] {
        let labels = format!("{{action=\"{action}\",error=\"none\",metric_type=\"Resource\"}}");
        let line = format!("horizontal_pod_autoscaler_controller_metric_computation_duration_seconds_count{labels} 1");
        assert!(page.contains(&line), "{line}: {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_was_scaled_just_now_is_scaled_again_in_the_next_period() {
    let cluster = start(environment().prepare(serve_high)).await;
    deployment(cluster.sandbox(), "web", 2, "1m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[external("high", "1")]);
    for expected in [4, 8, 10] {
        cluster.eventually("it is scaled", |it| replicas(it, "web") == expected).await;
        cluster.advance(Duration::from_secs(14)).await;
        assert_eq!(replicas(cluster.sandbox(), "web"), expected, "once in a period");
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_change_is_set_again() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.eventually("it is scaled", |it| replicas(it, "web") == 4).await;
    for (by_hand, expected) in [(7, 4), (50, 10), (3, 4)] {
        let scaled = json!({ "spec": { "replicas": by_hand } });
        cluster.sandbox().patch(&DEPLOYMENTS, &key("web"), &scaled).expect("it is there");
        cluster.advance(PERIOD).await;
        cluster.settle().await;
        assert_eq!(replicas(cluster.sandbox(), "web"), expected, "after {by_hand}");
    }
    let lie = json!({ "status": { "desiredReplicas": 99, "conditions": [] } });
    cluster.sandbox().patch_status(&AUTOSCALERS, &key("web"), &lie).expect("it is there");
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(status(cluster.sandbox(), "web")["desiredReplicas"], 4);
    assert!(condition(cluster.sandbox(), "web", "AbleToScale").starts_with("True "));
}
