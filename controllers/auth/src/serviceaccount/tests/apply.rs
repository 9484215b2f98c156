//! The account on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{Fault, NAMESPACES, Status};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::serviceaccount::DESCRIPTOR;
use crate::shared::ServiceAccount;
use crate::tests::faults::passing_faults;

const ACCOUNTS: Resource = ServiceAccount::RESOURCE;

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[NAMESPACES, ACCOUNTS]).await;
    cluster
}

fn key(namespace: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace.to_owned(), "default")
}

async fn has_account(cluster: &TestCluster, namespace: &str) {
    cluster.eventually("the account", |sandbox| sandbox.get(&ACCOUNTS, &key(namespace)).is_some()).await;
}

/// The bodies of the writes.
fn writes(cluster: &TestCluster) -> Vec<Value> {
    let mut requests = cluster.requests_of("service-account-controller");
    requests.retain(|request| request.method != "GET");
    requests.iter().map(|request| serde_json::from_str(&request.body).expect("it is JSON")).collect()
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_the_account_also_one_that_is_created_later() {
    let cluster = start(environment()).await;
    for namespace in ["shop", "default", "kube-system"] {
        has_account(&cluster, namespace).await;
    }
    let before = writes(&cluster).len();
    cluster.sandbox().create_namespace("later").unwrap();
    has_account(&cluster, "later").await;
    let metadata = json!({ "namespace": "later", "name": "default" });
    let expected = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
    assert_eq!(writes(&cluster)[before..], [expected]);
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_deleted_is_created_again_and_others_are_not() {
    let cluster = start(environment().prepare(|sandbox| {
        let other = json!({ "metadata": { "namespace": "shop", "name": "other" } });
        sandbox.create(&ACCOUNTS, other).unwrap();
    }))
    .await;
    has_account(&cluster, "shop").await;
    let before = cluster.sandbox().get(&ACCOUNTS, &key("shop")).unwrap();
    cluster.sandbox().delete(&ACCOUNTS, &key("shop")).unwrap();
    cluster.sandbox().delete(&ACCOUNTS, &ObjectKey::namespaced("shop", "other")).unwrap();
    has_account(&cluster, "shop").await;
    assert_ne!(cluster.sandbox().get(&ACCOUNTS, &key("shop")).unwrap()["metadata"]["uid"], before["metadata"]["uid"]);
    cluster.settle().await;
    assert_eq!(cluster.sandbox().list(&ACCOUNTS, Some("shop")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_there_is_left_as_it_is() {
    let metadata = json!({ "namespace": "shop", "name": "default", "labels": { "a": "b" } });
    let account = json!({ "metadata": metadata, "automountServiceAccountToken": false });
    let cluster = start(environment().object(ACCOUNTS, account)).await;
    has_account(&cluster, "kube-system").await;
    cluster.advance(Duration::from_mins(20)).await;
    let names: Vec<_> = writes(&cluster).into_iter().map(|write| write["metadata"]["namespace"].clone()).collect();
    assert!(!names.contains(&json!("shop")), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_terminating_namespace() {
    let cluster = start(environment()).await;
    has_account(&cluster, "shop").await;
    let hold = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    let shop = ObjectKey::cluster_scoped("shop");
    cluster.sandbox().patch(&NAMESPACES, &shop, &hold).unwrap();
    cluster.sandbox().delete(&NAMESPACES, &shop).unwrap();
    cluster.settle().await;
    let before = writes(&cluster).len();
    cluster.sandbox().delete(&ACCOUNTS, &key("shop")).unwrap();
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(writes(&cluster).len(), before);
}

#[tokio::test(start_paused = true)]
async fn that_a_namespace_is_terminating_by_now_is_no_failure() {
    let terminating = Status::new(403, "Forbidden", "it is being terminated");
    let terminating = terminating.with_cause("NamespaceTerminating", "shop", "metadata.namespace");
    let cluster = start(environment().prepare(|sandbox| {
        sandbox.faults().inject(Fault::on_writes().namespace("shop").fail(terminating));
    }))
    .await;
    has_account(&cluster, "default").await;
    cluster.settle().await;
    let before = writes(&cluster).len();
    cluster.advance(Duration::from_mins(20)).await;
    assert_eq!(writes(&cluster).len(), before, "it is not tried again");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_refusals_and_late_watches_change_nothing() {
    for fault in passing_faults() {
        let cluster = start(environment().prepare(move |sandbox| {
            sandbox.faults().inject(fault);
            sandbox.faults().delay_events(&ACCOUNTS, Duration::from_secs(30));
        }))
        .await;
        for namespace in ["shop", "default", "kube-system"] {
            has_account(&cluster, namespace).await;
        }
        cluster.advance(Duration::from_mins(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[NAMESPACES, ACCOUNTS]).await;
        for namespace in ["shop", "default", "kube-system", "kube-public"] {
            has_account(cluster, namespace).await;
        }
        cluster.sandbox().delete(&ACCOUNTS, &key("shop")).unwrap();
        has_account(cluster, "shop").await;
        cluster.settle().await;
    })
    .await;
    assert!(writes >= 5, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_cannot_be_decoded_is_created_again_when_it_is_deleted() {
    let broken = environment().allow_error("Object cannot be decoded").prepare(|sandbox| {
        sandbox.create(&ACCOUNTS, json!({ "metadata": { "namespace": "shop", "name": "default" } })).unwrap();
        DirectClient::new(sandbox).merge(&ACCOUNTS, &key("shop"), None, &json!({ "secrets": 5 })).unwrap();
    });
    let cluster = start(broken).await;
    has_account(&cluster, "kube-system").await;
    let before = cluster.sandbox().get(&ACCOUNTS, &key("shop")).unwrap();
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(cluster.sandbox().get(&ACCOUNTS, &key("shop")), Some(before), "it exists");
    cluster.sandbox().delete(&ACCOUNTS, &key("shop")).unwrap();
    has_account(&cluster, "shop").await;
}
