//! Whole reconciles on an API server in the process, which allows every user but `system:anonymous`.

use std::time::Duration;

use kcm_framework::api::KnownView as _;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::json;

use crate::certificatesigningrequest_approving::{DESCRIPTOR, NAME, REVIEWS};
use crate::shared::signing_request::SigningRequest;
use crate::tests::faults::passing_faults;
use crate::tests::signing_requests::{
    API_CLIENT, KUBELET_CLIENT, conditions, create, create_request, deny, get, key, node_pem, request,
};

const ACCOUNT: &str = "certificate-controller";
const FIRST: &str = "AutoApproved: Auto approving kubelet client certificate after SubjectAccessReview.";
const RENEWED: &str = "AutoApproved: Auto approving self kubelet client certificate after SubjectAccessReview.";

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR])
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    cluster
}

fn approvals(sandbox: &Sandbox, name: &str) -> Vec<String> {
    conditions(sandbox, name, "Approved")
}

/// The reviews and approvals that were sent.
fn writes(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.requests_of(ACCOUNT);
    let writes = requests.iter().filter(|request| request.method != "GET");
    writes.map(|request| format!("{} {}", request.method, request.path.rsplit('/').next().unwrap())).collect()
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    create(cluster.sandbox(), "first", KUBELET_CLIENT);
    create_request(cluster.sandbox(), request("renewed", KUBELET_CLIENT, "system:node:renewed", &node_pem("renewed")));
    create(cluster.sandbox(), "other", API_CLIENT);
    cluster
        .eventually("both are approved", |sandbox| {
            approvals(sandbox, "first") == [FIRST] && approvals(sandbox, "renewed") == [RENEWED]
        })
        .await;
    cluster.settle().await;
    assert!(get(cluster.sandbox(), "other")["status"]["conditions"].is_null());
}

#[tokio::test(start_paused = true)]
async fn kubelets_get_their_approvals() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    // One review and one approval for each; a first certificate has no review of a renewal.
    let mut sent = writes(&cluster);
    sent.sort();
    assert_eq!(sent, ["POST subjectaccessreviews", "POST subjectaccessreviews", "PUT approval", "PUT approval"]);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, life).await;
    assert!(writes >= 2, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().allow_error("").start().await;
        cluster.sandbox().faults().inject(fault.resource(SigningRequest::RESOURCE));
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_to_reviews() {
    for fault in passing_faults() {
        let cluster = environment().allow_error("").start().await;
        cluster.sandbox().faults().inject(fault.resource(REVIEWS));
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_requester_that_is_not_allowed_is_reviewed_again_and_again() {
    let cluster = start(environment().explain_memory(1 << 20)).await;
    create_request(cluster.sandbox(), request("a", KUBELET_CLIENT, "system:anonymous", &node_pem("a")));
    cluster.advance(Duration::from_hours(2)).await;
    let sent = writes(&cluster);
    assert!(sent.iter().all(|write| write == "POST subjectaccessreviews"), "{sent:?}");
    let explained = cluster.handle().explain(NAME, &key("a")).expect("there is such a controller");
    let text = format!("{explained:?}");
    assert!(text.contains("the requester may not create nodeclient"), "{text}");
    // Twelve pauses double to about 1000 s, and as long pauses follow.
    assert!((12..30).contains(&sent.len()), "{} reviews", sent.len());
    assert!(approvals(cluster.sandbox(), "a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_decoded_is_left_to_people() {
    let cluster = start(environment().allow_error("The object is invalid")).await;
    let pem = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
    create_request(cluster.sandbox(), request("a", KUBELET_CLIENT, "joe", pem));
    cluster.advance(Duration::from_hours(2)).await;
    assert!(writes(&cluster).is_empty());
    assert!(get(cluster.sandbox(), "a")["status"]["conditions"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_denial_that_the_cache_does_not_show_yet_counts() {
    let cluster = start(environment()).await;
    let refused = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    cluster.sandbox().faults().inject(Fault::on(Verb::Create).resource(REVIEWS).times(3).fail(refused));
    create(cluster.sandbox(), "a", KUBELET_CLIENT);
    cluster.sandbox().faults().hold_watches(&SigningRequest::RESOURCE);
    deny(cluster.sandbox(), "a");
    cluster.advance(Duration::from_secs(30)).await;
    assert!(approvals(cluster.sandbox(), "a").is_empty());
    cluster.sandbox().faults().release_watches(&SigningRequest::RESOURCE);
    cluster.advance(Duration::from_hours(1)).await;
    assert!(approvals(cluster.sandbox(), "a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written_even_if_the_watch_is_late() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&SigningRequest::RESOURCE);
    create(cluster.sandbox(), "a", KUBELET_CLIENT);
    cluster.sandbox().faults().release_watches(&SigningRequest::RESOURCE);
    cluster.eventually("it is approved", |sandbox| approvals(sandbox, "a") == [FIRST]).await;
    cluster.settle().await;
    let before = writes(&cluster).len();
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    cluster.sandbox().patch(&SigningRequest::RESOURCE, &key("a"), &labels).unwrap();
    cluster.advance(Duration::from_hours(13)).await;
    assert_eq!(writes(&cluster).len(), before);
}
