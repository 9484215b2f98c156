//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    ENDPOINTS, GonePods, NAMESPACE, SERVICES, create_endpoints, create_pod, create_service, endpoints, environment,
    has_ready, key, make_decodable, make_undecodable, named_pods, pod_name, ready, start, warnings, writes,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn lost_responses_and_a_busy_server_lead_to_the_same_endpoints() {
    let lost = |number| Fault::on_writes().resource(ENDPOINTS).skip(number).times(1).lose_answer();
    let busy = Fault::on_writes().resource(ENDPOINTS).times(5).fail(Status::too_many_requests(1));
    for (name, fault) in [("creation", lost(0)), ("update", lost(1)), ("second update", lost(2)), ("busy", busy)] {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().delay_events(&ENDPOINTS, 2 * SECOND);
        cluster.sandbox().faults().inject(fault);
        create_service(cluster.sandbox(), &json!({}));
        create_pod(cluster.sandbox(), 1);
        has_ready(&cluster, [1]).await;
        create_pod(cluster.sandbox(), 2);
        has_ready(&cluster, 1..=2).await;
        cluster.advance(120 * SECOND).await;
        assert_eq!(ready(cluster.sandbox()), Some(vec![1, 2]), "{name}");
        cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
        cluster.eventually(name, |sandbox| ready(sandbox).is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_a_deletion_leads_to_no_other_deletion_of_what_is_recreated() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    has_ready(&cluster, []).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(ENDPOINTS).times(1).lose_answer());
    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    cluster.eventually("they are deleted", |sandbox| ready(sandbox).is_none()).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    cluster.advance(120 * SECOND).await;
    assert_eq!(ready(cluster.sandbox()), Some(vec![1]));
}

#[tokio::test(start_paused = true)]
async fn late_events_of_pods_delay_addresses_and_no_more() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    cluster.sandbox().faults().delay_events(&PODS, 5 * SECOND);
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    has_ready(&cluster, []).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_another_client_writes_first_are_taken_over() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().delay_events(&ENDPOINTS, 5 * SECOND);
    create_endpoints(cluster.sandbox(), "web", &json!({ "annotations": { "example.com/a": "b" } }));
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    // A change that the cache does not show yet.
    let change = json!({ "metadata": { "annotations": { "example.com/c": "d" } } });
    cluster.advance(10 * SECOND).await;
    cluster.sandbox().patch(&ENDPOINTS, &key("web"), &change).unwrap();
    create_pod(cluster.sandbox(), 2);
    has_ready(&cluster, 1..=2).await;
    let annotations = endpoints(cluster.sandbox())["metadata"]["annotations"].clone();
    assert_eq!((&annotations["example.com/a"], &annotations["example.com/c"]), (&json!("b"), &json!("d")));
    assert_eq!(warnings(cluster.sandbox()), []);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_recorded_and_tried_again() {
    for (verb, reason, message) in [
        (Verb::Create, "FailedToCreateEndpoint", "Failed to create endpoint for service shop/web: a policy refuses it"),
        (Verb::Update, "FailedToUpdateEndpoint", "Failed to update endpoint shop/web: a policy refuses it"),
    ] {
        let cluster = start(environment().allow_error("a policy refuses it")).await;
        let refused = Status::new(422, "Invalid", "a policy refuses it");
        cluster.sandbox().faults().inject(Fault::on(verb).resource(ENDPOINTS).times(2).fail(refused));
        create_service(cluster.sandbox(), &json!({}));
        has_ready(&cluster, []).await;
        create_pod(cluster.sandbox(), 1);
        has_ready(&cluster, [1]).await;
        let expected = (reason.to_owned(), message.to_owned());
        cluster.eventually(reason, |sandbox| warnings(sandbox).contains(&expected)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[SERVICES, PODS, ENDPOINTS]).await;
        create_service(cluster.sandbox(), &json!({}));
        has_ready(cluster, []).await;
        create_pod(cluster.sandbox(), 1);
        has_ready(cluster, [1]).await;
        cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
        has_ready(cluster, []).await;
        cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
        cluster.eventually("they are deleted", |sandbox| ready(sandbox).is_none()).await;
        cluster.advance(60 * SECOND).await;
        assert_eq!(ready(cluster.sandbox()), None);
    })
    .await;
    assert!(writes >= 4, "{writes}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_while_no_manager_runs_leaves_no_endpoints() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    has_ready(&cluster, []).await;
    cluster.kill();
    cluster.sandbox().delete(&SERVICES, &key("web")).unwrap();
    cluster.eventually("they are deleted", |sandbox| ready(sandbox).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_successor_at_rest_writes_nothing() {
    let cluster = start(environment()).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=3 {
        create_pod(cluster.sandbox(), number);
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
    cluster.watches(&[SERVICES, PODS, ENDPOINTS]).await;
    create_service(cluster.sandbox(), &json!({}));
    for number in 1..=4 {
        create_pod(cluster.sandbox(), number);
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
                ready(sandbox).as_ref() == Some(&left)
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
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(ENDPOINTS).fail(terminating));
    create_service(cluster.sandbox(), &json!({}));
    cluster.advance(20 * 60 * SECOND).await;
    assert_eq!(writes(&cluster).len(), 1, "it is not tried again");
    assert!(warnings(cluster.sandbox()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_decoded_holds_its_service() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    make_undecodable(cluster.sandbox(), 1);
    create_pod(cluster.sandbox(), 2);
    cluster
        .consistently("the endpoints stay as they are", 60 * SECOND, |sandbox| ready(sandbox) == Some(vec![1]))
        .await;
    let explained = cluster.handle().explain("endpoints-controller", &key("web")).expect("there is such a controller");
    let words = "leaves its endpoints as they are, as pod web-0001 cannot be decoded";
    assert!(format!("{explained:?}").contains(words), "{explained:?}");
    make_decodable(cluster.sandbox(), 1);
    has_ready(&cluster, 1..=2).await;

    make_undecodable(cluster.sandbox(), 1);
    cluster.advance(10 * SECOND).await;
    assert_eq!(ready(cluster.sandbox()), Some(vec![1, 2]));
    cluster.sandbox().delete_now(&PODS, &key(&pod_name(1))).unwrap();
    let deleted_at = Instant::now();
    has_ready(&cluster, [2]).await;
    assert!(deleted_at.elapsed() <= SECOND, "{:?}", deleted_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_cannot_be_decoded_are_not_created_again() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    cluster.settle().await;
    let written = writes(&cluster);
    let labels = json!({ "metadata": { "labels": { "a": 5 } } });
    DirectClient::new(cluster.sandbox()).merge(&ENDPOINTS, &key("web"), None, &labels).unwrap();
    create_pod(cluster.sandbox(), 2);
    cluster.advance(3600 * SECOND).await;
    assert_eq!((writes(&cluster), warnings(cluster.sandbox())), (written, Vec::new()));
    cluster.sandbox().delete_now(&ENDPOINTS, &key("web")).unwrap();
    has_ready(&cluster, 1..=2).await;
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_cannot_be_decoded_are_deleted_after_their_service_when_they_can_be() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    create_service(cluster.sandbox(), &json!({}));
    create_pod(cluster.sandbox(), 1);
    has_ready(&cluster, [1]).await;
    let label = |value: Value| json!({ "metadata": { "labels": { "a": value } } });
    DirectClient::new(cluster.sandbox()).merge(&ENDPOINTS, &key("web"), None, &label(json!(5))).unwrap();
    cluster.settle().await;
    cluster.sandbox().delete_now(&SERVICES, &key("web")).unwrap();
    let count = |sandbox: &Sandbox| sandbox.list(&ENDPOINTS, Some(NAMESPACE)).len();
    cluster.consistently("they stay", 300 * SECOND, |sandbox| count(sandbox) == 1).await;
    DirectClient::new(cluster.sandbox()).merge(&ENDPOINTS, &key("web"), None, &label(Value::Null)).unwrap();
    cluster.eventually("they are deleted", |sandbox| count(sandbox) == 0).await;
}
