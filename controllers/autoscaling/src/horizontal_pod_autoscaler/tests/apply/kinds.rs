//! Targets of other kinds than deployments, their scales, and what their pods request.

use kcm_testing::sandbox::{REPLICA_SETS, ScalePaths};

use super::*;

const LAMPS: Resource = Resource::namespaced("example.com", "v1", "lamps", "Lamp");
const REPLICATION_CONTROLLERS: Resource =
    Resource::namespaced("", "v1", "replicationcontrollers", "ReplicationController");

/// Makes an object of a kind with two replicas and a running pod, and an autoscaler of it.
fn scaled(sandbox: &Sandbox, resource: &Resource, name: &str, mut object: Value, metric: &Value) {
    object["metadata"] = json!({ "namespace": "shop", "name": name });
    object["spec"]["replicas"] = json!(2);
    let status = json!({ "status": object["status"] });
    sandbox.create(resource, object).expect("the target must be valid");
    sandbox.patch_status(resource, &key(name), &status).expect("the status must be valid");
    let api_version = resource.api_version();
    let target = json!({ "apiVersion": api_version, "kind": &*resource.kind, "name": name });
    autoscaler_with(sandbox, name, &json!({ "scaleTargetRef": target, "metrics": [metric] }));
}

fn wanted(sandbox: &Sandbox, resource: &Resource, name: &str) -> Value {
    sandbox.get(resource, &key(name)).expect("it is there")["spec"]["replicas"].clone()
}

#[tokio::test(start_paused = true)]
async fn targets_of_any_kind_with_a_scale_are_scaled() {
    let environment = environment().prepare(|sandbox| {
        serve_high(sandbox);
        sandbox.register_scaled(LAMPS, ScalePaths::default());
        let labels = json!({ "app": "web" });
        let container = json!({ "name": "main", "image": "image" });
        let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
        let high = external("high", "1");
        let set = json!({
            "spec": { "selector": { "matchLabels": labels }, "template": template }, "status": { "replicas": 2 },
        });
        scaled(sandbox, &REPLICA_SETS, "set", set, &high);
        let controller = json!({ "spec": { "selector": { "app": "rc" }, "template": {
            "metadata": { "labels": { "app": "rc" } }, "spec": { "containers": [container] },
        } }, "status": { "replicas": 2 } });
        scaled(sandbox, &REPLICATION_CONTROLLERS, "controller", controller, &high);
        let lamp = json!({ "spec": {}, "status": { "replicas": 2, "selector": "app=lamp" } });
        scaled(sandbox, &LAMPS, "lamp", lamp, &high);
    });
    let cluster = start(environment).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    for (resource, name) in [(&REPLICA_SETS, "set"), (&REPLICATION_CONTROLLERS, "controller"), (&LAMPS, "lamp")] {
        let active = condition(sandbox, name, "ScalingActive");
        assert_eq!(wanted(sandbox, resource, name), 4, "{name}: {active}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_without_a_selector_and_one_that_cannot_be_parsed_are_reported() {
    let environment = environment().prepare(|sandbox| {
        serve_high(sandbox);
        sandbox.register_scaled(LAMPS, ScalePaths::default());
        let high = external("high", "1");
        scaled(sandbox, &LAMPS, "none", json!({ "spec": {}, "status": { "replicas": 2 } }), &high);
        let broken = json!({ "spec": {}, "status": { "replicas": 2, "selector": "app in (" } });
        scaled(sandbox, &LAMPS, "broken", broken, &high);
    });
    let cluster = start(environment).await;
    cluster.advance(PERIOD).await;
    cluster.settle().await;
    let sandbox = cluster.sandbox();
    let missing = "False InvalidSelector: the HPA target's scale is missing a selector";
    assert_eq!(condition(sandbox, "none", "ScalingActive"), missing);
    let invalid = "False InvalidSelector: couldn't convert selector into a corresponding internal selector object: ";
    let broken = condition(sandbox, "broken", "ScalingActive");
    assert!(broken.starts_with(invalid), "{broken}");
    let cause = broken.trim_start_matches("False InvalidSelector: ").to_owned();
    let mut expected = [
        "SelectorRequired selector is required".to_owned(),
        "FailedComputeMetricsReplicas selector is required".to_owned(),
        format!("InvalidSelector {cause}"),
        format!("FailedComputeMetricsReplicas {cause}"),
    ];
    expected.sort();
    assert_eq!(events(sandbox), expected);
    assert_eq!(["none", "broken"].map(|name| wanted(sandbox, &LAMPS, name)), [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_own_tolerance_counts_before_the_one_of_the_settings() {
    for (behavior, expected) in [(json!({ "scaleUp": { "tolerance": "0" } }), 3), (Value::Null, 2)] {
        let cluster = start(environment()).await;
        deployment(cluster.sandbox(), "web", 2, "105m");
        autoscaler_with(cluster.sandbox(), "web", &json!({ "metrics": [cpu(100)], "behavior": behavior }));
        cluster.settle().await;
        assert_eq!(replicas(cluster.sandbox(), "web"), expected, "{behavior}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_pods_request_as_a_whole_counts_with_its_gate() {
    for (gate, expected) in [(true, 2), (false, 4)] {
        let dependent = [
            "InPlacePodLevelResourcesVerticalScaling",
            "PodLevelResourcesFixDefaulting",
            "PodLevelResourcesFixKubeletQOSClass",
        ];
        let dependent = dependent.map(|dependent| format!("{dependent}={gate}")).join(",");
        let gate = format!("--feature-gates=PodLevelResources={gate},{dependent}");
        let cluster = start(environment().arguments(&[&gate])).await;
        let sandbox = cluster.sandbox();
        deployment(sandbox, "web", 2, "200m");
        for name in ["web-0", "web-1"] {
            let mut pod = sandbox.get(&PODS, &key(name)).expect("it is there");
            sandbox.delete_now(&PODS, &key(name)).expect("it is there");
            pod["metadata"] = json!({
                "namespace": "shop", "name": name, "labels": pod["metadata"]["labels"],
                "annotations": pod["metadata"]["annotations"],
            });
            pod["spec"]["resources"] = json!({ "requests": { "cpu": "200m" } });
            sandbox.create(&PODS, pod).expect("the pod must be valid");
            run(sandbox, name);
        }
        autoscaler(sandbox, "web", (1, 10), &[cpu(100)]);
        cluster.advance(PERIOD).await;
        cluster.settle().await;
        assert_eq!(replicas(cluster.sandbox(), "web"), expected, "{gate}");
    }
}
