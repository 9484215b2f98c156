//! Whole passes on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::json;

use crate::certificatesigningrequest_cleaner::DESCRIPTOR;
use crate::shared::signing_request::SigningRequest;
use crate::tests::faults::passing_faults;
use crate::tests::signing_requests::{KUBELET_CLIENT, approve, authority, create, deny, get};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR])
}

fn exists(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&SigningRequest::RESOURCE, &ObjectKey::cluster_scoped(name)).is_some()
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    for name in ["denied", "other", "approved", "pending"] {
        create(cluster.sandbox(), name, CLIENT);
    }
    for name in ["denied", "other"] {
        deny(cluster.sandbox(), name);
    }
    approve(cluster.sandbox(), "approved");
    cluster.advance(3 * HOUR).await;
    cluster
        .eventually("the denied requests are deleted", |sandbox| {
            !exists(sandbox, "denied") && !exists(sandbox, "other")
        })
        .await;
    assert!(exists(cluster.sandbox(), "approved") && exists(cluster.sandbox(), "pending"));
}

#[tokio::test(start_paused = true)]
async fn requests_are_deleted_when_their_time_has_come() {
    let cluster = environment().start().await;
    life(&cluster).await;
    cluster.advance(23 * HOUR).await;
    assert!(!exists(cluster.sandbox(), "approved") && !exists(cluster.sandbox(), "pending"));
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, life).await;
    assert!(writes >= 2, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().allow_error("Cannot delete").start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_changed_since_it_was_judged_stays_until_the_next_pass() {
    let cluster = environment().start().await;
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    create(cluster.sandbox(), "a", CLIENT);
    deny(cluster.sandbox(), "a");
    cluster.settle().await;
    // The second pass after the start judges it.
    cluster.advance(119 * MINUTE).await;
    cluster.sandbox().faults().hold_watches(&SigningRequest::RESOURCE);
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    cluster.sandbox().patch(&SigningRequest::RESOURCE, &ObjectKey::cluster_scoped("a"), &labels).unwrap();
    cluster.advance(2 * MINUTE).await;
    assert!(exists(cluster.sandbox(), "a"));
    assert_eq!(cluster.writes_of("certificate-controller").len(), 1);
    cluster.sandbox().faults().release_watches(&SigningRequest::RESOURCE);
    cluster.advance(2 * HOUR).await;
    cluster.eventually("the request is deleted", |sandbox| !exists(sandbox, "a")).await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_whose_deletion_failed_is_repeated_soon() {
    let cluster = environment().allow_error("").start().await;
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    create(cluster.sandbox(), "a", CLIENT);
    deny(cluster.sandbox(), "a");
    cluster.settle().await;
    let refused = Status::new(500, "InternalError", "no");
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).fail(refused));
    cluster.advance(2 * HOUR + MINUTE).await;
    assert!(exists(cluster.sandbox(), "a"));
    cluster.sandbox().faults().clear();
    cluster.advance(11 * MINUTE).await;
    assert!(!exists(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let cluster = environment().start().await;
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    create(cluster.sandbox(), "a", CLIENT);
    cluster.advance(12 * HOUR).await;
    assert!(cluster.writes_of("certificate-controller").is_empty());
}

/// The three controllers share one cache, and a request costs little more than its JSON.
#[tokio::test(start_paused = true)]
async fn the_controllers_of_requests_share_one_cache() {
    use crate::{certificatesigningrequest_approving as approving, certificatesigningrequest_signing as signing};
    const REQUESTS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = authority("a");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("crt"), certificate).unwrap();
    std::fs::write(path("key"), key).unwrap();
    let files =
        [format!("--cluster-signing-cert-file={}", path("crt")), format!("--cluster-signing-key-file={}", path("key"))];
    let environment = TestEnvironment::new([DESCRIPTOR, approving::DESCRIPTOR, signing::DESCRIPTOR]);
    let cluster = environment.arguments(&[&files[0], &files[1]]).start().await;
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    for number in 0..REQUESTS {
        create(cluster.sandbox(), &format!("node-{number}"), KUBELET_CLIENT);
    }
    let is_issued =
        |sandbox: &Sandbox, number: usize| get(sandbox, &format!("node-{number}"))["status"]["certificate"].is_string();
    cluster
        .eventually("all are approved and signed", |sandbox| (0..REQUESTS).all(|number| is_issued(sandbox, number)))
        .await;
    cluster.settle().await;
    // A review, an approval and a certificate for each.
    let requests = cluster.requests_of("certificate-controller");
    assert_eq!(requests.iter().filter(|request| request.method != "GET").count(), 3 * REQUESTS);
    let caches = cluster.handle().caches();
    let of_requests: Vec<_> = caches.iter().filter(|(status, _)| status.resource == SigningRequest::RESOURCE).collect();
    let [(status, bytes)] = of_requests[..] else { panic!("{} informers", of_requests.len()) };
    assert_eq!(status.objects, REQUESTS);
    assert!(*bytes < REQUESTS * 4_000, "{bytes} bytes");
}
