//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{Fault, PODS, Status, Verb};
use serde_json::json;

use super::{
    SERVICES, SLICES, create_pod, create_service, environment, events, has_ready, key, pod_name, ready, slices, start,
    writes,
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
    let message =
        "Error updating Endpoint Slices for Service shop/web: failed to create EndpointSlice: a policy refuses it";
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
