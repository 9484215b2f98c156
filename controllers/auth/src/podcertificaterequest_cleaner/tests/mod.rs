//! The age of requests, and their life on an API server in the process.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

use crate::podcertificaterequest_cleaner::DESCRIPTOR;
use crate::podcertificaterequest_cleaner::plan::{PodCertificateRequest, is_old};
use crate::tests::faults::passing_faults;

const REQUESTS: Resource = PodCertificateRequest::RESOURCE;
const ACCOUNT: &str = "podcertificaterequestcleaner";
const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn q2_a_request_is_old_at_fifteen_minutes_exactly() {
    let now: Timestamp = "2026-01-02T12:15:00Z".parse().unwrap();
    for (name, created, expected) in [
        ("a second younger", Some("2026-01-02T12:00:01Z"), false),
        ("exactly", Some("2026-01-02T12:00:00Z"), true),
        ("older", Some("2026-01-01T12:00:00Z"), true),
        ("of the future", Some("2026-01-02T13:00:00Z"), false),
        ("without a time", None, false),
    ] {
        assert_eq!(is_old(created.map(|time| time.parse().unwrap()), now), expected, "{name}");
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name.to_owned())
}

fn request(name: &str) -> Value {
    json!({ "metadata": { "namespace": "shop", "name": name }, "spec": {
        "signerName": "example.com/signer", "podName": "pod", "podUID": "1", "serviceAccountName": "default",
        "serviceAccountUID": "2", "nodeName": "node", "nodeUID": "3", "maxExpirationSeconds": 86400,
        "stubPKCS10Request": "AAAA", "pkixPublicKey": "AAAA", "proofOfPossession": "AAAA",
    } })
}

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop")
}

fn exists(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.get(&REQUESTS, &key(name)).is_some()
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[REQUESTS]).await;
    for name in ["a", "b"] {
        cluster.sandbox().create(&REQUESTS, request(name)).unwrap();
    }
    cluster.advance(14 * MINUTE).await;
    assert!(exists(cluster.sandbox(), "a"));
    cluster.advance(12 * MINUTE).await;
    assert!(!exists(cluster.sandbox(), "a") && !exists(cluster.sandbox(), "b"));
}

#[tokio::test(start_paused = true)]
async fn q1_q3_old_requests_are_deleted_with_uid_and_version() {
    let cluster = environment().start().await;
    life(&cluster).await;
    let requests = cluster.requests_of(ACCOUNT);
    assert_eq!(requests.len(), 2, "{requests:?}");
    for body in cluster.bodies_of(ACCOUNT, "DELETE") {
        let preconditions = &body["preconditions"];
        assert!(preconditions["uid"].is_string() && preconditions["resourceVersion"].is_string(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_recreated_behind_the_cache_stays() {
    let cluster = environment().start().await;
    cluster.watches(&[REQUESTS]).await;
    cluster.sandbox().create(&REQUESTS, request("a")).unwrap();
    cluster.advance(12 * MINUTE).await;
    cluster.sandbox().faults().hold_watches(&REQUESTS);
    cluster.sandbox().delete(&REQUESTS, &key("a")).unwrap();
    cluster.sandbox().create(&REQUESTS, request("a")).unwrap();
    cluster.advance(10 * MINUTE).await;
    assert!(exists(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn q3_a_deletion_that_is_refused_stops_no_other_and_is_tried_again() {
    let cluster = environment().start().await;
    cluster.watches(&[REQUESTS]).await;
    let refused = Status::new(403, "Forbidden", "not yet");
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(REQUESTS).times(1).fail(refused));
    life(&cluster).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn late_watches_lead_to_no_second_deletion() {
    let cluster = environment().start().await;
    cluster.watches(&[REQUESTS]).await;
    cluster.sandbox().faults().delay_events(&REQUESTS, MINUTE);
    life(&cluster).await;
    assert_eq!(cluster.requests_of(ACCOUNT).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 2);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}
