//! The life of a quota.

use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, RESOURCE_QUOTAS, Sandbox};
use serde_json::json;
use tokio::time::Instant;

use super::{CLAIMS, SERVICES, WIDGETS, create, environment, key, limit, start, used, uses, writes};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_new_quota_is_computed_at_once() {
    let cluster = start(environment()).await;
    let hard = json!({
        "configmaps": "10", "count/pods": "5", "count/widgets.example.com": "3", "pods": "4", "requests.cpu": "2",
        "services": "1",
    });
    limit(cluster.sandbox(), &hard);
    uses(
        &cluster,
        &json!({
            "configmaps": "2", "count/pods": "2", "count/widgets.example.com": "1", "pods": "2", "requests.cpu": "1",
            "services": "0",
        }),
    )
    .await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:02Z".parse().unwrap(), "{}", cluster.sandbox().now());
    let quota = cluster.sandbox().get(&RESOURCE_QUOTAS, &key("quota")).unwrap();
    assert_eq!((&quota["status"]["hard"], &quota["spec"]["hard"]), (&hard, &hard));
    cluster.settle().await;
    assert_eq!(writes(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_replenishes_and_so_does_a_pod_that_ends() {
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "configmaps": "10", "count/pods": "5", "pods": "4", "requests.cpu": "2" }));
    uses(&cluster, &json!({ "configmaps": "2", "count/pods": "2", "pods": "2", "requests.cpu": "1" })).await;
    cluster.sandbox().set_pod_phase(&key("a"), "Succeeded").unwrap();
    uses(&cluster, &json!({ "configmaps": "2", "count/pods": "2", "pods": "1", "requests.cpu": "500m" })).await;
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    uses(&cluster, &json!({ "configmaps": "2", "count/pods": "1", "pods": "1", "requests.cpu": "500m" })).await;
    cluster.sandbox().delete(&CONFIG_MAPS, &key("a")).unwrap();
    uses(&cluster, &json!({ "configmaps": "1", "count/pods": "1", "pods": "1", "requests.cpu": "500m" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:01:00Z".parse().unwrap(), "by no resync");
}

#[tokio::test(start_paused = true)]
async fn a_service_of_another_type_replenishes_and_so_does_a_smaller_claim() {
    let cluster = start(environment().prepare(|sandbox| {
        let service = json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30080 }] });
        let metadata = json!({ "namespace": "shop", "name": "web" });
        sandbox.create(&SERVICES, json!({ "metadata": metadata, "spec": service })).unwrap();
        let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "2Gi" } } });
        sandbox.create(&CLAIMS, json!({ "metadata": metadata, "spec": claim })).unwrap();
    }))
    .await;
    limit(cluster.sandbox(), &json!({ "requests.storage": "10Gi", "services.nodeports": "4" }));
    uses(&cluster, &json!({ "requests.storage": "2Gi", "services.nodeports": "1" })).await;
    let spec = json!({ "spec": { "type": "ClusterIP", "ports": [{ "port": 80 }] } });
    cluster.sandbox().patch(&SERVICES, &key("web"), &spec).unwrap();
    uses(&cluster, &json!({ "requests.storage": "2Gi", "services.nodeports": "0" })).await;
    let expanded = json!({ "status": { "allocatedResources": { "storage": "3Gi" } } });
    cluster.sandbox().patch_status(&CLAIMS, &key("web"), &expanded).unwrap();
    uses(&cluster, &json!({ "requests.storage": "3Gi", "services.nodeports": "0" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:01:00Z".parse().unwrap(), "by no resync");
}

#[tokio::test(start_paused = true)]
async fn other_limits_are_computed_at_once() {
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
    let limits = json!({ "spec": { "hard": { "pods": null, "configmaps": "3" } } });
    cluster.sandbox().patch(&RESOURCE_QUOTAS, &key("quota"), &limits).unwrap();
    uses(&cluster, &json!({ "configmaps": "2" })).await;
    cluster.settle().await;
    assert_eq!(writes(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn a_usage_that_is_wrong_is_corrected_by_the_resync() {
    for (arguments, is_corrected) in [(&[][..], true), (&["--resource-quota-sync-period=0s"], false)] {
        let cluster = start(environment().arguments(arguments)).await;
        limit(cluster.sandbox(), &json!({ "pods": "4" }));
        uses(&cluster, &json!({ "pods": "2" })).await;
        cluster.settle().await;
        let wrong = json!({ "status": { "used": { "pods": "3" } } });
        cluster.sandbox().patch_status(&RESOURCE_QUOTAS, &key("quota"), &wrong).unwrap();
        cluster
            .consistently("no event corrects it", 200 * SECOND, |sandbox| used(sandbox) == json!({ "pods": "3" }))
            .await;
        cluster.advance(410 * SECOND).await;
        assert_eq!(used(cluster.sandbox()) == json!({ "pods": "2" }), is_corrected);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_at_rest_nor_by_a_restart() {
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "configmaps": "4", "count/widgets.example.com": "1", "pods": "4" }));
    uses(&cluster, &json!({ "configmaps": "2", "count/widgets.example.com": "1", "pods": "2" })).await;
    cluster.advance(900 * SECOND).await;
    assert_eq!(writes(&cluster), 1);
    cluster.kill();
    cluster.advance(900 * SECOND).await;
    assert_eq!((writes(&cluster), cluster.managers_started()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_later_is_counted_at_once() {
    let late = Resource::namespaced("late.example.com", "v1", "lates", "Late");
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "count/lates.late.example.com": "4", "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
    cluster.sandbox().register(late.clone());
    create(cluster.sandbox(), &late, "a");
    uses(&cluster, &json!({ "count/lates.late.example.com": "1", "pods": "2" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:01:00Z".parse().unwrap(), "within two discoveries");
    cluster.sandbox().delete(&late, &key("a")).unwrap();
    uses(&cluster, &json!({ "count/lates.late.example.com": "0", "pods": "2" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_counted_by_quotas_too() {
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "count/resourcequotas": "4", "resourcequotas": "4" }));
    uses(&cluster, &json!({ "count/resourcequotas": "1", "resourcequotas": "1" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_field_of_another_version_survives() {
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
    let requests = cluster.requests_of("resourcequota-controller");
    let put = requests.iter().find(|request| request.method == "PUT").expect("the status is written");
    let sent: serde_json::Value = serde_json::from_str(&put.body).unwrap();
    let quota = cluster.sandbox().get(&RESOURCE_QUOTAS, &key("quota")).unwrap();
    assert_eq!(sent["metadata"]["uid"], quota["metadata"]["uid"]);
    assert!(sent["metadata"]["resourceVersion"].is_string(), "{sent}");
    assert_eq!(sent["status"], json!({ "hard": { "pods": "4" }, "used": { "pods": "2" } }));
    assert_eq!(sent["spec"], quota["spec"]);
}

#[tokio::test(start_paused = true)]
async fn other_namespaces_do_not_count() {
    let cluster = start(environment().prepare(|sandbox| {
        super::create_in(sandbox, &WIDGETS, "other", "a");
        super::create_in(sandbox, &PODS, "other", "a");
    }))
    .await;
    limit(cluster.sandbox(), &json!({ "count/widgets.example.com": "4", "pods": "4" }));
    uses(&cluster, &json!({ "count/widgets.example.com": "1", "pods": "2" })).await;
    cluster.sandbox().delete(&WIDGETS, &kcm_framework::api::ObjectKey::namespaced("other", "a")).unwrap();
    cluster.settle().await;
    assert_eq!(used(cluster.sandbox()), json!({ "count/widgets.example.com": "1", "pods": "2" }));
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_the_loops_do_not_run_is_counted_when_they_run_again() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    limit(sandbox, &json!({ "pods": "10", "count/configmaps": "10" }));
    uses(&cluster, &json!({ "pods": "2", "count/configmaps": "2" })).await;
    cluster.handle().stop_loops(10 * SECOND).await;
    create(sandbox, &CONFIG_MAPS, "c");
    for resource in [&PODS, &CONFIG_MAPS] {
        sandbox.delete(resource, &key("a")).expect("the object is there");
        sandbox.delete(resource, &key("b")).expect("the object is there");
    }
    cluster.advance(60 * SECOND).await;
    assert_eq!(used(sandbox), json!({ "pods": "2", "count/configmaps": "2" }), "a standby writes nothing");
    cluster.handle().start_loops();
    uses(&cluster, &json!({ "pods": "0", "count/configmaps": "1" })).await;
    sandbox.delete(&CONFIG_MAPS, &key("c")).expect("the object is there");
    uses(&cluster, &json!({ "pods": "0", "count/configmaps": "0" })).await;
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_an_object_that_cannot_be_decoded_frees_its_usage() {
    let make_undecodable = |sandbox: &Sandbox, name: &str| {
        let labels = json!({ "metadata": { "labels": { "a": 5 } } });
        DirectClient::new(sandbox).merge(&CONFIG_MAPS, &key(name), None, &labels).unwrap();
    };
    let never_decoded = environment().allow_error("Object cannot be decoded");
    let cluster = start(never_decoded.prepare(move |sandbox| make_undecodable(sandbox, "a"))).await;
    limit(cluster.sandbox(), &json!({ "count/configmaps": "5" }));
    uses(&cluster, &json!({ "count/configmaps": "2" })).await;
    make_undecodable(cluster.sandbox(), "b");
    cluster.advance(SECOND).await;
    for (name, left) in [("a", "1"), ("b", "0")] {
        cluster.sandbox().delete_now(&CONFIG_MAPS, &key(name)).unwrap();
        let deleted_at = Instant::now();
        uses(&cluster, &json!({ "count/configmaps": left })).await;
        assert!(deleted_at.elapsed() <= SECOND, "{name}: {:?}", deleted_at.elapsed());
    }
    create(cluster.sandbox(), &CONFIG_MAPS, "c");
    cluster.sandbox().delete_now(&CONFIG_MAPS, &key("c")).unwrap();
    create(cluster.sandbox(), &CONFIG_MAPS, "d");
    create(cluster.sandbox(), &CONFIG_MAPS, "e");
    cluster.sandbox().delete_now(&CONFIG_MAPS, &key("e")).unwrap();
    uses(&cluster, &json!({ "count/configmaps": "1" })).await;
}
