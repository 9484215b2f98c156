//! The config map on an API server in the process.

use std::time::Duration;

use kcm_framework::Extensions;
use kcm_framework::api::ObjectKey;
use kcm_framework::client::ClientAuthority;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, NAMESPACES, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use super::CA;
use crate::root_ca_certificate_publisher::DESCRIPTOR;
use crate::tests::faults::passing_faults;

pub(super) fn environment() -> TestEnvironment {
    let extensions = Extensions::default();
    extensions.insert(ClientAuthority::new(CA));
    TestEnvironment::new([DESCRIPTOR]).extensions(extensions).namespace("shop")
}

pub(super) async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NAMESPACES, CONFIG_MAPS]).await;
    cluster
}

fn key(namespace: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace.to_owned(), "kube-root-ca.crt")
}

fn published(sandbox: &Sandbox, namespace: &str) -> Value {
    sandbox.get(&CONFIG_MAPS, &key(namespace)).unwrap_or_default()["data"].clone()
}

async fn is_published(cluster: &TestCluster, namespace: &str, ca: &str) {
    let expected = json!({ "ca.crt": ca });
    cluster.eventually("it is published", |sandbox| published(sandbox, namespace) == expected).await;
}

fn writes(cluster: &TestCluster) -> usize {
    let requests = cluster.requests_of("root-ca-cert-publisher");
    requests.iter().filter(|request| request.method != "GET").count()
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_it_also_one_that_is_created_later() {
    let cluster = start(environment()).await;
    for namespace in ["shop", "default", "kube-system"] {
        is_published(&cluster, namespace, CA).await;
    }
    cluster.sandbox().create_namespace("later").unwrap();
    is_published(&cluster, "later", CA).await;
    let metrics = cluster.metrics();
    assert!(metrics.contains(r#"root_ca_cert_publisher_sync_total{code="200"} "#), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn what_others_change_or_delete_is_repaired_and_what_they_add_stays() {
    let cluster = start(environment()).await;
    is_published(&cluster, "shop", CA).await;
    let change = json!({ "metadata": { "labels": { "a": "b" } }, "data": { "ca.crt": "another", "more": "data" } });
    cluster.sandbox().patch(&CONFIG_MAPS, &key("shop"), &change).unwrap();
    is_published(&cluster, "shop", CA).await;
    let labels = &cluster.sandbox().get(&CONFIG_MAPS, &key("shop")).unwrap()["metadata"]["labels"];
    assert_eq!(labels, &json!({ "a": "b" }));
    cluster.sandbox().delete(&CONFIG_MAPS, &key("shop")).unwrap();
    is_published(&cluster, "shop", CA).await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let cluster = start(environment()).await;
    is_published(&cluster, "shop", CA).await;
    cluster.settle().await;
    let before = writes(&cluster);
    assert!(before > 0);
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(writes(&cluster), before);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_terminating_is_left_alone() {
    let terminating = Status::new(403, "Forbidden", "it is being terminated");
    let terminating = terminating.with_cause("NamespaceTerminating", "shop", "metadata.namespace");
    let cluster = start(environment().prepare(|sandbox| {
        let of_shop = Fault::on(Verb::Create).resource(CONFIG_MAPS).namespace("shop");
        sandbox.faults().inject(of_shop.fail(terminating));
    }))
    .await;
    is_published(&cluster, "default", CA).await;
    cluster.settle().await;
    let before = writes(&cluster);
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(writes(&cluster), before);
}

#[tokio::test(start_paused = true)]
async fn r2_r4_the_file_comes_before_the_kubeconfig_and_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    let bundle = format!("authorities\n{CA}{CA}");
    std::fs::write(&path, &bundle).unwrap();
    let environment = environment().arguments(&[&format!("--root-ca-file={}", path.display())]);
    let cluster = start(environment.allow_error("Cannot load the root CA")).await;
    is_published(&cluster, "shop", &bundle).await;
    let is_failing = || {
        let metrics = cluster.metrics();
        let gauge = metrics.lines().find(|line| line.starts_with("controller_root_ca_file_failing_since_seconds{"));
        !gauge.expect("there is a gauge").ends_with(" 0")
    };
    let before = writes(&cluster);
    for (case, content) in [("empty", ""), ("broken", "-----BEGIN CERTIFICATE-----\nMAA"), ("no PEM", "authorities")] {
        std::fs::write(&path, content).unwrap();
        cluster.advance(Duration::from_mins(1)).await;
        assert!(is_failing(), "{case}");
    }
    std::fs::remove_file(&path).unwrap();
    cluster.advance(Duration::from_mins(1)).await;
    assert_eq!(published(cluster.sandbox(), "shop"), json!({ "ca.crt": bundle }), "the previous content stays");
    cluster.sandbox().delete(&CONFIG_MAPS, &key("shop")).unwrap();
    is_published(&cluster, "shop", &bundle).await;
    assert_eq!(writes(&cluster), before + 1);

    std::fs::write(&path, &bundle).unwrap();
    cluster.advance(Duration::from_mins(1)).await;
    assert!(!is_failing() && writes(&cluster) == before + 1, "equal content is not written");
    std::fs::write(&path, CA).unwrap();
    for namespace in ["shop", "default", "kube-system"] {
        is_published(&cluster, namespace, CA).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_used_is_named_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    let cluster = environment()
        .arguments(&[&format!("--root-ca-file={}", path.display())])
        .allow_error("--root-ca-file")
        .start()
        .await;
    cluster.settle().await;
    let status = cluster.handle().controllers().remove(0);
    let problem = status.problem().unwrap_or_default();
    assert!(problem.contains("cannot read --root-ca-file"), "{problem}");
    std::fs::write(&path, "no certificate").unwrap();
    cluster.advance(Duration::from_mins(5)).await;
    let status = cluster.handle().controllers().remove(0);
    let problem = status.problem().unwrap_or_default();
    assert!(problem.contains("has no certificate in PEM"), "{problem}");
    std::fs::write(&path, CA).unwrap();
    is_published(&cluster, "shop", CA).await;
}

#[tokio::test(start_paused = true)]
async fn without_any_authority_the_config_map_is_empty() {
    let cluster = start(TestEnvironment::new([DESCRIPTOR]).namespace("shop")).await;
    is_published(&cluster, "shop", "").await;
}

#[tokio::test(start_paused = true)]
async fn lost_answers_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let cluster = start(environment().prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&CONFIG_MAPS, Duration::from_secs(30));
        }))
        .await;
        for namespace in ["shop", "default", "kube-system"] {
            is_published(&cluster, namespace, CA).await;
        }
        cluster.advance(Duration::from_mins(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[NAMESPACES, CONFIG_MAPS]).await;
        for namespace in ["shop", "default", "kube-system", "kube-public"] {
            is_published(cluster, namespace, CA).await;
        }
        cluster.sandbox().patch(&CONFIG_MAPS, &key("shop"), &json!({ "data": { "ca.crt": "another" } })).unwrap();
        is_published(cluster, "shop", CA).await;
        cluster.settle().await;
    })
    .await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_config_map_that_cannot_be_decoded_is_left_alone_until_it_is_deleted() {
    let cluster = start(environment().allow_error("Object cannot be decoded")).await;
    is_published(&cluster, "shop", CA).await;
    cluster.settle().await;
    let written = writes(&cluster);
    let data = json!({ "data": { "ca.crt": 5 } });
    DirectClient::new(cluster.sandbox()).merge(&CONFIG_MAPS, &key("shop"), None, &data).unwrap();
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    cluster.sandbox().patch(&NAMESPACES, &ObjectKey::cluster_scoped("shop"), &labels).unwrap();
    cluster.advance(Duration::from_hours(1)).await;
    assert_eq!(writes(&cluster), written);
    cluster.sandbox().delete(&CONFIG_MAPS, &key("shop")).unwrap();
    is_published(&cluster, "shop", CA).await;
}
