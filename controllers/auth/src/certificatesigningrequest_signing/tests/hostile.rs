//! Requests of any subject, and requests that are made to do harm: each ends in a certificate or a condition.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcm_framework::api::KnownView as _;
use kcm_testing::sandbox::{Fault, Sandbox, Status, Verb};
use rcgen::SanType;

use super::apply::{Ca, failures, is_issued, start, writes};
use crate::shared::signing_request::SigningRequest;
use crate::tests::signing_requests::{API_CLIENT, approve, create_request, dns, pem, request};

const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// A request in PEM with any bytes in it.
fn pem_of(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
}

#[tokio::test(start_paused = true)]
async fn legacy_unknown_signs_any_subject_and_usage_once_it_is_approved() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    let of_anybody = pem(&["system:masters"], "joe", &[dns("a.example")]);
    let mut wanted = request("legacy", LEGACY, "joe", &of_anybody);
    wanted["spec"]["usages"] = serde_json::json!(["server auth", "client auth", "key encipherment"]);
    create_request(cluster.sandbox(), wanted);
    create_request(cluster.sandbox(), request("pending", LEGACY, "joe", &of_anybody));
    approve(cluster.sandbox(), "legacy");
    cluster.eventually("it is issued", |sandbox| is_issued(sandbox, "legacy")).await;
    cluster.advance(Duration::from_hours(2)).await;
    assert!(!is_issued(cluster.sandbox(), "pending"));
    assert_eq!(writes(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn d2_a_certificate_that_is_too_large_for_the_api_server_fails_its_request() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    let too_large = Status::new(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
    let once = Fault::on(Verb::Update).resource(SigningRequest::RESOURCE).times(1).fail(too_large);
    drop(cluster.sandbox().faults().inject(once));
    create_request(cluster.sandbox(), request("large", LEGACY, "joe", &pem(&[], "joe", &[])));
    approve(cluster.sandbox(), "large");
    let expected = ["SignerValidationFailure: the certificate is too large for the API server"];
    cluster.eventually("it has failed", |sandbox| failures(sandbox, "large") == expected).await;
    cluster.advance(Duration::from_hours(2)).await;
    assert!(!is_issued(cluster.sandbox(), "large"));
    assert_eq!(writes(&cluster), 2);
}

#[tokio::test(start_paused = true)]
async fn d14_hostile_requests_end_in_a_condition() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    let valid = STANDARD
        .decode(pem(&[], "joe", &[]).lines().filter(|line| !line.starts_with('-')).collect::<String>())
        .unwrap();
    // Each level claims a length that the level before does not have.
    let deep: Vec<u8> = [0x30, 0x83, 0x0f, 0xff, 0xff].repeat(200_000);
    let mut longer = valid.clone();
    longer.extend(vec![0; 1_000_000]);
    let cases = [
        // The API server refuses what is no PEM.
        ("deep", pem_of(&deep)),
        ("indefinite", pem_of(&[0x30_u8, 0x80].repeat(400_000))),
        ("length-of-eight-bytes", pem_of(&[0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
        ("trailing", pem_of(&longer)),
        ("half", pem_of(&valid[..valid.len() / 2])),
    ];
    for (name, pem) in &cases {
        create_request(cluster.sandbox(), request(name, API_CLIENT, "joe", pem));
        approve(cluster.sandbox(), name);
    }
    for (name, _) in &cases {
        cluster.eventually(name, |sandbox| failures(sandbox, name).len() == 1).await;
    }
    cluster.advance(Duration::from_hours(2)).await;
    assert_eq!(writes(&cluster), cases.len());
}

#[tokio::test(start_paused = true)]
async fn d14_a_request_with_as_many_names_as_fit_is_signed_or_fails() {
    let ca = Ca::new("first");
    let cluster = start(ca.environment("")).await;
    let names: Vec<SanType> = vec![dns("a"); 200_000];
    create_request(cluster.sandbox(), request("many", LEGACY, "joe", &pem(&[], "joe", &names)));
    approve(cluster.sandbox(), "many");
    let is_decided = |sandbox: &Sandbox| is_issued(sandbox, "many") || failures(sandbox, "many").len() == 1;
    cluster.eventually("it is decided", is_decided).await;
    cluster.advance(Duration::from_hours(2)).await;
    assert!(writes(&cluster) <= 2);
}
