//! The recognised requests, the pauses, and the written approval; the rows of upstream's `TestRecognizers`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::View as _;
use rcgen::SanType;
use serde_json::{Value, json};

use crate::certificatesigningrequest_approving::apply::review;
use crate::certificatesigningrequest_approving::plan::Purpose::{NodeClient, SelfNodeClient};
use crate::certificatesigningrequest_approving::plan::{Purpose, is_decided, pause, purposes};
use crate::shared::signing_request::{APPROVED, NewCondition, SigningRequest, decode_request, with_condition};
use crate::tests::signing_requests::{KUBELET_CLIENT, KUBELET_SERVING, certificate, dns, node_pem, pem, request};

/// Name, request, signer, requester, usages, purposes.
type Case<'a> = (&'a str, &'a str, &'a str, &'a str, Vec<&'a str>, &'a [Purpose]);

fn decode(object: &Value) -> SigningRequest {
    SigningRequest::decode(&object.to_string()).unwrap()
}

#[test]
fn a4_a5_recognized_requests() {
    const NODES: &[&str] = &["system:nodes"];
    const CN: &str = "system:node:foo";
    let usages = |extra: &[&'static str]| [&["digital signature", "client auth"], extra].concat();
    let names = |name: SanType| pem(NODES, CN, &[name]);
    let node = node_pem("foo");
    let ip = names(SanType::IpAddress("10.0.0.1".parse().unwrap()));
    let email = names(SanType::Rfc822Name("a@b".try_into().unwrap()));
    let uri = names(SanType::URI("http://a".try_into().unwrap()));
    let both = &[SelfNodeClient, NodeClient][..];
    let cases: [Case<'_>; 19] = [
        ("renews", &node, KUBELET_CLIENT, CN, usages(&[]), both),
        ("with key encipherment", &node, KUBELET_CLIENT, CN, usages(&["key encipherment"]), both),
        ("repeated usage", &node, KUBELET_CLIENT, CN, usages(&["client auth"]), both),
        ("another requester", &node, KUBELET_CLIENT, "joe", usages(&[]), &[NodeClient]),
        ("another node", &node_pem("bar"), KUBELET_CLIENT, CN, usages(&[]), &[NodeClient]),
        ("no node", &pem(NODES, "mike", &[]), KUBELET_CLIENT, "mike", usages(&[]), &[]),
        ("an empty rest", &pem(NODES, "system:node:", &[]), KUBELET_CLIENT, "joe", usages(&[]), &[NodeClient]),
        ("no organisation", &pem(&[], CN, &[]), KUBELET_CLIENT, CN, usages(&[]), &[]),
        ("another organisation", &pem(&["system:master"], CN, &[]), KUBELET_CLIENT, CN, usages(&[]), &[]),
        ("a DNS name", &names(dns("a")), KUBELET_CLIENT, CN, usages(&[]), &[]),
        ("an IP address", &ip, KUBELET_CLIENT, CN, usages(&[]), &[]),
        ("an e-mail address", &email, KUBELET_CLIENT, CN, usages(&[]), &[]),
        ("a URI", &uri, KUBELET_CLIENT, CN, usages(&[]), &[]),
        ("another usage", &node, KUBELET_CLIENT, CN, usages(&["server auth"]), &[]),
        ("a missing usage", &node, KUBELET_CLIENT, CN, vec!["client auth"], &[]),
        ("no usages", &node, KUBELET_CLIENT, CN, vec![], &[]),
        ("another signer", &node, "example.com/signer", CN, usages(&[]), &[]),
        ("the signer of serving certificates", &node, KUBELET_SERVING, CN, usages(&[]), &[]),
        ("no requester", &node, KUBELET_CLIENT, "", usages(&[]), &[NodeClient]),
    ];
    for (name, pem, signer, user, usages, expected) in cases {
        let decoded = decode_request(&decode(&request("a", signer, user, pem)).document).unwrap();
        assert_eq!(purposes(signer, user, &usages, &decoded), expected, "{name}");
    }
}

#[test]
fn a2_a_decision_of_any_status_counts() {
    let with = |status: Value| {
        let mut object = request("a", KUBELET_CLIENT, "joe", &node_pem("a"));
        object["status"] = status;
        is_decided(&decode(&object))
    };
    let condition = |type_: &str, status: &str| json!({ "conditions": [{ "type": type_, "status": status }] });
    let cases = [
        ("nothing", json!({}), false),
        ("approved", condition("Approved", "True"), true),
        ("t2: approved is false", condition("Approved", "False"), true),
        ("denied", condition("Denied", "True"), true),
        ("denied is unknown", condition("Denied", "Unknown"), true),
        ("failed", condition("Failed", "True"), false),
        ("issued", json!({ "certificate": certificate() }), true),
        ("an empty certificate", json!({ "certificate": "" }), false),
        ("no certificate", json!({ "certificate": null, "conditions": null }), false),
    ];
    for (name, status, expected) in cases {
        assert_eq!(with(status), expected, "{name}");
    }
}

#[test]
fn a3_requests_that_cannot_be_decoded() {
    let decode = |field: Value| {
        let mut object = request("a", KUBELET_CLIENT, "joe", "");
        object["spec"]["request"] = field;
        decode_request(&decode(&object).document).map(drop).map_err(|error| error.to_string())
    };
    let wrong_type = "unable to parse csr: PEM block type must be CERTIFICATE REQUEST".to_owned();
    assert_eq!(decode(certificate().into()), Err(wrong_type.clone()));
    assert_eq!(decode("".into()), Err(wrong_type));
    assert_eq!(decode("!".into()), Err("spec.request is missing or no base64".to_owned()));
    assert_eq!(decode(Value::Null), Err("spec.request is missing or no base64".to_owned()));
}

#[test]
fn a6_the_review_names_the_requester_and_the_subresource() {
    let mut object = request("a", KUBELET_CLIENT, "system:node:a", &node_pem("a"));
    object["spec"]["uid"] = "u".into();
    object["spec"]["extra"] = json!({ "k": ["v"] });
    let body = |object: &Value, purpose| -> Value {
        serde_json::from_str(review(&decode(object).document, purpose).json_str().unwrap()).unwrap()
    };
    let expected = |subresource: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:node:a",
                "uid": "u",
                "groups": ["system:authenticated"],
                "extra": { "k": ["v"] },
                "resourceAttributes": {
                    "group": "certificates.k8s.io",
                    "version": "*",
                    "resource": "certificatesigningrequests",
                    "subresource": subresource,
                    "verb": "create",
                },
            },
        })
    };
    assert_eq!(body(&object, SelfNodeClient), expected("selfnodeclient"));
    assert_eq!(body(&object, NodeClient), expected("nodeclient"));
}

#[test]
fn a7_the_approval_comes_last_and_has_no_times() {
    let mut object = request("a", KUBELET_CLIENT, "joe", &node_pem("a"));
    object["status"] = json!({ "conditions": [{ "type": "Other", "status": "True", "foreign": 1 }] });
    let message = SelfNodeClient.message();
    let condition = NewCondition::new(APPROVED, "AutoApproved", message, None);
    let written = with_condition(&decode(&object).document, &condition).unwrap();
    let written: Value = serde_json::from_str(written.as_str()).unwrap();
    let approved = json!({ "type": "Approved", "status": "True", "reason": "AutoApproved", "message": message });
    object["status"]["conditions"].as_array_mut().unwrap().push(approved);
    assert_eq!(written, object);
}

#[test]
fn a8_pauses_double() {
    let now: Timestamp = "2026-11-28T12:00:00Z".parse().unwrap();
    let after = |age: SignedDuration| pause(Some(now - age), now);
    let cases = [
        ("just created", SignedDuration::ZERO, Duration::from_millis(200)),
        ("created later, by another clock", SignedDuration::from_secs(-5), Duration::from_millis(200)),
        ("old", SignedDuration::from_secs(30), Duration::from_secs(30)),
        ("very old", SignedDuration::from_hours(30), Duration::from_secs(1000)),
    ];
    for (name, age, expected) in cases {
        assert_eq!(after(age), expected, "{name}");
    }
    assert_eq!(pause(None, now), Duration::from_secs(1000));
}
