//! Whole reconciles on an API server in the process.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcm_framework::api::KnownView as _;
use kcm_testing::sandbox::Sandbox;
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use tempfile::TempDir;

use crate::certificatesigningrequest_signing::DESCRIPTOR;
use crate::shared::signing_request::SigningRequest;
use crate::tests::faults::passing_faults;
use crate::tests::logs::Lines;
use crate::tests::signing_requests::{
    API_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, approve, authority, conditions, create, create_request, deny, get,
    key, pem, request,
};

const ACCOUNT: &str = "certificate-controller";

/// The folder of a CA.
pub(super) struct Ca(TempDir);

impl Ca {
    pub(super) fn new(name: &str) -> Self {
        let ca = Self(tempfile::tempdir().unwrap());
        ca.replace(name);
        ca
    }

    fn replace(&self, name: &str) {
        let (certificate, key) = authority(name);
        std::fs::write(self.path("crt"), certificate).unwrap();
        std::fs::write(self.path("key"), key).unwrap();
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.0.path().join(format!("ca.{extension}"))
    }

    pub(super) fn environment(&self, signer: &str) -> TestEnvironment {
        let arguments = [("cert", "crt"), ("key", "key")].map(|(name, extension)| {
            format!("--cluster-signing-{signer}{name}-file={}", self.path(extension).display())
        });
        TestEnvironment::new([DESCRIPTOR]).arguments(&[&arguments[0], &arguments[1]])
    }
}

pub(super) async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    cluster
}

pub(super) fn is_issued(sandbox: &Sandbox, name: &str) -> bool {
    get(sandbox, name)["status"]["certificate"].is_string()
}

/// Returns `true` if the certificate has the name of that issuer.
fn is_issued_by(sandbox: &Sandbox, name: &str, issuer: &str) -> bool {
    let request = get(sandbox, name);
    let pem = STANDARD.decode(request["status"]["certificate"].as_str().unwrap_or_default()).unwrap();
    let text: String = String::from_utf8(pem).unwrap().lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(text).unwrap();
    der.windows(issuer.len()).any(|window| window == issuer.as_bytes())
}

pub(super) fn writes(cluster: &TestCluster) -> usize {
    cluster.writes_of(ACCOUNT).len()
}

pub(super) fn failures(sandbox: &Sandbox, name: &str) -> Vec<String> {
    conditions(sandbox, name, "Failed")
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[SigningRequest::RESOURCE]).await;
    for (name, signer) in [("client", KUBELET_CLIENT), ("serving", KUBELET_SERVING), ("api", API_CLIENT)] {
        create(cluster.sandbox(), name, signer);
        approve(cluster.sandbox(), name);
    }
    create(cluster.sandbox(), "denied", KUBELET_CLIENT);
    deny(cluster.sandbox(), "denied");
    create(cluster.sandbox(), "pending", KUBELET_CLIENT);
    create(cluster.sandbox(), "foreign", "example.com/signer");
    approve(cluster.sandbox(), "foreign");
    create_request(cluster.sandbox(), request("refused", KUBELET_CLIENT, "joe", &pem(&[], "joe", &[])));
    approve(cluster.sandbox(), "refused");
    cluster
        .eventually("the approved requests are signed or failed", |sandbox| {
            ["client", "serving", "api"].iter().all(|name| is_issued(sandbox, name))
                && failures(sandbox, "refused") == ["SignerValidationFailure: subject organization is not system:nodes"]
        })
        .await;
    cluster.settle().await;
    for name in ["denied", "pending", "foreign", "refused"] {
        assert!(!is_issued(cluster.sandbox(), name), "{name}");
    }
    assert_eq!(conditions(cluster.sandbox(), "client", "Approved").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn approved_requests_are_signed_once() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    life(&cluster).await;
    assert_eq!(writes(&cluster), 4);
    let before = get(cluster.sandbox(), "client");
    let labels = serde_json::json!({ "metadata": { "labels": { "a": "b" } } });
    cluster.sandbox().patch(&SigningRequest::RESOURCE, &key("client"), &labels).unwrap();
    cluster.advance(Duration::from_hours(13)).await;
    assert_eq!(writes(&cluster), 4);
    assert_eq!(get(cluster.sandbox(), "client")["status"], before["status"]);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let ca = Ca::new("first");
    let writes = kill_after_each_write(|| ca.environment(""), life).await;
    assert!(writes >= 4, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    let ca = Ca::new("first");
    for fault in passing_faults() {
        let cluster = ca.environment("").allow_error("").start().await;
        cluster.sandbox().faults().inject(fault.resource(SigningRequest::RESOURCE));
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_be_decoded_verified_or_written_fail() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    let valid = pem(&[], "joe", &[]);
    let mut lines: Vec<&str> = valid.lines().collect();
    // The last line but one has the end of the signature.
    let changed: String = lines[lines.len() - 2].chars().rev().collect();
    let last = lines.len() - 2;
    lines[last] = &changed;
    let wrong = lines.join("\n") + "\n";
    let undecodable = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
    create_request(cluster.sandbox(), request("undecodable", API_CLIENT, "joe", undecodable));
    create_request(cluster.sandbox(), request("wrong", API_CLIENT, "joe", &wrong));
    for name in ["undecodable", "wrong"] {
        approve(cluster.sandbox(), name);
    }
    cluster
        .eventually("both have failed", |sandbox| {
            ["undecodable", "wrong"].iter().all(|name| failures(sandbox, name).len() == 1)
        })
        .await;
    let text = failures(cluster.sandbox(), "undecodable").concat();
    assert!(text.starts_with("SignerValidationFailure: unable to parse csr: "), "{text}");
    cluster.advance(Duration::from_hours(2)).await;
    assert_eq!(writes(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_ca_signs_soon_and_a_broken_one_does_not_stop_the_old_one() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("").allow_error("Cannot load a CA")).await;
    let sign = async |name: &str, issuer: &str| {
        create(cluster.sandbox(), name, KUBELET_CLIENT);
        approve(cluster.sandbox(), name);
        cluster.eventually("it is signed", |sandbox| is_issued_by(sandbox, name, issuer)).await;
    };
    sign("a", "first").await;
    std::fs::write(ca.path("crt"), authority("broken").0).unwrap();
    cluster.advance(Duration::from_secs(30)).await;
    sign("b", "first").await;
    ca.replace("second");
    cluster.advance(Duration::from_secs(6)).await;
    sign("c", "second").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_valid_ca_at_the_start_requests_wait_for_one() {
    let ca = Ca::new("first");
    std::fs::remove_file(ca.path("key")).unwrap();
    let cluster = start(ca.environment("").allow_error("Cannot load a CA")).await;
    create(cluster.sandbox(), "a", KUBELET_CLIENT);
    approve(cluster.sandbox(), "a");
    cluster.consistently("nothing", Duration::from_mins(5), |sandbox| !is_issued(sandbox, "a")).await;
    ca.replace("second");
    cluster.advance(Duration::from_secs(15)).await;
    assert!(is_issued_by(cluster.sandbox(), "a", "second"));
}

#[tokio::test(start_paused = true)]
async fn a_signer_without_its_own_files_does_nothing_if_another_has_some() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("kubelet-serving-")).await;
    for (name, signer) in [("client", KUBELET_CLIENT), ("serving", KUBELET_SERVING)] {
        create(cluster.sandbox(), name, signer);
        approve(cluster.sandbox(), name);
    }
    cluster.eventually("one is signed", |sandbox| is_issued_by(sandbox, "serving", "first")).await;
    cluster.advance(Duration::from_hours(1)).await;
    assert!(!is_issued(cluster.sandbox(), "client"));
}

#[tokio::test(start_paused = true)]
async fn without_files_it_does_nothing() {
    let cluster = TestEnvironment::new([DESCRIPTOR]).start().await;
    create(cluster.sandbox(), "a", KUBELET_CLIENT);
    approve(cluster.sandbox(), "a");
    cluster.advance(Duration::from_hours(1)).await;
    assert!(cluster.requests_of(ACCOUNT).is_empty() && !is_issued(cluster.sandbox(), "a"));
}

#[tokio::test(start_paused = true)]
async fn a_late_watch_signs_nothing_twice_and_a_deleted_request_is_no_error() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    create(cluster.sandbox(), "a", KUBELET_CLIENT);
    approve(cluster.sandbox(), "a");
    cluster.sandbox().faults().hold_watches(&SigningRequest::RESOURCE);
    cluster.advance(Duration::from_mins(1)).await;
    assert!(writes(&cluster) <= 1);
    cluster.sandbox().faults().release_watches(&SigningRequest::RESOURCE);
    cluster.eventually("it is signed", |sandbox| is_issued(sandbox, "a")).await;
    cluster.settle().await;
    assert_eq!(writes(&cluster), 1);
    create(cluster.sandbox(), "b", KUBELET_CLIENT);
    approve(cluster.sandbox(), "b");
    cluster.sandbox().delete(&SigningRequest::RESOURCE, &key("b")).unwrap();
    cluster.advance(Duration::from_mins(1)).await;
    assert!(get(cluster.sandbox(), "b").is_null());
}

#[tokio::test(start_paused = true)]
async fn d13_no_key_is_in_logs_metrics_explanations_or_requests() {
    let ca = Ca::new("first");
    let environment = ca.environment("").explain_memory(1 << 20).allow_error("Cannot load a CA");
    let cluster = start(environment).await;
    let (lines, _guard) = Lines::capture();
    life(&cluster).await;
    let private = std::fs::read_to_string(ca.path("key")).unwrap();
    let secret = private.lines().nth(1).unwrap();
    // A key under another label, and a certificate file that has a key.
    std::fs::write(ca.path("key"), private.replace("PRIVATE KEY", "MY PRIVATE KEY")).unwrap();
    cluster.advance(Duration::from_mins(1)).await;
    std::fs::write(ca.path("crt"), &private).unwrap();
    cluster.advance(Duration::from_mins(1)).await;
    let logged = lines.text();
    assert!(logged.contains("Cannot load a CA"), "the lines are captured: {logged}");
    assert!(!logged.contains(secret), "{logged}");
    assert!(!cluster.metrics().contains(secret));
    for name in ["client", "refused"] {
        let explained = cluster.handle().explain(DESCRIPTOR.name, &key(name)).expect("it is known");
        assert!(!format!("{explained:?}").contains(secret));
    }
    for body in cluster.bodies_of(ACCOUNT, "PUT") {
        assert!(!body.to_string().contains(secret));
    }
}
