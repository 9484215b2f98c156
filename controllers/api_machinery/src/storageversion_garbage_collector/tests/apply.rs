//! Storage versions on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource, views};
use kcm_testing::sandbox::{Fault, Sandbox, SandboxOptions, Status, Verb};
use kcm_testing::{START, TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use super::storage_version;
use crate::storageversion_garbage_collector::DESCRIPTOR;
use crate::storageversion_garbage_collector::view::StorageVersion;

const STORAGE_VERSIONS: Resource = StorageVersion::RESOURCE;
const LEASES: Resource = views::Lease::RESOURCE;
const ACCOUNT: &str = "storage-version-garbage-collector";

fn environment() -> TestEnvironment {
    let options = SandboxOptions { start: START, seed: 1, beta_apis: true, ..SandboxOptions::default() };
    TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).arguments(&["--feature-gates=StorageVersionAPI=true"])
}

fn lease(name: &str, component: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "kube-system", "name": name, "labels": { "apiserver.kubernetes.io/identity": component },
        },
    })
}

fn lease_key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-system", name.to_owned())
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name.to_owned())
}

/// Creates a storage version as API servers do: with its status in a second request.
fn create(sandbox: &Sandbox, name: &str, entries: &[(&str, &str)]) {
    let object = storage_version(name, entries, json!({}));
    sandbox.create(&STORAGE_VERSIONS, json!({ "metadata": { "name": name }, "spec": {} })).unwrap();
    sandbox.patch_status(&STORAGE_VERSIONS, &key(name), &json!({ "status": object["status"] })).unwrap();
}

fn servers(sandbox: &Sandbox, name: &str) -> Option<Vec<String>> {
    let object = sandbox.get(&STORAGE_VERSIONS, &key(name))?;
    let entries = object["status"]["storageVersions"].as_array().cloned().unwrap_or_default();
    Some(entries.iter().map(|entry| entry["apiServerID"].as_str().unwrap_or_default().to_owned()).collect())
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[STORAGE_VERSIONS, LEASES]).await;
    cluster
}

/// Two API servers of three go, one after the other, and one entry never had one.
async fn life(cluster: &TestCluster) {
    cluster.watches(&[STORAGE_VERSIONS, LEASES]).await;
    let sandbox = cluster.sandbox();
    for name in ["a", "b", "c"] {
        sandbox.create(&LEASES, lease(name, "kube-apiserver")).unwrap();
    }
    create(sandbox, "apps.deployments", &[("a", "v1"), ("b", "v2"), ("c", "v2")]);
    create(sandbox, "apps.replicasets", &[("b", "v1")]);
    cluster.settle().await;
    create(sandbox, "batch.jobs", &[("a", "v1"), ("stranger", "v1")]);
    cluster
        .eventually("the stranger goes", |sandbox| servers(sandbox, "batch.jobs").is_some_and(|all| all == ["a"]))
        .await;
    sandbox.delete(&LEASES, &lease_key("a")).unwrap();
    let without_a = |sandbox: &Sandbox| {
        servers(sandbox, "apps.deployments").is_some_and(|all| all == ["b", "c"])
            && servers(sandbox, "batch.jobs").is_none()
    };
    cluster.eventually("a goes", without_a).await;
    cluster.settle().await;
    // A Lease that is none of kube-apiserver any more.
    let relabelled = json!({ "metadata": { "labels": { "apiserver.kubernetes.io/identity": null } } });
    sandbox.patch(&LEASES, &lease_key("b"), &relabelled).unwrap();
    let without_b = |sandbox: &Sandbox| {
        servers(sandbox, "apps.deployments").is_some_and(|all| all == ["c"])
            && servers(sandbox, "apps.replicasets").is_none()
    };
    cluster.eventually("b goes", without_b).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn v5_entries_of_api_servers_that_are_gone_are_removed() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    let object = cluster.sandbox().get(&STORAGE_VERSIONS, &key("apps.deployments")).unwrap();
    assert_eq!(object["status"]["commonEncodingVersion"], "v2");
    assert_eq!(object["status"]["conditions"][0]["status"], "True");
    let writes = cluster.writes_of(ACCOUNT);
    let lines: Vec<String> = writes.iter().map(|write| format!("{} {}", write.method, write.path)).collect();
    let base = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
    let put = |name: &str| format!("PUT {base}/{name}/status");
    let delete = |name: &str| format!("DELETE {base}/{name}");
    let mut sorted = lines.clone();
    sorted.sort();
    let mut expected = vec![
        put("batch.jobs"),
        put("apps.deployments"),
        put("apps.deployments"),
        delete("batch.jobs"),
        delete("apps.replicasets"),
    ];
    expected.sort();
    assert_eq!(sorted, expected);
    for body in cluster.bodies_of(ACCOUNT, "PUT") {
        assert!(body["metadata"]["resourceVersion"].is_string());
    }
    for body in cluster.bodies_of(ACCOUNT, "DELETE") {
        assert!(body["preconditions"]["uid"].is_string() && body["preconditions"]["resourceVersion"].is_string());
    }
    let before = cluster.requests_of(ACCOUNT).len();
    cluster.advance(Duration::from_hours(30)).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), before, "at rest nothing is asked or written");
}

#[tokio::test(start_paused = true)]
async fn the_requests_fit_the_role() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    for request in cluster.requests_of(ACCOUNT) {
        let path = request.path.split('?').next().unwrap_or_default();
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/";
        let versions = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions/";
        let fits = match request.method.as_str() {
            "GET" => path.starts_with(leases),
            "PUT" => path.starts_with(versions) && path.ends_with("/status"),
            "DELETE" => path.starts_with(versions),
            _ => false,
        };
        assert!(fits, "{} {path}", request.method);
    }
}

#[tokio::test(start_paused = true)]
async fn v4_an_error_of_the_read_removes_nothing() {
    for refused in [Status::new(500, "InternalError", "no"), Status::new(403, "Forbidden", "no")] {
        let cluster = start(environment().allow_error("Reconcile failed")).await;
        cluster.sandbox().faults().inject(Fault::on(Verb::Get).resource(LEASES).times(4).fail(refused));
        create(cluster.sandbox(), "apps.deployments", &[("stranger", "v1"), ("hidden", "v1")]);
        cluster.sandbox().create(&LEASES, lease("hidden", "kube-apiserver")).unwrap();
        cluster.advance(Duration::from_millis(15)).await;
        assert_eq!(servers(cluster.sandbox(), "apps.deployments").unwrap(), ["stranger", "hidden"]);
        cluster.advance(Duration::from_mins(10)).await;
        assert_eq!(servers(cluster.sandbox(), "apps.deployments").unwrap(), ["hidden"]);
    }
}

#[tokio::test(start_paused = true)]
async fn t17_a_lease_that_the_cache_does_not_show_yet_is_read_live() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&LEASES);
    cluster.sandbox().create(&LEASES, lease("new", "kube-apiserver")).unwrap();
    create(cluster.sandbox(), "apps.deployments", &[("new", "v1")]);
    cluster.advance(Duration::from_secs(20)).await;
    assert_eq!(servers(cluster.sandbox(), "apps.deployments").unwrap(), ["new"]);
    assert!(cluster.writes_of(ACCOUNT).is_empty());
    let reads = cluster.requests_of(ACCOUNT).len();
    assert!((1..=2).contains(&reads), "once for each change of the storage version: {reads}");
}

#[tokio::test(start_paused = true)]
async fn d6_one_read_for_each_lease_and_none_for_an_id_that_names_none() {
    let cluster = start(environment()).await;
    cluster.sandbox().create(&LEASES, lease("a", "kube-apiserver")).unwrap();
    cluster.settle().await;
    create(
        cluster.sandbox(),
        "apps.deployments",
        &[("x", "v1"), ("", "v1"), ("x", "v1"), ("a", "v1"), ("UPPER", "v1")],
    );
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(servers(cluster.sandbox(), "apps.deployments").unwrap(), ["a"]);
    let reads = cluster.requests_of(ACCOUNT).iter().filter(|request| request.method == "GET").count();
    assert_eq!(reads, 1);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_is_added_behind_the_cache_is_not_lost() {
    for (left, right) in [("gone", "a"), ("gone", "gone")] {
        let cluster = start(environment()).await;
        for name in ["a", "b", "gone"] {
            cluster.sandbox().create(&LEASES, lease(name, "kube-apiserver")).unwrap();
        }
        create(cluster.sandbox(), "apps.deployments", &[(left, "v1"), (right, "v1")]);
        cluster.settle().await;
        cluster.sandbox().faults().hold_watches(&STORAGE_VERSIONS);
        let more = storage_version("apps.deployments", &[(left, "v1"), (right, "v1"), ("b", "v1")], json!({}));
        cluster
            .sandbox()
            .patch_status(&STORAGE_VERSIONS, &key("apps.deployments"), &json!({ "status": more["status"] }))
            .unwrap();
        cluster.sandbox().delete(&LEASES, &lease_key("gone")).unwrap();
        cluster.advance(Duration::from_secs(20)).await;
        cluster.sandbox().faults().release_watches(&STORAGE_VERSIONS);
        cluster.advance(Duration::from_mins(2)).await;
        let kept = servers(cluster.sandbox(), "apps.deployments").unwrap();
        assert!(kept.ends_with(&["b".to_owned()]) && !kept.contains(&"gone".to_owned()), "{kept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_start_entries_without_a_lease_are_found() {
    let cluster = environment()
        .object(LEASES, lease("a", "kube-apiserver"))
        .object(LEASES, lease("b", "another"))
        .prepare(|sandbox| create(sandbox, "apps.deployments", &[("a", "v1"), ("b", "v1"), ("c", "v1")]))
        .start()
        .await;
    cluster
        .eventually("only a stays", |sandbox| servers(sandbox, "apps.deployments").is_some_and(|all| all == ["a"]))
        .await;
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_nothing_is_done() {
    let options = SandboxOptions { start: START, seed: 1, beta_apis: true, ..SandboxOptions::default() };
    let cluster = TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).start().await;
    create(cluster.sandbox(), "apps.deployments", &[("c", "v1")]);
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(servers(cluster.sandbox(), "apps.deployments").unwrap(), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 5);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}
