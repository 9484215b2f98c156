//! The plan for bundles, and their life on an API server in the process.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Extensions;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource, View as _};
use kcm_framework::client::ClientAuthority;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::DESCRIPTOR;
use super::plan::{Publication, TrustBundle, name, plan};
use crate::shared::ROOT_CA_FILE;
use crate::tests::faults::passing_faults;

const BUNDLES: Resource = TrustBundle::RESOURCE;
const ACCOUNT: &str = "kube-apiserver-serving-clustertrustbundle-publisher";
const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
const OLD: &str = "kubernetes.io:kube-apiserver-serving:old";

/// A certificate that can only be read.
const CA: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

fn bundle(name: &str, signer: &str, content: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle",
        "metadata": { "name": name, "resourceVersion": "7", "labels": { "a": "b" } },
        "spec": { "signerName": signer, "trustBundle": content },
    })
}

/// Without the fields that only the API server sets.
fn created(name: &str, signer: &str, content: &str) -> Value {
    let mut created = bundle(name, signer, content);
    created["metadata"] = json!({ "name": name, "labels": { "a": "b" } });
    created
}

#[test]
fn p4_the_name_ends_in_24_digits_of_the_digest_of_the_content() {
    assert_eq!(name("abc"), "kubernetes.io:kube-apiserver-serving:ba7816bf8f01cfea414140de");
}

#[test]
fn p5_p6_the_bundle_is_published_before_all_others_are_deleted() {
    let current = name("CA");
    let publish = |names: &[(&str, &str)]| {
        let cached = names
            .iter()
            .map(|(name, content)| Arc::new(TrustBundle::decode(&bundle(name, SIGNER, content).to_string()).unwrap()));
        let plan = plan("CA", cached.collect()).unwrap();
        let written: Option<Value> = match plan.publication {
            Publication::None => None,
            Publication::Create(created) => Some(created),
            Publication::Update(updated) => Some(serde_json::from_str(updated.document.as_str()).unwrap()),
        };
        let outdated: Vec<String> = plan.outdated.iter().map(|bundle| bundle.metadata.key.name().to_owned()).collect();
        (written, outdated)
    };
    let missing = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "metadata": { "name": current },
        "spec": { "signerName": SIGNER, "trustBundle": "CA" },
    });
    for (case, cached, written, outdated) in [
        ("none", vec![], Some(missing.clone()), vec![]),
        ("another", vec![(OLD, "old")], Some(missing), vec![OLD]),
        ("right", vec![(current.as_str(), "CA")], None, vec![]),
        ("right and another", vec![(OLD, "CA"), (&current, "CA")], None, vec![OLD]),
        ("other content", vec![(&current, "old")], Some(bundle(&current, SIGNER, "CA")), vec![]),
    ] {
        let outdated: Vec<String> = outdated.into_iter().map(str::to_owned).collect();
        assert_eq!(publish(&cached), (written, outdated), "{case}");
    }
}

fn environment() -> TestEnvironment {
    let extensions = Extensions::default();
    extensions.insert(ClientAuthority::new(CA));
    TestEnvironment::new([DESCRIPTOR])
        .settings_of_others(&[ROOT_CA_FILE.row()])
        .extensions(extensions)
        .object(BUNDLES, created(OLD, SIGNER, "old"))
        .object(BUNDLES, created("example.com:other:a", "example.com/other", "other"))
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name.to_owned())
}

fn content(sandbox: &Sandbox, name: &str) -> Option<Value> {
    sandbox.get(&BUNDLES, &key(name)).map(|bundle| bundle["spec"]["trustBundle"].clone())
}

async fn is_published(cluster: &TestCluster) {
    let is_right =
        |sandbox: &Sandbox| content(sandbox, &name(CA)) == Some(json!(CA)) && content(sandbox, OLD).is_none();
    cluster.eventually("the bundle is published", is_right).await;
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[BUNDLES]).await;
    is_published(cluster).await;
    let changed = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "trustBundle": "changed" } });
    cluster.sandbox().patch(&BUNDLES, &key(&name(CA)), &changed).unwrap();
    is_published(cluster).await;
    assert_eq!(cluster.sandbox().get(&BUNDLES, &key(&name(CA))).unwrap()["metadata"]["labels"], json!({ "a": "b" }));
    cluster.sandbox().delete(&BUNDLES, &key(&name(CA))).unwrap();
    is_published(cluster).await;
    cluster.settle().await;
    assert_eq!(content(cluster.sandbox(), "example.com:other:a"), Some(json!("other")));
}

#[tokio::test(start_paused = true)]
async fn p5_p6_it_is_published_repaired_and_created_again_and_others_are_deleted() {
    let cluster = environment().start().await;
    life(&cluster).await;
    let written: Vec<String> = cluster.writes_of(ACCOUNT).into_iter().map(|write| write.method).collect();
    assert_eq!(written, ["POST", "DELETE", "PUT", "POST"]);
    let preconditions = &cluster.bodies_of(ACCOUNT, "DELETE")[0]["preconditions"];
    assert!(preconditions["uid"].is_string() && preconditions["resourceVersion"].is_string(), "{preconditions}");
    let metrics = cluster.metrics();
    assert!(metrics.contains(r#"clustertrustbundle_publisher_sync_total{code="200"} "#), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let cluster = environment().start().await;
    is_published(&cluster).await;
    cluster.settle().await;
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn p6_the_old_bundle_stays_while_the_new_one_cannot_be_created() {
    let refuse = |sandbox: &Sandbox| {
        let refused = Status::new(422, "Invalid", "no CA");
        drop(sandbox.faults().inject(Fault::on(Verb::Create).resource(BUNDLES).times(1000).fail(refused)));
    };
    let cluster = environment().prepare(refuse).allow_error("Reconcile failed").start().await;
    cluster.advance(Duration::from_mins(10)).await;
    assert!(cluster.writes_of(ACCOUNT).len() > 1, "it is tried again");
    assert_eq!(content(cluster.sandbox(), OLD), Some(json!("old")));
}

#[tokio::test(start_paused = true)]
async fn p1_without_a_ca_there_is_nothing_to_publish() {
    let environment = TestEnvironment::new([DESCRIPTOR]).settings_of_others(&[ROOT_CA_FILE.row()]);
    let cluster = environment.object(BUNDLES, created(OLD, SIGNER, "old")).start().await;
    cluster.advance(Duration::from_mins(10)).await;
    assert!(cluster.writes_of(ACCOUNT).is_empty());
}

#[tokio::test(start_paused = true)]
async fn late_watches_lead_to_no_second_write() {
    let late = |sandbox: &Sandbox| sandbox.faults().delay_events(&BUNDLES, Duration::from_secs(30));
    let cluster = environment().prepare(late).start().await;
    is_published(&cluster).await;
    cluster.advance(Duration::from_mins(5)).await;
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 4);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().prepare(move |sandbox| drop(sandbox.faults().inject(fault))).start().await;
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r2_a_changed_file_is_published_before_the_old_bundle_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    std::fs::write(&path, CA).unwrap();
    let cluster = environment().arguments(&[&format!("--root-ca-file={}", path.display())]).start().await;
    is_published(&cluster).await;
    let rotated = format!("{CA}{CA}");
    std::fs::write(&path, &rotated).unwrap();
    let is_rotated = |sandbox: &Sandbox| {
        content(sandbox, &name(&rotated)) == Some(json!(rotated)) && content(sandbox, &name(CA)).is_none()
    };
    cluster.eventually("the rotated CA is published", is_rotated).await;
    let writes = cluster.writes_of(ACCOUNT);
    let methods: Vec<&str> = writes.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["POST", "DELETE", "POST", "DELETE"]);
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_cannot_be_decoded_is_left_until_it_can() {
    let cluster = environment().allow_error("Object cannot be decoded").start().await;
    is_published(&cluster).await;
    let before = cluster.writes_of(ACCOUNT).len();
    let wrong = json!({ "spec": { "trustBundle": 1 } });
    DirectClient::new(cluster.sandbox()).merge(&BUNDLES, &key(&name(CA)), None, &wrong).expect("the bundle is there");
    cluster.advance(Duration::from_mins(5)).await;
    assert_eq!(cluster.writes_of(ACCOUNT).len(), before, "it is neither created nor deleted");
}

#[tokio::test(start_paused = true)]
async fn p7_p8_a_bundle_that_the_api_server_refuses_is_tried_again() {
    let cluster = environment().allow_error("Reconcile failed").start().await;
    let refused = Status::new(422, "Invalid", "no CA");
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(BUNDLES).times(5).fail(refused));
    is_published(&cluster).await;
}
