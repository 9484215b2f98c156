//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, PODS, Status, Verb};
use serde_json::json;

use super::{
    ENDPOINTS, SERVICES, create_endpoints, create_pod, create_service, endpoints, environment, has_ready, key,
    pod_name, ready, start, warnings, writes,
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
        let cluster = start(environment().allow_error("cannot write the endpoints")).await;
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
