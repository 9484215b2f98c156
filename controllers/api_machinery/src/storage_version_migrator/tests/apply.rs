//! Migrations on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{CONFIG_MAPS, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::{Value, json};

use crate::storage_version_migrator::DESCRIPTOR;
use crate::storage_version_migrator::definition::Definition;
use crate::storage_version_migrator::view::Migration;

pub(super) const MIGRATIONS: Resource = Migration::RESOURCE;
const DEFINITIONS: Resource = Definition::RESOURCE;
const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");
pub(super) const ACCOUNT: &str = "storage-version-migrator-controller";

pub(super) fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

/// With three config maps in `shop`. Other namespaces have none.
pub(super) fn with_config_maps() -> TestEnvironment {
    environment().prepare(|sandbox| {
        for name in ["a", "b", "c"] {
            create_config_map(sandbox, name);
        }
    })
}

pub(super) fn create_config_map(sandbox: &Sandbox, name: &str) -> Value {
    let object = json!({ "metadata": { "namespace": "shop", "name": name }, "data": { "key": name } });
    sandbox.create(&CONFIG_MAPS, object).expect("the config map must be valid")
}

fn definition(storage: &str) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |name: &str| json!({ "name": name, "served": true, "storage": name == storage, "schema": schema });
    json!({
        "metadata": { "name": "websites.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "websites", "kind": "Website" },
            "versions": [version("v1"), version("v2")],
        },
    })
}

/// With two websites that were stored as `v1` before the storage version became `v2`.
fn with_websites() -> TestEnvironment {
    environment().prepare(|sandbox| {
        sandbox.create(&DEFINITIONS, definition("v1")).expect("the definition must be valid");
        for name in ["x", "y"] {
            let website = json!({
                "apiVersion": "example.com/v1", "kind": "Website",
                "metadata": { "namespace": "shop", "name": name }, "spec": { "host": name },
            });
            sandbox.create(&WEBSITES, website).expect("the website must be valid");
        }
        let versions = definition("v2")["spec"]["versions"].clone();
        sandbox.patch(&DEFINITIONS, &definition_key(), &json!({ "spec": { "versions": versions } })).unwrap();
    })
}

fn definition_key() -> ObjectKey {
    ObjectKey::cluster_scoped("websites.example.com")
}

pub(super) fn create(sandbox: &Sandbox, name: &str, group: &str, resource: &str) {
    let spec = json!({ "resource": { "group": group, "resource": resource } });
    let migration = json!({ "metadata": { "name": name }, "spec": spec });
    sandbox.create(&MIGRATIONS, migration).expect("the migration must be valid");
}

pub(super) fn status(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&MIGRATIONS, &ObjectKey::cluster_scoped(name.to_owned())).unwrap_or_default()["status"].clone()
}

/// Returns a condition as `STATUS REASON MESSAGE`.
pub(super) fn condition(sandbox: &Sandbox, name: &str, type_: &str) -> String {
    let status = status(sandbox, name);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    format!("{} {} {}", text("status"), text("reason"), text("message")).trim().to_owned()
}

pub(super) async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[MIGRATIONS]).await;
    cluster
}

pub(super) async fn is_done(cluster: &TestCluster, name: &str) {
    let is_cleaned_up = |sandbox: &Sandbox| {
        condition(sandbox, name, "Succeeded").starts_with("True")
            && condition(sandbox, name, "Running") == "False MigrationCompleted Migration completed"
    };
    cluster.eventually("the migration is done", is_cleaned_up).await;
}

pub(super) async fn has_failed(cluster: &TestCluster, name: &str) -> String {
    let is_cleaned_up = |sandbox: &Sandbox| {
        condition(sandbox, name, "Failed").starts_with("True")
            && !condition(sandbox, name, "Running").starts_with("True")
    };
    cluster.eventually("the migration has failed", is_cleaned_up).await;
    condition(cluster.sandbox(), name, "Failed")
}

/// Returns method, path and query of each request, without lists of migrations and without `timeout`.
pub(super) fn lines(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.requests_of(ACCOUNT);
    let line = |method: &str, path: &str, query: &str| {
        let query: Vec<&str> =
            query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("timeout=")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{method} {path}{mark}{}", query.join("&"))
    };
    requests.iter().map(|request| line(&request.method, &request.path, &request.query)).collect()
}

const CONFIG_MAP: &str = "PATCH /api/v1/namespaces/shop/configmaps/";
const STATUS: &str = "PUT /apis/storagemigration.k8s.io/v1/storageversionmigrations/";

#[tokio::test(start_paused = true)]
async fn m18_each_object_is_patched_once_with_its_version_and_nothing_else() {
    let cluster = start(with_config_maps()).await;
    let before = cluster.sandbox().list(&CONFIG_MAPS, Some("shop"));
    create(cluster.sandbox(), "m", "", "configmaps");
    is_done(&cluster, "m").await;
    cluster.settle().await;
    let manager = "?fieldManager=storage-version-migrator-controller";
    let expected = [
        format!("{STATUS}m/status"),
        "GET /api/v1/namespaces/%40fake:svm_ns%21/configmaps?limit=1".to_owned(),
        format!("{STATUS}m/status"),
        "GET /api/v1/configmaps?limit=500".to_owned(),
        format!("{CONFIG_MAP}a{manager}"),
        format!("{CONFIG_MAP}b{manager}"),
        format!("{CONFIG_MAP}c{manager}"),
        format!("{STATUS}m/status"),
        format!("{STATUS}m/status"),
    ];
    assert_eq!(lines(&cluster), expected);
    let patches: Vec<_> =
        cluster.requests_of(ACCOUNT).into_iter().filter(|request| request.method == "PATCH").collect();
    for (request, object) in patches.iter().zip(&before) {
        assert_eq!(request.query, "fieldManager=storage-version-migrator-controller", "there is no other parameter");
        assert_eq!(request.headers["content-type"], "application/merge-patch+json");
        let version = &object["metadata"]["resourceVersion"];
        let body = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "resourceVersion": version } });
        assert_eq!(serde_json::from_str::<Value>(&request.body).unwrap(), body);
    }
    for body in cluster.bodies_of(ACCOUNT, "PUT") {
        assert!(body["metadata"]["resourceVersion"].is_string(), "the update has a precondition");
    }
    assert_eq!(cluster.sandbox().list(&CONFIG_MAPS, Some("shop")), before, "nothing has changed");
    let ended = "True StorageVersionMigrationSucceeded Migration completed";
    assert_eq!(condition(cluster.sandbox(), "m", "Succeeded"), ended);
    cluster.advance(Duration::from_mins(30)).await;
    assert_eq!(lines(&cluster).len(), 9, "at rest nothing is asked or written");
}

#[tokio::test(start_paused = true)]
async fn m7_the_stored_versions_of_a_definition_are_cut_after_success() {
    let cluster = start(with_websites()).await;
    let of_definition = |sandbox: &Sandbox| {
        let definition = sandbox.get(&DEFINITIONS, &definition_key()).unwrap();
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let migrating = conditions.into_iter().find(|condition| condition["type"] == "StorageMigrating");
        (definition["status"]["storedVersions"].clone(), migrating.unwrap_or_default())
    };
    assert_eq!(of_definition(cluster.sandbox()).0, json!(["v1", "v2"]));
    create(cluster.sandbox(), "m", "example.com", "websites");
    is_done(&cluster, "m").await;
    let (stored, migrating) = of_definition(cluster.sandbox());
    assert_eq!(stored, json!(["v2"]));
    assert_eq!((&migrating["status"], &migrating["reason"]), (&json!("False"), &json!("MigrationSucceeded")));
    let message = "The migration has succeeded and the stored versions have been updated";
    assert_eq!(migrating["message"], message);
    let applied = "PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/websites.example.com/status\
                   ?fieldManager=migration-runner-controller&force=true";
    let lines = lines(&cluster);
    assert_eq!(lines.iter().filter(|line| *line == applied).count(), 2, "{lines:?}");
    let patched = |line: &&String| line.starts_with("PATCH /apis/example.com/");
    assert_eq!(lines.iter().filter(patched).count(), 2);
    // T11: a second migration keeps the list while it runs.
    create(cluster.sandbox(), "n", "example.com", "websites");
    is_done(&cluster, "n").await;
    assert_eq!(of_definition(cluster.sandbox()).0, json!(["v2"]));
}

#[tokio::test(start_paused = true)]
async fn d8_after_a_failure_the_definition_keeps_its_stored_versions() {
    let cluster = start(with_websites()).await;
    cluster.sandbox().admit(|attempt| {
        let is_website = attempt.resource.plural == "websites" && attempt.key.name() == "y";
        if is_website { Err(kcm_testing::sandbox::Status::new(422, "Invalid", "not y")) } else { Ok(()) }
    });
    create(cluster.sandbox(), "m", "example.com", "websites");
    let message = "1/2 not yet migrated. migration encountered unhandled error: not y";
    assert_eq!(has_failed(&cluster, "m").await, format!("True StorageVersionMigrationFailed {message}"));
    let definition = cluster.sandbox().get(&DEFINITIONS, &definition_key()).unwrap();
    assert_eq!(definition["status"]["storedVersions"], json!(["v1", "v2"]));
    let patches = lines(&cluster).iter().filter(|line| line.starts_with("PATCH /apis/example.com/")).count();
    assert_eq!(patches, 2, "a fatal error is not tried again");
}

#[tokio::test(start_paused = true)]
async fn m3_migrations_of_a_resource_run_one_after_the_other_and_of_others_beside_them() {
    let cluster = start(with_config_maps()).await;
    cluster.sandbox().faults().inject(
        kcm_testing::sandbox::Fault::on(kcm_testing::sandbox::Verb::Patch)
            .resource(CONFIG_MAPS)
            .times(1)
            .delay(Duration::from_secs(10)),
    );
    create(cluster.sandbox(), "first", "", "configmaps");
    create(cluster.sandbox(), "second", "", "configmaps");
    create(cluster.sandbox(), "other", "", "namespaces");
    is_done(&cluster, "other").await;
    let runs = |name| condition(cluster.sandbox(), name, "Running");
    assert_eq!(
        (runs("first").as_str(), runs("second").as_str()),
        ("True MigrationRunning The migration is running", "")
    );
    is_done(&cluster, "first").await;
    is_done(&cluster, "second").await;
}

#[tokio::test(start_paused = true)]
async fn m17_objects_that_are_newer_than_the_checkpoint_are_not_patched() {
    let cluster = start(environment()).await;
    let first = create_config_map(cluster.sandbox(), "a");
    create_config_map(cluster.sandbox(), "b");
    create(cluster.sandbox(), "m", "", "configmaps");
    // T23: a checkpoint that somebody sets counts.
    let checkpoint = json!({ "status": { "resourceVersion": first["metadata"]["resourceVersion"] } });
    cluster.sandbox().patch_status(&MIGRATIONS, &ObjectKey::cluster_scoped("m"), &checkpoint).unwrap();
    is_done(&cluster, "m").await;
    let patches: Vec<_> = lines(&cluster).into_iter().filter(|line| line.starts_with("PATCH")).collect();
    assert_eq!(patches, [format!("{CONFIG_MAP}a?fieldManager=storage-version-migrator-controller")]);
}

#[tokio::test(start_paused = true)]
async fn m17_a_checkpoint_that_is_no_version_fails_the_migration() {
    let cluster = start(with_config_maps()).await;
    create(cluster.sandbox(), "m", "", "configmaps");
    let checkpoint = json!({ "status": { "resourceVersion": "abc" } });
    cluster.sandbox().patch_status(&MIGRATIONS, &ObjectKey::cluster_scoped("m"), &checkpoint).unwrap();
    let message = "migration encountered unhandled error: resource version is not well formed: abc";
    assert_eq!(has_failed(&cluster, "m").await, format!("True StorageVersionMigrationFailed {message}"));
}

#[tokio::test(start_paused = true)]
async fn m10_a_resource_that_is_not_served_fails_the_migration_after_a_minute() {
    let cluster = start(environment().allow_error("Reconcile failed")).await;
    create(cluster.sandbox(), "m", "example.com", "nothing");
    cluster.advance(Duration::from_secs(55)).await;
    assert_eq!(condition(cluster.sandbox(), "m", "Failed"), "");
    let message = has_failed(&cluster, "m").await;
    assert_eq!(message, "True StorageVersionMigrationFailed resource does not exist in discovery");
}

#[tokio::test(start_paused = true)]
async fn m10_a_resource_that_appears_within_a_minute_is_migrated() {
    let cluster = start(environment().allow_error("Reconcile failed")).await;
    create(cluster.sandbox(), "m", "example.com", "websites");
    cluster.advance(Duration::from_secs(20)).await;
    cluster.sandbox().create(&DEFINITIONS, definition("v1")).unwrap();
    is_done(&cluster, "m").await;
}

#[tokio::test(start_paused = true)]
async fn m11_a_resource_without_the_verbs_fails_the_migration() {
    let cluster = start(environment().prepare(Sandbox::serve_usage)).await;
    create(cluster.sandbox(), "m", "metrics.k8s.io", "pods");
    let message = "resource \"metrics.k8s.io/v1beta1, Resource=pods\" does not support discovery operations: \
                   [update patch list]";
    assert_eq!(has_failed(&cluster, "m").await, format!("True StorageVersionMigrationFailed {message}"));
}

#[tokio::test(start_paused = true)]
async fn t12_only_lists_patches_reads_of_definitions_and_updates_of_the_status_are_sent() {
    let cluster = start(with_websites()).await;
    create(cluster.sandbox(), "m", "example.com", "websites");
    is_done(&cluster, "m").await;
    for line in lines(&cluster) {
        let fits = line.starts_with(STATUS) && line.ends_with("/status")
            || line.starts_with("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/")
            || line.starts_with("GET /apis/example.com/") && line.contains("?limit=")
            || line.starts_with("PATCH ");
        assert!(fits, "{line}");
    }
    assert!(cluster.events_of(ACCOUNT).is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_its_gates_nothing_is_done() {
    for gate in ["StorageVersionMigrator", "InformerResourceVersion"] {
        let cluster = with_config_maps().arguments(&[&format!("--feature-gates={gate}=false")]).start().await;
        create(cluster.sandbox(), "m", "", "configmaps");
        cluster.advance(Duration::from_mins(1)).await;
        assert!(lines(&cluster).is_empty());
    }
}
