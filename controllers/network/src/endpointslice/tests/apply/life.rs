//! The life of a service: its slices from the first pod to the last.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{EVENTS, NODES, PODS, Sandbox};
use serde_json::{Value, json};

use super::{
    BATCH_PERIOD, BATCHES, NAMESPACE, SERVICES, SLICES, create_pod, create_service, environment, events, has_ready,
    key, pod_name, ready, set_ready, slices, start, writes,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_slice_of_a_service_is_as_upstream_writes_it() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "metadata": { "labels": { "team": "shop" } } }));
    cluster.eventually("there is an empty slice", |sandbox| slices(sandbox).len() == 1).await;
    let empty = slices(cluster.sandbox()).remove(0);
    assert_eq!(empty["metadata"]["generateName"], "web-");
    assert!(empty["metadata"]["name"].as_str().unwrap().starts_with("web-"));
    let service = cluster.sandbox().get(&SERVICES, &key("web")).unwrap();
    assert_eq!(
        empty["metadata"]["ownerReferences"],
        json!([{ "apiVersion": "v1", "kind": "Service", "name": "web", "uid": service["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true }])
    );
    assert_eq!(
        empty["metadata"]["labels"],
        json!({ "team": "shop", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" })
    );
    let trigger = "endpoints.kubernetes.io/last-change-trigger-time";
    assert_eq!(empty["metadata"]["annotations"], json!({ trigger: service["metadata"]["creationTimestamp"] }));
    assert_eq!(empty["addressType"], "IPv4");

    cluster.advance(10 * SECOND).await;
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let slice = slices(cluster.sandbox()).remove(0);
    assert_eq!(slice["metadata"]["uid"], empty["metadata"]["uid"], "the empty slice is used");
    let pod = cluster.sandbox().get(&PODS, &key(&pod_name(1))).unwrap();
    let ready_since = &pod["status"]["conditions"][0]["lastTransitionTime"];
    assert_eq!(slice["metadata"]["annotations"], json!({ trigger: ready_since }));
    assert_eq!(slice["ports"], json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]));
    assert_eq!(
        slice["endpoints"],
        json!([{
            "addresses": ["10.0.0.1"],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": "node-a",
            "targetRef": { "kind": "Pod", "namespace": NAMESPACE, "name": pod_name(1), "uid": pod["metadata"]["uid"] },
            "zone": "a",
        }])
    );
    cluster.settle().await;
    let before = writes(&cluster).len();
    cluster.advance(60 * SECOND).await;
    assert_eq!(writes(&cluster).len(), before, "at rest nothing is written");
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_readiness_deletion_and_labels_of_pods() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=3 {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=3).await;
    set_ready(cluster.sandbox(), 2, false);
    has_ready(&cluster, [1, 3]).await;
    set_ready(cluster.sandbox(), 2, true);
    has_ready(&cluster, 1..=3).await;
    cluster
        .sandbox()
        .patch(&PODS, &key(&pod_name(3)), &json!({ "metadata": { "labels": { "app": "other" } } }))
        .unwrap();
    has_ready(&cluster, 1..=2).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    has_ready(&cluster, [2]).await;
    cluster.sandbox().patch_status(&PODS, &key(&pod_name(2)), &json!({ "status": { "phase": "Succeeded" } })).unwrap();
    has_ready(&cluster, []).await;
    cluster.settle().await;
    let slices = slices(cluster.sandbox());
    let is_empty = |field: &str| slices[0][field].as_array().is_none_or(Vec::is_empty);
    assert!(slices.len() == 1 && is_empty("ports") && is_empty("endpoints"), "it is empty again: {slices:?}");
}

#[tokio::test(start_paused = true)]
async fn a_terminating_pod_stays_until_it_is_gone() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.sandbox().delete(&PODS, &key(&pod_name(1))).unwrap();
    let conditions = |sandbox: &_| slices(sandbox)[0]["endpoints"][0]["conditions"].clone();
    let terminating = json!({ "ready": false, "serving": true, "terminating": true });
    cluster.eventually("it is terminating", |sandbox| conditions(sandbox) == terminating).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    cluster.eventually("it is gone", |sandbox| conditions(sandbox) == Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn slices_are_filled_up_to_the_limit_and_kept_while_pods_are_replaced() {
    let cluster = start(environment().arguments(&["--max-endpoints-per-slice=5"])).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=12 {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=12).await;
    cluster.settle().await;
    let names = |cluster: &kcm_testing::TestCluster| -> Vec<String> {
        slices(cluster.sandbox()).iter().map(|slice| slice["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let before = names(&cluster);
    assert!(
        before.len() >= 3
            && slices(cluster.sandbox()).iter().all(|slice| slice["endpoints"].as_array().unwrap().len() <= 5)
    );
    for number in 1..=12 {
        cluster.sandbox().delete_now(&PODS, &key(&pod_name(number))).unwrap();
        create_pod(cluster.sandbox(), number + 12, "b");
        let all: Vec<_> = (number + 1..=number + 12).collect();
        has_ready(&cluster, all).await;
    }
    assert_eq!(names(&cluster), before, "no slice more, and none renamed");
}

#[tokio::test(start_paused = true)]
async fn what_others_do_to_slices_is_undone() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let name = || slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let first = name();
    cluster.sandbox().patch(&SLICES, &key(&first), &json!({ "endpoints": [] })).unwrap();
    has_ready(&cluster, [1]).await;
    cluster.sandbox().patch(&SLICES, &key(&first), &json!({ "metadata": { "labels": { "other": "x" } } })).unwrap();
    let has_label = |sandbox: &_| slices(sandbox)[0]["metadata"]["labels"].get("other").is_some();
    cluster.eventually("the label is gone", |sandbox| !has_label(sandbox)).await;
    cluster.sandbox().delete(&SLICES, &key(&first)).unwrap();
    has_ready(&cluster, [1]).await;
    assert_ne!(name(), first);
}

#[tokio::test(start_paused = true)]
async fn annotations_and_finalizers_of_others_survive_an_update() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let other = json!({ "metadata": { "annotations": { "example.com/a": "b" }, "finalizers": ["example.com/f"] } });
    cluster.sandbox().patch(&SLICES, &key(&name), &other).unwrap();
    create_pod(cluster.sandbox(), 2, "a");
    has_ready(&cluster, 1..=2).await;
    let metadata = slices(cluster.sandbox())[0]["metadata"].clone();
    assert_eq!(
        (&metadata["annotations"]["example.com/a"], &metadata["finalizers"]),
        (&json!("b"), &json!(["example.com/f"]))
    );
}

#[tokio::test(start_paused = true)]
async fn services_that_select_no_pods_are_left_alone() {
    let cluster = start(environment()).await;
    let external = json!({ "spec": { "type": "ExternalName", "externalName": "example.com", "clusterIP": "" } });
    create_service(cluster.sandbox(), &external);
    let mut without = json!({ "metadata": { "namespace": NAMESPACE, "name": "without" } });
    without["spec"] = json!({ "ports": [{ "port": 80 }] });
    cluster.sandbox().create(&SERVICES, without).unwrap();
    create_pod(cluster.sandbox(), 1, "a");
    cluster.advance(10 * SECOND).await;
    assert!(slices(cluster.sandbox()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_within_the_batch_period_are_one_write() {
    for batches in BATCHES {
        let cluster = start(environment().arguments(&["--endpointslice-updates-batch-period=5s"])).await;
        create_service(cluster.sandbox(), &json!({}));
        for number in 1..=3 {
            create_pod(cluster.sandbox(), number, "a");
        }
        has_ready(&cluster, 1..=3).await;
        cluster.advance(3 * BATCH_PERIOD).await;
        batches.run(&cluster, || writes(&cluster).len()).await;
        assert_eq!(ready(cluster.sandbox()), batches.ready, "{}", batches.name);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_large_service_that_follow_each_other_are_one_write() {
    const COUNT: usize = 200;
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=COUNT {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=COUNT).await;
    cluster.advance(SECOND).await;
    let before = writes(&cluster).len();
    set_ready(cluster.sandbox(), 1, false);
    cluster.advance(SECOND / 1000).await;
    assert_eq!(writes(&cluster).len(), before + 1, "the first change after a rest does not wait");
    for number in 2..=4 {
        set_ready(cluster.sandbox(), number, false);
        cluster.advance(SECOND / 1000).await;
        assert_eq!(writes(&cluster).len(), before + 1, "{number}");
    }
    has_ready(&cluster, 5..=COUNT).await;
    assert_eq!(writes(&cluster).len(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_node_does_not_exist_is_an_endpoint_when_the_node_appears() {
    let environment = environment().allow_error("skipping Pod web-0001");
    let cluster = start(environment).await;
    cluster.sandbox().delete(&NODES, &ObjectKey::cluster_scoped("node-b")).unwrap();
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "b");
    create_pod(cluster.sandbox(), 2, "a");
    has_ready(&cluster, [2]).await;
    let message = "Error updating Endpoint Slices for Service shop/web: skipping Pod web-0001 for Service shop/web: Node node-b Not Found";
    let event = ("Warning".to_owned(), "FailedToUpdateEndpointSlices".to_owned(), message.to_owned());
    cluster.eventually("it is recorded", |sandbox| events(sandbox).contains(&event)).await;
    let recorded = |sandbox: &Sandbox| {
        let events = sandbox.list(&EVENTS, Some(NAMESPACE));
        events.iter().map(|event| event["count"].as_i64().unwrap_or(1)).sum::<i64>()
    };
    cluster.advance(50 * 60 * SECOND).await;
    assert_eq!(recorded(cluster.sandbox()), 1, "it is tried again and again, and recorded once an hour");
    cluster.advance(40 * 60 * SECOND).await;
    assert_eq!(recorded(cluster.sandbox()), 2);
    cluster.sandbox().create(&NODES, json!({ "metadata": { "name": "node-b" } })).unwrap();
    has_ready(&cluster, 1..=2).await;
}

#[tokio::test(start_paused = true)]
async fn hints_follow_the_distribution_and_the_topology() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "spec": { "trafficDistribution": "PreferClose" } }));
    create_pod(cluster.sandbox(), 1, "a");
    create_pod(cluster.sandbox(), 2, "b");
    has_ready(&cluster, 1..=2).await;
    let hints = |sandbox: &_| -> Vec<Value> {
        let endpoints = slices(sandbox)[0]["endpoints"].as_array().cloned().unwrap_or_default();
        endpoints.iter().map(|endpoint| endpoint["hints"]["forZones"][0]["name"].clone()).collect()
    };
    cluster.eventually("zones are hinted", |sandbox| hints(sandbox) == [json!("a"), json!("b")]).await;
    let topology = json!({ "metadata": { "annotations": { "service.kubernetes.io/topology-mode": "Auto" } },
        "spec": { "trafficDistribution": null } });
    cluster.sandbox().patch(&SERVICES, &key("web"), &topology).unwrap();
    let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
    let has_event = |sandbox: &_, message: &str| events(sandbox).iter().any(|(_, _, found)| found == message);
    cluster.eventually("topology is in force", |sandbox| has_event(sandbox, enabled)).await;
    // A zone less: no node is left in zone b, and hints are removed.
    cluster.sandbox().delete(&NODES, &ObjectKey::cluster_scoped("node-b")).unwrap();
    let disabled =
        "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, addressType: IPv4";
    cluster.eventually("they are disabled", |sandbox| has_event(sandbox, disabled)).await;
    cluster.eventually("hints are gone", |sandbox| hints(sandbox).iter().all(Value::is_null)).await;
    drop(cluster.take_errors());
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_pending_or_unknown_are_endpoints() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for (number, phase) in [(1, "Pending"), (2, "Unknown"), (3, "Failed")] {
        create_pod(cluster.sandbox(), number, "a");
        let status = json!({ "status": { "phase": phase } });
        cluster.sandbox().patch_status(&PODS, &key(&pod_name(number)), &status).unwrap();
    }
    cluster.advance(10 * SECOND).await;
    assert_eq!(ready(cluster.sandbox()), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn the_slices_of_a_terminating_service_are_updated_deleted_and_used_again() {
    let cluster = start(environment().arguments(&["--max-endpoints-per-slice=1"])).await;
    create_service(cluster.sandbox(), &json!({ "metadata": { "finalizers": ["example.com/f"] } }));
    for number in 1..=2 {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=2).await;
    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    cluster.settle().await;
    assert_eq!(slices(cluster.sandbox()).len(), 2);

    set_ready(cluster.sandbox(), 2, false);
    has_ready(&cluster, [1]).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(2))).unwrap();
    cluster.eventually("the empty slice is deleted", |sandbox| slices(sandbox).len() == 1).await;
    let last = slices(cluster.sandbox())[0]["metadata"]["uid"].clone();
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    has_ready(&cluster, []).await;
    create_pod(cluster.sandbox(), 3, "a");
    has_ready(&cluster, [3]).await;
    // There is no slice with room for another one, and none is created.
    create_pod(cluster.sandbox(), 4, "a");
    cluster.advance(10 * SECOND).await;
    let slices = slices(cluster.sandbox());
    assert_eq!((ready(cluster.sandbox()), slices.len()), (vec![3], 1));
    assert_eq!(slices[0]["metadata"]["uid"], last, "it is used again");
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_is_terminating_is_replaced() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let held = json!({ "metadata": { "finalizers": ["example.com/f"] } });
    cluster.sandbox().patch(&SLICES, &key(&name), &held).unwrap();
    cluster.sandbox().delete(&SLICES, &key(&name)).unwrap();
    has_ready(&cluster, [1, 1]).await;
    let released = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&SLICES, &key(&name), &released).unwrap();
    has_ready(&cluster, [1]).await;
    assert_ne!(slices(cluster.sandbox())[0]["metadata"]["name"], json!(name));
}

#[tokio::test(start_paused = true)]
async fn slices_of_another_manager_stay() {
    let cluster = start(environment()).await;
    let slice = |name: &str, manager: Option<&str>| {
        let mut labels = json!({ "kubernetes.io/service-name": "web" });
        if let Some(manager) = manager {
            labels["endpointslice.kubernetes.io/managed-by"] = json!(manager);
        }
        let metadata = json!({ "namespace": NAMESPACE, "name": name, "labels": labels });
        let endpoints = json!([{ "addresses": ["10.9.9.9"], "conditions": { "ready": false } }]);
        json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": [] })
    };
    cluster.sandbox().create(&SLICES, slice("of-another", Some("another.example.com"))).unwrap();
    cluster.sandbox().create(&SLICES, slice("unmanaged", None)).unwrap();
    let found = || ["of-another", "unmanaged"].map(|name| cluster.sandbox().get(&SLICES, &key(name)));
    let before = found();
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    has_ready(&cluster, []).await;
    cluster.advance(60 * SECOND).await;
    assert_eq!(found(), before);
    assert_eq!(slices(cluster.sandbox()).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_new_change_of_pod_or_service_clears_the_trigger_time() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let trigger = |sandbox: &_| {
        slices(sandbox)[0]["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"].clone()
    };
    assert!(trigger(cluster.sandbox()).is_string());
    let labels = json!({ "metadata": { "labels": { "team": "a" } } });
    cluster.sandbox().patch(&SERVICES, &key("web"), &labels).unwrap();
    let is_labelled = |sandbox: &_| slices(sandbox)[0]["metadata"]["labels"]["team"] == "a";
    cluster.eventually("the slice is labelled", is_labelled).await;
    assert_eq!(trigger(cluster.sandbox()), Value::Null);
    assert_eq!(ready(cluster.sandbox()), [1]);
}

/// Creates a pod of the service with an address that never was ready.
fn create_unready(cluster: &TestCluster, number: usize) {
    let spec = json!({ "nodeName": "node-a", "containers": [{ "name": "main", "image": "image" }] });
    let metadata = json!({ "namespace": NAMESPACE, "name": pod_name(number), "labels": { "app": "web" } });
    cluster.sandbox().create(&PODS, json!({ "metadata": metadata, "spec": spec })).unwrap();
    let ip = format!("10.0.0.{number}");
    let status = json!({ "status": { "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] } });
    cluster.sandbox().patch_status(&PODS, &key(&pod_name(number)), &status).unwrap();
}

/// Number of endpoints, ready or not.
fn endpoints(sandbox: &Sandbox) -> usize {
    slices(sandbox).iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_is_written_with_the_change_that_traffic_waits_for() {
    const MILLISECOND: Duration = Duration::from_millis(1);
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.advance(Duration::from_secs(2)).await;
    let before = writes(&cluster).len();
    create_unready(&cluster, 2);
    cluster.advance(400 * MILLISECOND).await;
    assert_eq!((writes(&cluster).len(), endpoints(cluster.sandbox())), (before, 1), "its address is not written yet");
    set_ready(cluster.sandbox(), 2, true);
    cluster.advance(20 * MILLISECOND).await;
    let readied = writes(&cluster).len();
    assert_eq!((readied, ready(cluster.sandbox())), (before + 1, vec![1, 2]), "its readiness is written at once");
    cluster.advance(Duration::from_secs(2)).await;
    assert_eq!(writes(&cluster).len(), readied, "the delayed change has nothing to write");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_no_traffic_depends_on_is_written_within_a_second() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    create_pod(cluster.sandbox(), 2, "a");
    set_ready(cluster.sandbox(), 2, false);
    has_ready(&cluster, [1]).await;
    cluster.advance(Duration::from_secs(2)).await;
    let before = writes(&cluster).len();
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(2))).unwrap();
    cluster.advance(Duration::from_millis(450)).await;
    assert_eq!((writes(&cluster).len(), endpoints(cluster.sandbox())), (before, 2), "it is not written at once");
    cluster.advance(Duration::from_millis(600)).await;
    assert_eq!((writes(&cluster).len(), endpoints(cluster.sandbox())), (before + 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_publishes_addresses_that_are_not_ready_knows_no_delayed_change() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "spec": { "publishNotReadyAddresses": true } }));
    create_pod(cluster.sandbox(), 1, "a");
    set_ready(cluster.sandbox(), 1, false);
    cluster.advance(Duration::from_secs(2)).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    cluster.advance(Duration::from_millis(100)).await;
    assert_eq!(endpoints(cluster.sandbox()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_of_a_small_service_writes_less_than_each_change() {
    const PODS_OF_SERVICE: usize = 10;
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=PODS_OF_SERVICE {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=PODS_OF_SERVICE).await;
    cluster.advance(Duration::from_secs(2)).await;
    let before = writes(&cluster).len();
    for number in 1..=PODS_OF_SERVICE {
        create_pod(cluster.sandbox(), PODS_OF_SERVICE + number, "b");
        cluster.advance(Duration::from_millis(5)).await;
        set_ready(cluster.sandbox(), number, false);
        cluster.advance(Duration::from_millis(5)).await;
        cluster.sandbox().delete_now(&PODS, &key(&pod_name(number))).unwrap();
        cluster.advance(Duration::from_millis(10)).await;
    }
    has_ready(&cluster, PODS_OF_SERVICE + 1..=2 * PODS_OF_SERVICE).await;
    cluster.advance(Duration::from_secs(2)).await;
    let written = writes(&cluster).len() - before;
    assert!(written <= PODS_OF_SERVICE, "{written} writes for {PODS_OF_SERVICE} replaced pods");
    assert_eq!(endpoints(cluster.sandbox()), PODS_OF_SERVICE);
}
