//! Targets that change while a sync waits, and targets whose own API hangs.

use kcm_testing::sandbox::{Fault, ScalePaths, Status, Verb};

use super::*;

const LAMPS: Resource = Resource::namespaced("example.com", "v1", "lamps", "Lamp");

/// One metric that calls for 12 pods, and one that takes 34 s to fail.
fn high_and_hanging() -> [Value; 2] {
    [external("high", "1"), external("hangs", "1")]
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_named_while_a_sync_waits_is_scaled_by_its_own_numbers() {
    let cluster = start(environment().prepare(serve_high)).await;
    deployment(cluster.sandbox(), "web", 5, "1m");
    deployment(cluster.sandbox(), "api", 1, "1m");
    autoscaler(cluster.sandbox(), "web", (1, 20), &high_and_hanging());
    cluster.advance(PERIOD).await;
    let other = json!({ "spec": { "scaleTargetRef": { "name": "api" } } });
    cluster.sandbox().patch(&AUTOSCALERS, &key("web"), &other).expect("it is there");
    cluster.eventually("the new target is scaled", |it| replicas(it, "api") != 1).await;
    assert_eq!(replicas(cluster.sandbox(), "api"), 4, "from one replica to four at most, whatever the other has");
    assert_eq!(replicas(cluster.sandbox(), "web"), 5, "it is no target any more");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_scaled_while_a_sync_waits_for_long_is_scaled_by_its_latest_number() {
    let cluster = start(environment().prepare(serve_high)).await;
    deployment(cluster.sandbox(), "web", 2, "1m");
    autoscaler(cluster.sandbox(), "web", (1, 10), &high_and_hanging());
    cluster.advance(PERIOD).await;
    let scaled = json!({ "spec": { "replicas": 6 } });
    cluster.sandbox().patch(&DEPLOYMENTS, &key("web"), &scaled).expect("it is there");
    let never_down = |it: &Sandbox| replicas(it, "web") >= 6;
    cluster.consistently("it is not scaled down to twice of what there was", Duration::from_mins(1), never_down).await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 10);
    let high = requests(&cluster).iter().filter(|request| request.ends_with("/high")).count();
    assert!(high >= 2, "what was read before the wait is read again: {high}");
}

#[tokio::test(start_paused = true)]
async fn targets_whose_api_hangs_delay_no_others_and_are_reported() {
    let environment = environment().prepare(|sandbox| {
        sandbox.register_scaled(LAMPS, ScalePaths::default());
        sandbox.faults().inject(Fault::on(Verb::Get).resource(LAMPS).subresource("scale").stall());
        for at in 0..20 {
            let name = format!("lamp-{at:02}");
            let meta = json!({ "namespace": "shop", "name": name });
            sandbox.create(&LAMPS, json!({ "metadata": meta, "spec": { "replicas": 1 } })).expect("it is a lamp");
            let target = json!({ "apiVersion": "example.com/v1", "kind": "Lamp", "name": name });
            let spec = json!({ "scaleTargetRef": target, "maxReplicas": 3, "metrics": [cpu(50)] });
            sandbox.create(&AUTOSCALERS, json!({ "metadata": meta, "spec": spec })).expect("it must be valid");
        }
        deployment(sandbox, "web", 2, "200m");
        autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
    });
    let cluster = start(environment).await;
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    assert_eq!(replicas(cluster.sandbox(), "web"), 4, "no worker waits for the lamps");
    let reads = |of: &str| requests(&cluster).iter().filter(|request| request.contains(of)).count();
    assert_eq!(reads("/lamps/"), 5, "as many at once as the setting says");
    cluster.advance(Duration::from_secs(150)).await;
    assert_eq!(reads("/deployments/web/scale"), 13, "a read at once and in each period, and the write of the first");
    let unable =
        "False FailedGetScale: the HPA controller was unable to get the target's current scale: no response within 34s";
    let sandbox = cluster.sandbox();
    assert_eq!(condition(sandbox, "lamp-00", "AbleToScale"), unable);
    assert!(events(sandbox).contains(&"FailedGetScale no response within 34s".to_owned()));
    sandbox.faults().clear();
    cluster.advance(Duration::from_mins(3)).await;
    let able = condition(cluster.sandbox(), "lamp-19", "AbleToScale");
    assert!(able.starts_with("True"), "it recovers: {able}");
}

#[tokio::test(start_paused = true)]
async fn a_response_without_end_and_a_message_without_end_are_cut() {
    let environment = environment().prepare(|sandbox| {
        sandbox.serve_path("/apis/external.metrics.k8s.io/", |path, _| {
            Some(if path.ends_with("/flood") {
                Ok(json!({ "items": [{ "value": "1", "rest": "x".repeat(17 << 20) }] }))
            } else {
                Err(Status::new(500, "InternalError", "y".repeat(100_000)))
            })
        });
        deployment(sandbox, "web", 2, "1m");
        autoscaler(sandbox, "web", (1, 10), &[external("flood", "1")]);
        deployment(sandbox, "api", 2, "1m");
        autoscaler(sandbox, "api", (1, 10), &[external("talk", "1")]);
    });
    let cluster = start(environment).await;
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    let message = condition(cluster.sandbox(), "web", "ScalingActive");
    let cut = "external metrics API: the response of /apis/external.metrics.k8s.io/v1beta1/namespaces/shop/flood is \
               longer than 16 MiB, and was not read to its end: if an APIService serves this path, check its server";
    assert!(message.ends_with(cut), "{message}");
    let message = condition(cluster.sandbox(), "api", "ScalingActive");
    assert!(message.ends_with("yyy…") && message.len() < 1400, "{} characters", message.len());
    assert_eq!(["web", "api"].map(|name| replicas(cluster.sandbox(), name)), [2, 2]);
}
