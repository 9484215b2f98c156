//! What the metrics show.

use std::time::Duration;

use kcm_framework::Format;
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use serde_json::{Value, json};

use super::{
    SERVICES, SLICES, create_pod, create_service, environment, has_ready, key, pod_name, set_ready, slices, start,
};

const SECOND: Duration = Duration::from_secs(1);

/// The value of a metric of the controller; 0 where it is not shown.
fn value(cluster: &TestCluster, metric: &str) -> u64 {
    let metrics = String::from_utf8(cluster.scrape(Format::Text)).unwrap();
    let prefix = format!("endpoint_slice_controller_{metric} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&prefix));
    line.map_or(0, |value| value.parse().unwrap())
}

fn changed_per_sync(what: &str, topology: &str, distribution: &str) -> String {
    let labels = format!("topology=\"{topology}\",traffic_distribution=\"{distribution}\"");
    format!("endpointslices_changed_per_sync_{what}{{{labels}}}")
}

fn label(sandbox: &Sandbox, number: usize, app: &str) {
    let labels = json!({ "metadata": { "labels": { "app": app } } });
    sandbox.patch(&PODS, &key(&pod_name(number)), &labels).unwrap();
}

#[tokio::test(start_paused = true)]
async fn metrics_count_endpoints_and_slices() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "spec": { "trafficDistribution": "PreferClose" } }));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.settle().await;
    let scrape = || String::from_utf8(cluster.scrape(Format::Text)).unwrap();
    let metrics = scrape();
    for line in [
        "endpoint_slice_controller_endpoints_desired 1",
        "endpoint_slice_controller_num_endpoint_slices 1",
        "endpoint_slice_controller_desired_endpoint_slices 1",
        "endpoint_slice_controller_changes{operation=\"create\"} 1",
        "endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution=\"PreferClose\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in {metrics}");
    }
    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    cluster.advance(5 * SECOND).await;
    assert!(scrape().lines().any(|line| line == "endpoint_slice_controller_endpoints_desired 0"));
}

#[tokio::test(start_paused = true)]
async fn metrics_count_what_each_sync_changes() {
    let cluster = start(environment().arguments(&["--max-endpoints-per-slice=1"])).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=2 {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=2).await;
    // The delayed changes of the pods that were not ready are over.
    cluster.advance(2 * SECOND).await;
    let metrics = [
        "changes{operation=\"create\"}".to_owned(),
        "changes{operation=\"update\"}".to_owned(),
        "changes{operation=\"delete\"}".to_owned(),
        "endpoints_added_per_sync_sum".to_owned(),
        "endpoints_removed_per_sync_sum".to_owned(),
        changed_per_sync("sum", "Disabled", ""),
    ];
    let values = || metrics.each_ref().map(|metric| value(&cluster, metric));
    let syncs = || ["added", "removed"].map(|what| value(&cluster, &format!("endpoints_{what}_per_sync_count")));
    let leaves: fn(&Sandbox) = |sandbox| label(sandbox, 2, "other");
    let returns: fn(&Sandbox) = |sandbox| label(sandbox, 2, "web");
    for (name, change, expected) in [
        ("a pod leaves", leaves, [0, 0, 1, 0, 1, 1]),
        ("a pod returns", returns, [1, 0, 0, 1, 0, 1]),
        ("a pod is not ready", |sandbox| set_ready(sandbox, 1, false), [0, 1, 0, 0, 0, 1]),
        ("a pod is ready again", |sandbox| set_ready(sandbox, 1, true), [0, 1, 0, 0, 0, 1]),
    ] {
        let (before, [added, removed]) = (values(), syncs());
        change(cluster.sandbox());
        cluster.advance(SECOND).await;
        let after = values();
        let difference: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(difference, expected, "{name}: {metrics:?}");
        assert_eq!(syncs(), [added + 1, removed + 1], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_count_syncs_by_their_result() {
    let cluster = start(environment().allow_error("failed to update")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.settle().await;
    let syncs = || ["success", "error"].map(|result| value(&cluster, &format!("syncs{{result=\"{result}\"}}")));
    let [succeeded, failed] = syncs();
    assert!(succeeded > 0);
    assert_eq!(failed, 0);
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(SLICES).times(2).fail(refused));
    set_ready(cluster.sandbox(), 1, false);
    // It is tried again after a second, and then after two.
    cluster.advance(2 * SECOND).await;
    assert_eq!(syncs(), [succeeded, 2]);
    cluster.advance(5 * SECOND).await;
    assert_eq!(syncs(), [succeeded + 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn metrics_follow_the_topology_and_the_traffic_distribution_of_a_service() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for (number, zone) in [(1, "a"), (2, "b")] {
        create_pod(cluster.sandbox(), number, zone);
    }
    has_ready(&cluster, 1..=2).await;
    // The delayed changes of the pods that were not ready are over.
    cluster.advance(2 * SECOND).await;
    let topology =
        |mode: Value| json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": mode } } });
    let distribution = |distribution: Value| json!({ "spec": { "trafficDistribution": distribution } });
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    for (name, change, labels, writes, services) in [
        ("zones", distribution(json!("PreferClose")), ("Disabled", "PreferClose"), 1, [1, 0, 0]),
        ("nodes", distribution(json!("PreferSameNode")), ("Disabled", "PreferSameNode"), 1, [0, 0, 1]),
        ("nothing", distribution(Value::Null), ("Disabled", ""), 1, [0, 0, 0]),
        ("topology", topology(json!("Auto")), ("Auto", ""), 1, [0, 0, 0]),
        // The hints are the same.
        ("both", distribution(json!("PreferClose")), ("Auto", ""), 0, [0, 0, 0]),
        ("zones again", topology(Value::Null), ("Disabled", "PreferClose"), 0, [1, 0, 0]),
    ] {
        let changed = || ["sum", "count"].map(|what| value(&cluster, &changed_per_sync(what, labels.0, labels.1)));
        let [sum, count] = changed();
        cluster.sandbox().patch(&SERVICES, &key("web"), &change).unwrap();
        cluster.advance(SECOND).await;
        assert_eq!(changed(), [sum + writes, count + 1], "{name}");
        let found = distributions.map(|distribution| {
            let labels = format!("{{traffic_distribution=\"{distribution}\"}}");
            value(&cluster, &format!("services_count_by_traffic_distribution{labels}"))
        });
        assert_eq!(found, services, "{name}");
    }
    assert_eq!(slices(cluster.sandbox()).len(), 1);
}
