//! The life of a terminating namespace.

use std::time::Duration;

use kcm_testing::sandbox::{CONFIG_MAPS, Fault, NAMESPACES, PODS, Status, Verb};
use serde_json::{Value, json};

use super::{WIDGETS, condition, create, delete, environment, gone, key, shop, start, writes};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_after_five_seconds_and_removed() {
    let cluster = start(environment()).await;
    delete(&cluster);
    cluster.consistently("nothing is deleted", 4 * SECOND, |sandbox| sandbox.get(&PODS, &key("pod")).is_some()).await;
    assert_eq!(writes(&cluster), [""; 0]);
    gone(&cluster).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:08Z".parse().unwrap(), "{}", cluster.sandbox().now());
    let mut writes = writes(&cluster);
    let last = writes.split_off(writes.len() - 2);
    assert_eq!(last, ["PUT /api/v1/namespaces/shop/status", "PUT /api/v1/namespaces/shop/finalize"]);
    assert_eq!(writes.remove(0), "DELETE /api/v1/namespaces/shop/pods", "pods are the first");
    writes.sort();
    assert_eq!(
        writes,
        ["DELETE /api/v1/namespaces/shop/configmaps", "DELETE /apis/example.com/v1/namespaces/shop/widgets"],
        "only resources with objects are deleted"
    );
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_deleted_is_left_alone() {
    let cluster = start(environment()).await;
    cluster.advance(600 * SECOND).await;
    assert!(cluster.requests_of("namespace-controller").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_deleted_before_the_start_is_removed() {
    let cluster = environment().prepare(|sandbox| {
        sandbox.delete(&NAMESPACES, &shop()).expect("the namespace is there");
    });
    gone(&start(cluster).await).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_deleted_while_a_pod_remains() {
    let cluster =
        start(environment().prepare(|sandbox| create(sandbox, &PODS, "shop", "held", &["example.com/hold"]))).await;
    delete(&cluster);
    cluster.advance(120 * SECOND).await;
    assert!(cluster.sandbox().get(&PODS, &key("pod")).is_none());
    assert!(cluster.sandbox().get(&CONFIG_MAPS, &key("map")).is_some());
    assert_eq!(
        condition(cluster.sandbox(), "NamespaceContentRemaining"),
        "True SomeResourcesRemain: Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        condition(cluster.sandbox(), "NamespaceFinalizersRemaining"),
        "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 \
         resource instances"
    );
    assert!(condition(cluster.sandbox(), "NamespaceDeletionContentFailure").starts_with("False ContentDeleted: "));
    let deletions = writes(&cluster).into_iter().filter(|write| write.starts_with("DELETE")).count();
    assert_eq!(deletions, 1, "a terminating pod is not deleted again");

    let release = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&PODS, &key("held"), &release).unwrap();
    gone(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_awaited_for_half_their_grace_period() {
    let cluster = start(environment()).await;
    cluster.sandbox().bind_pod(&key("pod"), "node").unwrap();
    delete(&cluster);
    cluster
        .eventually("the pod is terminating", |sandbox| {
            sandbox.get(&PODS, &key("pod")).is_some_and(|pod| pod["metadata"].get("deletionTimestamp").is_some())
        })
        .await;
    cluster.settle().await;
    cluster.sandbox().delete_now(&PODS, &key("pod")).unwrap();
    // The update of the conditions enqueues the namespace after 5 s, before half of 30 s and one.
    cluster.consistently("it waits", 4 * SECOND, |sandbox| sandbox.get(&CONFIG_MAPS, &key("map")).is_some()).await;
    gone(&cluster).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:20Z".parse().unwrap(), "{}", cluster.sandbox().now());
}

#[tokio::test(start_paused = true)]
async fn a_pod_in_its_grace_period_is_not_deleted_again() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    sandbox.bind_pod(&key("pod"), "node").unwrap();
    sandbox.delete(&PODS, &key("pod")).unwrap();
    delete(&cluster);
    cluster.advance(60 * SECOND).await;
    assert!(sandbox.get(&PODS, &key("pod")).is_some(), "its node is dead");
    let deletions = writes(&cluster).into_iter().filter(|write| write.ends_with("/pods")).count();
    assert_eq!(deletions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_deletion_of_collections_is_deleted_one_by_one() {
    let cluster = start(environment()).await;
    let refused =
        Status::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    cluster.sandbox().faults().inject(Fault::on(Verb::DeleteCollection).resource(WIDGETS).fail(refused));
    let widget = cluster.sandbox().get(&WIDGETS, &key("widget")).unwrap();
    delete(&cluster);
    gone(&cluster).await;
    let requests = cluster.requests_of("namespace-controller");
    let deletion =
        requests.iter().find(|request| request.method == "DELETE" && request.path.contains("widgets/widget"));
    let body: Value = serde_json::from_str(&deletion.expect("it is deleted by name").body).unwrap();
    assert_eq!(body["preconditions"], json!({ "uid": widget["metadata"]["uid"] }));
    assert_eq!(body["propagationPolicy"], "Background");
}

#[tokio::test(start_paused = true)]
async fn other_finalizers_of_the_namespace_stay() {
    let cluster = start(environment()).await;
    let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    cluster.sandbox().patch(&NAMESPACES, &shop(), &held).unwrap();
    delete(&cluster);
    cluster
        .eventually("it is finalized", |sandbox| {
            sandbox.get(&NAMESPACES, &shop()).is_some_and(|shop| shop["spec"].get("finalizers").is_none())
        })
        .await;
    cluster.settle().await;
    let before = writes(&cluster);
    cluster.advance(600 * SECOND).await;
    assert_eq!(writes(&cluster), before, "nothing is written to a namespace that is finalized");
    let shop = cluster.sandbox().get(&NAMESPACES, &shop()).expect("the finalizer of its metadata holds it");
    assert_eq!(shop["metadata"]["finalizers"], json!(["example.com/hold"]));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_appears_while_the_manager_runs_is_deleted_too() {
    let cluster = start(environment()).await;
    let late = kcm_framework::api::Resource::namespaced("late.example.com", "v1", "lates", "Late");
    cluster.sandbox().register(late.clone());
    create(cluster.sandbox(), &late, "shop", "late", &[]);
    delete(&cluster);
    gone(&cluster).await;
    assert!(cluster.sandbox().list(&late, Some("shop")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_removed_in_mid_deletion_holds_up_nothing() {
    let cluster =
        start(environment().prepare(|sandbox| create(sandbox, &WIDGETS, "shop", "held", &["example.com/hold"]))).await;
    delete(&cluster);
    cluster
        .eventually("the widget is in the way", |sandbox| {
            condition(sandbox, "NamespaceContentRemaining").contains("widgets.example.com has 1 resource instances")
        })
        .await;
    cluster.sandbox().unregister(&WIDGETS);
    cluster.eventually("the namespace is gone", |sandbox| sandbox.get(&NAMESPACES, &shop()).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn the_explanation_of_a_namespace_names_the_kind_and_the_finalizers_in_the_way() {
    let cluster =
        start(environment().prepare(|sandbox| create(sandbox, &WIDGETS, "shop", "held", &["example.com/hold"]))).await;
    delete(&cluster);
    cluster
        .eventually("the widget is in the way", |sandbox| {
            condition(sandbox, "NamespaceContentRemaining").contains("widgets.example.com has 1 resource instances")
        })
        .await;
    cluster.settle().await;
    let explained = cluster.handle().explain("namespace-controller", &shop()).expect("there is such a controller");
    let words = &explained[0].reconciles[0].decisions;
    let expected =
        "looks again in 8 s, as these remain: 1 widgets.example.com (finalizers: example.com/hold on 1)".to_owned();
    assert_eq!(*words, [expected]);
}
