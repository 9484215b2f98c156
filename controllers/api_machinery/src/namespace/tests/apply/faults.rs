//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, NAMESPACES, PODS, Status, Verb};
use serde_json::json;

use super::{WIDGETS, condition, create, delete, environment, gone, key, shop, start, writes};

const SECOND: Duration = Duration::from_secs(1);

fn unavailable() -> Status {
    Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_server_is_down_for_minutes_is_named_and_holds_up_no_other() {
    let cluster = start(environment()).await;
    let down = cluster.sandbox().faults().inject(Fault::on_any().resource(WIDGETS).fail(unavailable()));
    delete(&cluster);
    cluster.advance(300 * SECOND).await;
    assert!(cluster.sandbox().list(&CONFIG_MAPS, Some("shop")).is_empty());
    assert_eq!(
        condition(cluster.sandbox(), "NamespaceDeletionContentFailure"),
        "True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: cannot list widgets.example.com in \
         namespace \"shop\": the server is currently unable to handle the request"
    );
    let requests = cluster.requests_of("namespace-controller").len();
    down.remove();
    cluster.advance(61 * SECOND).await;
    assert!(cluster.sandbox().get(&NAMESPACES, &shop()).is_none(), "it is tried again within a minute");
    assert!(requests < 3_000, "{requests} requests in five minutes");
}

#[tokio::test(start_paused = true)]
async fn other_resources_wait_while_pods_cannot_be_listed() {
    let cluster = start(environment()).await;
    let down = cluster.sandbox().faults().inject(Fault::on(Verb::List).resource(PODS).fail(unavailable()));
    delete(&cluster);
    cluster.advance(120 * SECOND).await;
    assert!(cluster.sandbox().get(&CONFIG_MAPS, &key("map")).is_some());
    let message = condition(cluster.sandbox(), "NamespaceDeletionContentFailure");
    let expected = "True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: cannot list pods";
    assert!(message.starts_with(expected), "{message}");
    down.remove();
    gone(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_nothing_holds_up_and_that_stay_are_reported() {
    let cluster = start(environment()).await;
    // The deletion is answered as if it had succeeded.
    let kept = cluster
        .sandbox()
        .faults()
        .inject(Fault::on(Verb::DeleteCollection).resource(WIDGETS).fail(Status::not_found(&WIDGETS, "")));
    delete(&cluster);
    let message = "unexpected items still remain in namespace: shop for gvr: example.com/v1, Resource=widgets";
    cluster
        .eventually("it is reported", |sandbox| {
            condition(sandbox, "NamespaceDeletionContentFailure").ends_with(message)
        })
        .await;
    kept.remove();
    gone(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_others_change_is_finalized_in_its_latest_state() {
    let cluster = start(environment()).await;
    let conflict = Status::conflict(&NAMESPACES, "shop", "the object has been modified");
    for subresource in ["status", "finalize"] {
        let fault = Fault::on(Verb::Update).resource(NAMESPACES).subresource(subresource).times(2);
        cluster.sandbox().faults().inject(fault.fail(conflict.clone()));
    }
    delete(&cluster);
    gone(&cluster).await;
    assert_eq!(writes(&cluster).iter().filter(|write| write.ends_with("/finalize")).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_does_not_keep_the_namespace() {
    let cluster = start(environment()).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(NAMESPACES).subresource("status").fail(refused));
    delete(&cluster);
    gone(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_deletion_and_no_more() {
    let cluster = start(environment()).await;
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(30);
    cluster.sandbox().faults().inject(busy.fail(Status::too_many_requests(1)));
    delete(&cluster);
    gone(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn lost_responses_change_nothing() {
    for number in 0..6 {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        delete(&cluster);
        gone(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_watch_changes_nothing() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().delay_events(&NAMESPACES, 30 * SECOND);
    delete(&cluster);
    gone(&cluster).await;
    cluster.advance(120 * SECOND).await;
    assert_eq!(writes(&cluster).iter().filter(|write| write.ends_with("/finalize")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_recreated_while_the_watch_is_late_is_left_alone() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().delay_events(&NAMESPACES, 30 * SECOND);
    delete(&cluster);
    gone(&cluster).await;
    cluster.sandbox().create_namespace("shop").unwrap();
    create(cluster.sandbox(), &CONFIG_MAPS, "shop", "new", &[]);
    cluster.advance(120 * SECOND).await;
    assert!(cluster.sandbox().get(&CONFIG_MAPS, &key("new")).is_some());
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment().prepare(|sandbox| create(sandbox, &WIDGETS, "shop", "held", &["example.com/hold"])),
        async |cluster| {
            cluster.watches(&[NAMESPACES]).await;
            delete(cluster);
            cluster
                .eventually("only the held widget is left", |sandbox| {
                    sandbox.list(&CONFIG_MAPS, Some("shop")).is_empty()
                        && condition(sandbox, "NamespaceFinalizersRemaining").starts_with("True")
                })
                .await;
            let release = json!({ "metadata": { "finalizers": null } });
            cluster.sandbox().patch(&WIDGETS, &key("held"), &release).unwrap();
            gone(cluster).await;
            // A later start has nothing to do.
            cluster.settle().await;
        },
    )
    .await;
    assert!(writes >= 6, "{writes} writes");
}
