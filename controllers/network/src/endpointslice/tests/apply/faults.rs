//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, NODES, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::json;
use tokio::time::Instant;

use super::{
    GonePods, NAMESPACE, SERVICES, SLICES, create_pod, create_service, environment, events, has_ready, key,
    make_decodable, make_undecodable, named_pods, pod_name, ready, slices, start, writes,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_creation_whose_response_is_lost_makes_one_slice() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(SLICES).times(1).lose_answer());
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.advance(120 * SECOND).await;
    assert_eq!(slices(cluster.sandbox()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_lead_to_no_other_slices() {
    for number in 0..3 {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().inject(Fault::on_writes().resource(SLICES).skip(number).times(1).lose_answer());
        create_service(cluster.sandbox(), &json!({}));
        create_pod(cluster.sandbox(), 1, "a");
        has_ready(&cluster, [1]).await;
        create_pod(cluster.sandbox(), 2, "a");
        has_ready(&cluster, 1..=2).await;
        cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
        has_ready(&cluster, [2]).await;
        cluster.advance(60 * SECOND).await;
        assert_eq!((slices(cluster.sandbox()).len(), ready(cluster.sandbox())), (1, vec![2]), "write {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_events_of_slices_lead_to_no_second_slice() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().delay_events(&SLICES, 5 * SECOND);
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=3 {
        create_pod(cluster.sandbox(), number, "a");
        cluster.advance(SECOND).await;
    }
    has_ready(&cluster, 1..=3).await;
    cluster.advance(20 * SECOND).await;
    assert_eq!(slices(cluster.sandbox()).len(), 1);
    assert!(events(cluster.sandbox()).is_empty(), "{:?}", events(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn late_events_of_pods_delay_endpoints_and_no_more() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    cluster.sandbox().faults().delay_events(&PODS, 5 * SECOND);
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    has_ready(&cluster, []).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_slice_and_no_more() {
    let cluster = start(environment()).await;
    let busy = Fault::on_writes().resource(SLICES).times(5);
    cluster.sandbox().faults().inject(busy.fail(Status::too_many_requests(1)));
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    assert_eq!(slices(cluster.sandbox()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_recorded_and_tried_again() {
    let cluster = start(environment().allow_error("failed to create EndpointSlice")).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(SLICES).times(2).fail(refused));
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let message = "Error updating Endpoint Slices for Service shop/web: failed to create EndpointSlice for Service \
         shop/web: a policy refuses it";
    let event = ("Warning".to_owned(), "FailedToUpdateEndpointSlices".to_owned(), message.to_owned());
    assert!(events(cluster.sandbox()).contains(&event), "{:?}", events(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn a_slice_that_was_changed_meanwhile_is_read_again() {
    let cluster = start(environment().allow_error("failed to update")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    cluster.settle().await;
    cluster.sandbox().faults().delay_events(&SLICES, 2 * SECOND);
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let change = json!({ "metadata": { "annotations": { "example.com/a": "b" } } });
    cluster.sandbox().patch(&SLICES, &key(&name), &change).unwrap();
    create_pod(cluster.sandbox(), 2, "a");
    has_ready(&cluster, 1..=2).await;
    assert_eq!(slices(cluster.sandbox())[0]["metadata"]["annotations"]["example.com/a"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_terminating_service_gets_no_new_slice() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({ "metadata": { "finalizers": ["example.com/f"] } }));
    cluster.eventually("there is a slice", |sandbox| slices(sandbox).len() == 1).await;
    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.sandbox().delete(&SLICES, &key(&name)).unwrap();
    cluster.advance(10 * SECOND).await;
    assert!(slices(cluster.sandbox()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment().arguments(&["--max-endpoints-per-slice=2"]),
        async |cluster| {
            cluster.watches(&[SERVICES, PODS, SLICES]).await;
            create_service(cluster.sandbox(), &json!({}));
            for number in 1..=4 {
                create_pod(cluster.sandbox(), number, "a");
            }
            has_ready(cluster, 1..=4).await;
            for number in 1..=2 {
                cluster.sandbox().delete_now(&PODS, &key(&pod_name(number))).unwrap();
            }
            has_ready(cluster, 3..=4).await;
            cluster.advance(60 * SECOND).await;
            assert_eq!(ready(cluster.sandbox()), [3, 4]);
            assert!(slices(cluster.sandbox()).len() <= 2, "{:?}", slices(cluster.sandbox()));
        },
    )
    .await;
    assert!(writes >= 2, "{writes}");
}

#[tokio::test(start_paused = true)]
async fn a_successor_at_rest_writes_nothing() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=3 {
        create_pod(cluster.sandbox(), number, "a");
    }
    has_ready(&cluster, 1..=3).await;
    cluster.settle().await;
    let before = writes(&cluster).len();
    cluster.kill();
    cluster.eventually("another manager runs", |_| cluster.managers_started() > 1).await;
    cluster.advance(30 * SECOND).await;
    assert_eq!(writes(&cluster).len(), before);
}

/// Deletes pods one after the other; asserts that no endpoint names one that has been gone for longer than the delay of
/// the watch and a bit. Returns the longest time that one did.
async fn delete_pods(cluster: &TestCluster, delay: Duration) -> Duration {
    cluster.watches(&[SERVICES, PODS, SLICES]).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=4 {
        create_pod(cluster.sandbox(), number, "a");
        has_ready(cluster, 1..=number).await;
    }
    cluster.sandbox().faults().delay_events(&PODS, delay);
    let mut gone = GonePods::default();
    for number in 1..=3 {
        cluster.sandbox().delete_now(&PODS, &key(&pod_name(number))).unwrap();
        let left: Vec<usize> = (number + 1..=4).collect();
        cluster
            .eventually("it is no endpoint any more", |sandbox| {
                gone.check(sandbox, &named_pods(sandbox), delay + SECOND);
                ready(sandbox) == left
            })
            .await;
    }
    cluster.advance(60 * SECOND).await;
    gone.longest
}

#[tokio::test(start_paused = true)]
async fn no_endpoint_is_of_a_pod_that_was_gone_longer_than_the_delay_of_the_watch() {
    for delay in [Duration::ZERO, 5 * SECOND] {
        let cluster = start(environment()).await;
        let longest = delete_pods(&cluster, delay).await;
        assert!(longest >= delay.saturating_sub(SECOND / 10), "the watcher sees them: {longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_endpoint_outlives_its_pod_whatever_write_the_manager_is_killed_after() {
    for delay in [Duration::ZERO, 5 * SECOND] {
        kill_after_each_write(environment, async |cluster| {
            delete_pods(cluster, delay).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn that_a_namespace_is_terminating_by_now_is_no_failure() {
    let terminating = Status::new(403, "Forbidden", "it is being terminated");
    let terminating = terminating.with_cause("NamespaceTerminating", "shop", "metadata.namespace");
    let cluster = start(environment()).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(SLICES).fail(terminating));
    create_service(cluster.sandbox(), &json!({}));
    cluster.advance(20 * 60 * SECOND).await;
    assert_eq!(writes(&cluster).len(), 1, "it is not tried again");
    assert!(events(cluster.sandbox()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slice_of_another_family_that_cannot_be_deleted_is_recorded_and_tried_again() {
    let cluster = start(environment().allow_error("error deleting web-v6")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(SLICES).times(1).fail(refused));
    let labels = json!({ "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" });
    let metadata = json!({ "namespace": NAMESPACE, "name": "web-v6", "labels": labels });
    cluster
        .sandbox()
        .create(&SLICES, json!({ "metadata": metadata, "addressType": "IPv6", "endpoints": [], "ports": [] }))
        .unwrap();
    cluster.eventually("it is deleted", |sandbox| sandbox.get(&SLICES, &key("web-v6")).is_none()).await;
    let message = "Error updating Endpoint Slices for Service shop/web: error deleting web-v6 EndpointSlice for Service \
         shop/web: a policy refuses it";
    let event = ("Warning".to_owned(), "FailedToUpdateEndpointSlices".to_owned(), message.to_owned());
    assert!(events(cluster.sandbox()).contains(&event), "{:?}", events(cluster.sandbox()));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_after_a_second_and_then_after_twice_as_long_each_time() {
    let cluster = start(environment().allow_error("failed to create EndpointSlice")).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(SLICES).times(5).fail(refused));
    create_service(cluster.sandbox(), &json!({}));
    cluster.eventually("there is a slice", |sandbox| slices(sandbox).len() == 1).await;
    let mut requests = cluster.requests_of("endpointslice-controller");
    requests.retain(|request| request.method == "POST" && request.path.ends_with("/endpointslices"));
    let gaps: Vec<u64> = requests.windows(2).map(|two| two[1].at.saturating_sub(two[0].at).as_secs()).collect();
    assert_eq!(gaps, [1, 2, 4, 8, 16]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_decoded_holds_its_service() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    make_undecodable(cluster.sandbox(), 1);
    create_pod(cluster.sandbox(), 2, "a");
    cluster.consistently("the slices stay as they are", 60 * SECOND, |sandbox| ready(sandbox) == [1]).await;
    let explained =
        cluster.handle().explain("endpointslice-controller", &key("web")).expect("there is such a controller");
    let words = "leaves its slices as they are, as pod web-0001 cannot be decoded";
    assert!(format!("{explained:?}").contains(words), "{explained:?}");
    make_decodable(cluster.sandbox(), 1);
    has_ready(&cluster, 1..=2).await;

    make_undecodable(cluster.sandbox(), 1);
    cluster.advance(10 * SECOND).await;
    assert_eq!(ready(cluster.sandbox()), [1, 2]);
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    let deleted_at = Instant::now();
    has_ready(&cluster, [2]).await;
    assert!(deleted_at.elapsed() <= SECOND, "{:?}", deleted_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn endpoints_on_a_node_that_cannot_be_decoded_stay_until_it_is_deleted() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    let annotations = json!({ "service.kubernetes.io/topology-mode": "Auto" });
    create_service(cluster.sandbox(), &json!({ "metadata": { "annotations": annotations } }));
    for (number, zone) in (1..=4).zip(["a", "a", "b", "b"]) {
        create_pod(cluster.sandbox(), number, zone);
    }
    has_ready(&cluster, 1..=4).await;
    let in_zone_a = |sandbox: &Sandbox| {
        let slices = slices(sandbox);
        let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
        endpoints.filter(|endpoint| endpoint["zone"] == "a" && endpoint["hints"].is_object()).count()
    };
    cluster.eventually("there are hints", |sandbox| in_zone_a(sandbox) == 2).await;
    let node = ObjectKey::cluster_scoped("node-a");
    DirectClient::new(cluster.sandbox()).merge(&NODES, &node, None, &json!({ "spec": { "taints": "none" } })).unwrap();
    cluster.settle().await;
    create_pod(cluster.sandbox(), 5, "a");
    create_pod(cluster.sandbox(), 6, "b");
    has_ready(&cluster, 1..=6).await;
    cluster
        .consistently("the endpoints and hints stay", 120 * SECOND, |sandbox| {
            ready(sandbox) == [1, 2, 3, 4, 5, 6] && in_zone_a(sandbox) == 3
        })
        .await;
    let failed =
        |sandbox: &Sandbox| events(sandbox).iter().any(|(_, reason, _)| reason == "FailedToUpdateEndpointSlices");
    assert!(!failed(cluster.sandbox()), "{:?}", events(cluster.sandbox()));
    cluster.sandbox().delete_now(&NODES, &node).unwrap();
    has_ready(&cluster, [3, 4, 6]).await;
}

#[tokio::test(start_paused = true)]
async fn a_slice_whose_endpoints_cannot_be_read_is_replaced() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1, "a");
    has_ready(&cluster, [1]).await;
    let name = slices(cluster.sandbox())[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let broken = json!({ "endpoints": "none", "metadata": { "generation": 9 } });
    DirectClient::new(cluster.sandbox()).merge(&SLICES, &key(&name), None, &broken).unwrap();
    create_pod(cluster.sandbox(), 2, "a");
    let is_replaced = |sandbox: &Sandbox| {
        slices(sandbox).iter().all(|slice| slice["metadata"]["name"] != *name) && ready(sandbox) == [1, 2]
    };
    cluster.eventually("the slice is replaced", is_replaced).await;
}
