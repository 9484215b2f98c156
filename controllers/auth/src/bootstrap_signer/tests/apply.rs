//! Signatures on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::{PAYLOAD, SIGNATURE, signing};
use crate::bootstrap_signer::DESCRIPTOR;
use crate::shared::BootstrapToken;
use crate::tests::faults::passing_faults;

const SECRETS: Resource = BootstrapToken::RESOURCE;
const ACCOUNT: &str = "bootstrap-signer";

fn cluster_info() -> ObjectKey {
    ObjectKey::namespaced("kube-public", "cluster-info")
}

fn environment() -> TestEnvironment {
    let object = json!({
        "metadata": { "namespace": "kube-public", "name": "cluster-info", "labels": { "a": "b" } },
        "data": { "kubeconfig": PAYLOAD, "other": "data" },
    });
    TestEnvironment::new([DESCRIPTOR]).select(&["bootstrapsigner"]).object(CONFIG_MAPS, object)
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CONFIG_MAPS, SECRETS]).await;
    cluster
}

fn data(sandbox: &Sandbox) -> Value {
    sandbox.get(&CONFIG_MAPS, &cluster_info()).unwrap_or_default()["data"].clone()
}

fn signatures(sandbox: &Sandbox) -> Vec<String> {
    let data = data(sandbox);
    let keys = data.as_object().into_iter().flat_map(serde_json::Map::keys);
    keys.filter_map(|key| key.strip_prefix("jws-kubeconfig-")).map(str::to_owned).collect()
}

async fn signed_by(cluster: &TestCluster, ids: &[&str]) {
    cluster.eventually(&format!("it is signed by {ids:?}"), |sandbox| signatures(sandbox) == ids).await;
}

fn token(id: &str) -> ObjectKey {
    ObjectKey::namespaced("kube-system", format!("bootstrap-token-{id}"))
}

/// Two tokens come, one of them goes, and the kubeconfig changes.
async fn life(cluster: &TestCluster) {
    cluster.watches(&[CONFIG_MAPS, SECRETS]).await;
    cluster.sandbox().create(&SECRETS, signing("abc123", "")).unwrap();
    signed_by(cluster, &["abc123"]).await;
    cluster.sandbox().create(&SECRETS, signing("def456", "")).unwrap();
    signed_by(cluster, &["abc123", "def456"]).await;
    cluster.settle().await;
    assert_eq!(data(cluster.sandbox())["jws-kubeconfig-abc123"], SIGNATURE);
    cluster.sandbox().delete(&SECRETS, &token("def456")).unwrap();
    signed_by(cluster, &["abc123"]).await;
    cluster.settle().await;
    cluster.sandbox().patch(&CONFIG_MAPS, &cluster_info(), &json!({ "data": { "kubeconfig": "another" } })).unwrap();
    cluster
        .eventually("the new kubeconfig is signed", |sandbox| data(sandbox)["jws-kubeconfig-abc123"] != SIGNATURE)
        .await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn b7_tokens_sign_and_the_rest_of_the_config_map_stays() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    let object = cluster.sandbox().get(&CONFIG_MAPS, &cluster_info()).unwrap();
    assert_eq!((&object["data"]["other"], &object["metadata"]["labels"]), (&json!("data"), &json!({ "a": "b" })));
    let writes = cluster.writes_of(ACCOUNT);
    let path = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
    assert!(writes.iter().all(|write| write.method == "PUT" && write.path == path), "{writes:?}");
    assert_eq!(writes.len(), 4);
    for body in cluster.bodies_of(ACCOUNT, "PUT") {
        assert!(body["metadata"]["resourceVersion"].is_string(), "the update has a precondition");
    }
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), 4, "at rest nothing is asked or written");
}

#[tokio::test(start_paused = true)]
async fn t10_only_bootstrap_tokens_and_cluster_info_are_read() {
    let cluster = start(environment()).await;
    cluster.settle().await;
    let requests = cluster.sandbox().requests();
    for (plural, path, selector) in [
        ("secrets", "/api/v1/namespaces/kube-system/secrets", "fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken"),
        ("configmaps", "/api/v1/namespaces/kube-public/configmaps", "fieldSelector=metadata.name%3Dcluster-info"),
    ] {
        let of_kind: Vec<_> = requests.iter().filter(|request| request.path.ends_with(&format!("/{plural}"))).collect();
        assert!(!of_kind.is_empty());
        for request in of_kind {
            assert_eq!(request.path, path);
            assert!(request.query.contains(selector), "{}", request.query);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b6_what_others_write_is_repaired() {
    let cluster = start(environment().object(SECRETS, signing("abc123", ""))).await;
    signed_by(&cluster, &["abc123"]).await;
    let change = json!({ "data": { "jws-kubeconfig-abc123": "wrong", "jws-kubeconfig-zzz999": "foreign" } });
    cluster.sandbox().patch(&CONFIG_MAPS, &cluster_info(), &change).unwrap();
    cluster.eventually("it is repaired", |sandbox| data(sandbox)["jws-kubeconfig-abc123"] == SIGNATURE).await;
    signed_by(&cluster, &["abc123"]).await;
    // Deleted and created without signatures, as a person repairs it.
    cluster.sandbox().delete(&CONFIG_MAPS, &cluster_info()).unwrap();
    cluster.settle().await;
    let object = json!({ "metadata": { "namespace": "kube-public", "name": "cluster-info" }, "data": { "kubeconfig": PAYLOAD } });
    cluster.sandbox().create(&CONFIG_MAPS, object).unwrap();
    signed_by(&cluster, &["abc123"]).await;
}

#[tokio::test(start_paused = true)]
async fn d5_the_signature_of_a_token_goes_when_the_token_expires() {
    // Noon of this day is the start.
    let tokens = environment()
        .object(SECRETS, signing("abc123", "2026-01-02T13:00:00Z"))
        .object(SECRETS, signing("def456", "2026-01-02T12:30:00Z"));
    let cluster = start(tokens).await;
    signed_by(&cluster, &["abc123", "def456"]).await;
    cluster.advance(Duration::from_mins(29)).await;
    assert_eq!(signatures(cluster.sandbox()), ["abc123", "def456"]);
    cluster.advance(Duration::from_secs(61)).await;
    assert_eq!(signatures(cluster.sandbox()), ["abc123"]);
    // The update at the second expiry fails, and is tried again.
    let refused = Status::new(500, "InternalError", "etcd is slow");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(CONFIG_MAPS).times(3).fail(refused));
    cluster.advance(Duration::from_mins(31)).await;
    assert_eq!(signatures(cluster.sandbox()), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn d5_an_update_that_fails_is_tried_again() {
    let cluster = start(environment().allow_error("Reconcile failed")).await;
    let refused = Status::new(403, "Forbidden", "not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(CONFIG_MAPS).times(2).fail(refused));
    cluster.sandbox().create(&SECRETS, signing("abc123", "")).unwrap();
    cluster.advance(Duration::from_mins(10)).await;
    assert_eq!(signatures(cluster.sandbox()), ["abc123"]);
}

#[tokio::test(start_paused = true)]
async fn a_stale_cache_never_undoes_the_change_of_another() {
    let cluster = start(environment()).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&CONFIG_MAPS);
    cluster.sandbox().patch(&CONFIG_MAPS, &cluster_info(), &json!({ "data": { "kubeconfig": "newer" } })).unwrap();
    cluster.sandbox().create(&SECRETS, signing("abc123", "")).unwrap();
    cluster.advance(Duration::from_secs(20)).await;
    assert_eq!(data(cluster.sandbox())["kubeconfig"], "newer");
    assert_eq!(signatures(cluster.sandbox()), [""; 0], "the update of an old version is a conflict");
    cluster.sandbox().faults().release_watches(&CONFIG_MAPS);
    signed_by(&cluster, &["abc123"]).await;
    assert_ne!(data(cluster.sandbox())["jws-kubeconfig-abc123"], SIGNATURE);
}

#[tokio::test(start_paused = true)]
async fn late_watches_lead_to_no_second_update() {
    let cluster = start(environment()).await;
    cluster.settle().await;
    cluster.sandbox().faults().delay_events(&CONFIG_MAPS, Duration::from_secs(20));
    cluster.sandbox().create(&SECRETS, signing("abc123", "")).unwrap();
    cluster.advance(Duration::from_secs(10)).await;
    cluster.sandbox().create(&SECRETS, signing("def456", "")).unwrap();
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(signatures(cluster.sandbox()), ["abc123", "def456"]);
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_kubeconfig_nothing_is_written() {
    let object = json!({ "metadata": { "namespace": "kube-public", "name": "cluster-info" }, "data": { "jws-kubeconfig-x": "y" } });
    let environment = TestEnvironment::new([DESCRIPTOR]).select(&["bootstrap-signer-controller"]);
    let cluster = start(environment.object(CONFIG_MAPS, object).object(SECRETS, signing("abc123", ""))).await;
    cluster.advance(Duration::from_mins(5)).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 4);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_off_by_default() {
    let cluster = environment().select(&["*"]).object(SECRETS, signing("abc123", "")).start().await;
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(signatures(cluster.sandbox()), [""; 0]);
}
