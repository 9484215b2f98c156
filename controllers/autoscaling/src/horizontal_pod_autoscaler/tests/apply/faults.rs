//! Kills, refusals, lost responses, and metrics APIs that hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, Status, Verb};

use super::*;

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || {
            environment().prepare(|sandbox| {
                deployment(sandbox, "web", 2, "200m");
                autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
            })
        },
        async |cluster| {
            let done = |it: &Sandbox| replicas(it, "web") == 4 && status(it, "web")["desiredReplicas"] == 4;
            cluster.eventually("it is scaled and says so", done).await;
            cluster.settle().await;
            assert_eq!(replicas(cluster.sandbox(), "web"), 4);
        },
    )
    .await;
    assert!(writes >= 2, "scale and status: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_of_the_scale_is_resolved_in_the_same_sync() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    let conflict = Status::conflict(&DEPLOYMENTS, "web", "changed");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).subresource("scale").times(2).fail(conflict));
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_is_refused_is_reported_and_tried_again_in_the_next_period() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    let refused = Status::new(422, "Invalid", "not today");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).subresource("scale").times(1).fail(refused));
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    assert_eq!(
        condition(sandbox, "web", "AbleToScale"),
        "False FailedUpdateScale: the HPA controller was unable to update the target scale: not today"
    );
    assert_eq!(replicas(sandbox, "web"), 2);
    let reason = "cpu resource utilization (percentage of request) above target";
    assert_eq!(events(sandbox), [format!("FailedRescale New size: 4; reason: {reason}; error: not today")]);
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_the_scale_scales_once() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).subresource("scale").times(1).lose_answer());
    cluster.advance(PERIOD).await;
    cluster.consistently("it is scaled once", Duration::from_mins(1), |it| [2, 4].contains(&replicas(it, "web"))).await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_metrics_api_that_is_not_there_is_reported_in_client_gos_words() {
    let cluster = start(TestEnvironment::new([DESCRIPTOR]).namespace("shop")).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    let message = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from \
                   resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
    let unable = "the HPA was unable to compute the replica count";
    assert_eq!(
        condition(sandbox, "web", "ScalingActive"),
        format!("False FailedGetResourceMetric: {unable}: {message}")
    );
    let all = format!(
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {message}"
    );
    assert_eq!(
        events(sandbox),
        [format!("FailedComputeMetricsReplicas {all}"), format!("FailedGetResourceMetric {message}")]
    );
    assert_eq!(status(sandbox, "web")["currentMetrics"], json!([{ "type": "" }]));
}

/// kubernetes#139029
#[tokio::test(start_paused = true)]
async fn an_object_metric_that_is_absent_is_reported_with_its_object_before_the_cause() {
    let environment = environment().prepare(|sandbox| {
        sandbox.serve_path("/apis/custom.metrics.k8s.io", |path, _| {
            let version = json!({ "version": "v1beta2" });
            let group = json!({ "preferredVersion": version, "versions": [version] });
            let absent = "the server could not find the metric hits for services main";
            Some(if path.ends_with(".k8s.io") { Ok(group) } else { Err(Status::new(404, "NotFound", absent)) })
        });
        let main = json!({ "apiVersion": "v1", "kind": "Service", "name": "main" });
        for (name, target) in [
            ("value", json!({ "type": "Value", "value": "1" })),
            ("average", json!({ "type": "AverageValue", "averageValue": "1" })),
        ] {
            deployment(sandbox, name, 2, "1m");
            let object = json!({ "describedObject": main, "metric": { "name": "hits" }, "target": target });
            autoscaler(sandbox, name, (1, 10), &[json!({ "type": "Object", "object": object })]);
        }
    });
    let cluster = start(environment).await;
    cluster.settle().await;
    let message = "unable to get metric hits on Service shop/main: unable to fetch metrics from custom metrics API: the \
                   server could not find the metric hits for services main";
    for name in ["value", "average"] {
        let expected =
            format!("False FailedGetObjectMetric: the HPA was unable to compute the replica count: {message}");
        assert_eq!(condition(cluster.sandbox(), name, "ScalingActive"), expected, "{name}");
    }
    assert!(events(cluster.sandbox()).contains(&format!("FailedGetObjectMetric {message}")));
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_cannot_be_decoded_says_so_in_an_event_and_is_synced_when_it_can() {
    let environment = environment().prepare(|sandbox| {
        deployment(sandbox, "web", 2, "200m");
        autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
        // Past the API server, which would refuse it.
        let invalid = json!({ "status": { "desiredReplicas": "many" } });
        DirectClient::new(sandbox)
            .merge(&AUTOSCALERS, &key("web"), Some("status"), &invalid)
            .expect("the autoscaler is there");
    });
    let cluster = start(environment).await;
    cluster.settle().await;
    let events = events(cluster.sandbox());
    let [event] = &events[..] else { panic!("there is one: {events:?}") };
    assert!(event.starts_with("FailedDecode the autoscaler cannot be decoded, so that it is not synced: "), "{event}");
    assert_eq!(status(cluster.sandbox(), "web")["desiredReplicas"], "many", "its status is not touched");
    let valid = json!({ "status": { "desiredReplicas": null } });
    cluster.sandbox().patch_status(&AUTOSCALERS, &key("web"), &valid).expect("it is there");
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
}

/// The write takes effect, and the controller learns it from the next scale that it reads.
#[tokio::test(start_paused = true)]
async fn a_scale_whose_outcome_is_unknown_counts_for_the_policies() {
    let cluster = start(environment().prepare(|sandbox| {
        serve_high(sandbox);
        deployment(sandbox, "web", 2, "1m");
        let policies = json!([{ "type": "Pods", "value": 1, "periodSeconds": 120 }]);
        let behavior = json!({ "scaleUp": { "stabilizationWindowSeconds": 0, "policies": policies } });
        autoscaler_with(sandbox, "web", &json!({ "metrics": [external("high", "1")], "behavior": behavior }));
        // The first attempt takes effect, and no other is answered for a while.
        let faults = sandbox.faults();
        faults.inject(Fault::on(Verb::Update).subresource("scale").times(1).lose_answer());
        faults.inject(Fault::on(Verb::Update).subresource("scale").times(40).disconnect());
    }))
    .await;
    cluster.settle().await;
    cluster
        .consistently("one pod in two minutes", Duration::from_secs(115), |it| [2, 3].contains(&replicas(it, "web")))
        .await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 3);
}

/// k/k#96242, k/k#109496
#[tokio::test(start_paused = true)]
async fn an_api_that_hangs_delays_only_the_autoscalers_that_need_it() {
    let environment = environment().prepare(|sandbox| {
        // It never responds.
        sandbox.serve_path("/apis/external.metrics.k8s.io/", |_, _| None);
        for at in 0..20 {
            let name = format!("slow-{at:02}");
            deployment(sandbox, &name, 1, "200m");
            autoscaler(sandbox, &name, (1, 10), &[external("queue", "1")]);
        }
        deployment(sandbox, "web", 2, "200m");
        autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
    });
    let cluster = start(environment).await;
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4, "it waits for no other API");
    let waiting = || requests(&cluster).iter().filter(|request| request.contains("/external.")).count();
    assert_eq!(waiting(), 5, "an API serves as many requests at once as the setting says");
    cluster.advance(Duration::from_secs(40)).await;
    assert_eq!(waiting(), 10, "a request is given up");
    cluster
        .eventually("it is reported", |it| condition(it, "slow-00", "ScalingActive").contains("no response within 34s"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_the_status_scales_and_reports_once() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    let lost = Fault::on(Verb::Update).resource(AUTOSCALERS).subresource("status").times(1).lose_answer();
    cluster.sandbox().faults().inject(lost);
    cluster.advance(PERIOD).await;
    cluster.consistently("it is scaled once", Duration::from_mins(2), |it| replicas(it, "web") == 4).await;
    let sandbox = cluster.sandbox();
    assert_eq!(status(sandbox, "web")["desiredReplicas"], 4);
    assert_eq!(events(sandbox).iter().filter(|event| event.starts_with("SuccessfulRescale")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_whose_write_was_not_sent_is_synced_within_a_period() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    cluster.handle().fence().close();
    cluster.advance(PERIOD).await;
    assert!(requests(&cluster).iter().any(|request| request.ends_with("/web/scale")), "a sync has begun");
    assert_eq!(replicas(cluster.sandbox(), "web"), 2);
    cluster.handle().fence().open();
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
    assert_eq!(status(cluster.sandbox(), "web")["desiredReplicas"], 4);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_throttles_delays_it() {
    let cluster = start(environment()).await;
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(20);
    let busy = cluster.sandbox().faults().inject(busy.fail(Status::too_many_requests(1)));
    let done = |it: &Sandbox| replicas(it, "web") == 4 && status(it, "web")["desiredReplicas"] == 4;
    cluster.eventually("it is scaled and says so", done).await;
    assert!(busy.hits() > 0, "it was throttled");
    cluster.consistently("it is scaled once", Duration::from_mins(1), |it| replicas(it, "web") == 4).await;
}

#[tokio::test(start_paused = true)]
async fn late_watches_delay_it_and_scale_nothing_twice() {
    let cluster = start(environment()).await;
    for late in [AUTOSCALERS, PODS] {
        cluster.sandbox().faults().delay_events(&late, Duration::from_secs(30));
    }
    deployment(cluster.sandbox(), "web", 2, "200m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &[cpu(100)]);
    let within = |it: &Sandbox| [2, 4].contains(&replicas(it, "web"));
    cluster.consistently("it is scaled once", Duration::from_mins(4), within).await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
    let scaled = events(cluster.sandbox()).iter().filter(|event| event.starts_with("SuccessfulRescale")).count();
    assert_eq!(scaled, 1);
}

/// k/k#96242, k/k#109496
#[tokio::test(start_paused = true)]
async fn resource_and_custom_apis_that_hang_delay_no_other_and_recover() {
    let hangs = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&hangs);
    let environment = TestEnvironment::new([DESCRIPTOR]).namespace("shop").prepare(move |sandbox| {
        serve_high(sandbox);
        for prefix in ["/apis/metrics.k8s.io/", "/apis/custom.metrics.k8s.io"] {
            let hangs = Arc::clone(&switch);
            sandbox.serve_path(prefix, move |path, _| {
                let version = json!({ "version": "v1beta1" });
                let group = json!({ "preferredVersion": version, "versions": [version] });
                let item = |name: &str| {
                    let usage = json!([{ "name": "main", "usage": { "cpu": "200m" } }]);
                    let (meta, described) = (json!({ "name": name }), json!({ "name": name }));
                    json!({ "metadata": meta, "describedObject": described, "containers": usage, "value": "2",
                            "timestamp": "2026-01-02T12:00:00Z", "window": if path.contains("custom") { json!(15) } else { json!("15s") } })
                };
                let items = ["usage-0", "usage-1", "pods-0", "pods-1"].map(item);
                let response = if path.ends_with(".k8s.io") { group } else { json!({ "items": items }) };
                (!hangs.load(Ordering::Relaxed)).then_some(Ok(response))
            });
        }
        let average = json!({ "type": "AverageValue", "averageValue": "1" });
        let usage = json!({ "type": "Resource", "resource": {
            "name": "cpu", "target": { "type": "AverageValue", "averageValue": "100m" },
        } });
        let pods = json!({ "type": "Pods", "pods": { "metric": { "name": "q" }, "target": average } });
        for (name, metric) in [("usage", usage), ("pods", pods), ("web", external("high", "1"))] {
            deployment(sandbox, name, 2, "1m");
            autoscaler(sandbox, name, (1, 10), &[metric]);
        }
    });
    let cluster = start(environment).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4);
    cluster.advance(Duration::from_mins(3)).await;
    for name in ["usage", "pods"] {
        let active = condition(cluster.sandbox(), name, "ScalingActive");
        assert!(active.starts_with("False ") && active.ends_with("no response within 34s"), "{name}: {active}");
        assert_eq!(replicas(cluster.sandbox(), name), 2);
    }
    hangs.store(false, Ordering::Relaxed);
    cluster.advance(Duration::from_secs(52)).await;
    for name in ["usage", "pods"] {
        let active = condition(cluster.sandbox(), name, "ScalingActive");
        assert!(replicas(cluster.sandbox(), name) >= 4, "{name} recovers: {active}");
    }
}
