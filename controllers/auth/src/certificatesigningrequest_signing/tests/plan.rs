//! The requests that are signed, the rules of signers and the pairs of files.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice::from_ref;

use jiff::SignedDuration;
use kcm_framework::api::View as _;
use kcm_framework::config::GoDuration;
use rcgen::SanType;
use serde_json::{Value, json};

use crate::certificatesigningrequest_signing::plan::{Plan, SkipReason, plan};
use crate::certificatesigningrequest_signing::settings::{Files, lifetime};
use crate::certificatesigningrequest_signing::signer::Signer;
use crate::shared::signing_request::{SigningRequest, decode_request, with_certificate};
use crate::tests::signing_requests::{KUBELET_CLIENT, certificate, dns, node_pem, pem, request};

fn decode(object: &Value) -> SigningRequest {
    SigningRequest::decode(&object.to_string()).unwrap()
}

#[test]
fn g5_g6_requests_that_are_due() {
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status });
    let conditions = |all: &[Value]| json!({ "conditions": all });
    let approved = condition("Approved", "True");
    let signers = (Signer::KubeletClient, Signer::ApiClient);
    let skip = Plan::Skip;
    let cases = [
        ("approved", signers.0, conditions(from_ref(&approved)), Plan::Sign),
        ("t2: approved is false", signers.0, conditions(&[condition("Approved", "False")]), Plan::Sign),
        ("not approved", signers.0, json!({}), skip(SkipReason::NotApproved)),
        ("denied", signers.0, conditions(&[approved.clone(), condition("Denied", "False")]), skip(SkipReason::Denied)),
        ("failed", signers.0, conditions(&[approved.clone(), condition("Failed", "True")]), skip(SkipReason::Failed)),
        (
            "failed, of an old version",
            signers.0,
            conditions(&[approved.clone(), json!({ "type": "Failed" })]),
            skip(SkipReason::Failed),
        ),
        ("failed is false", signers.0, conditions(&[approved.clone(), condition("Failed", "False")]), Plan::Sign),
        (
            "issued",
            signers.0,
            json!({ "certificate": certificate(), "conditions": [approved.clone()] }),
            skip(SkipReason::Issued),
        ),
        ("another signer", signers.1, conditions(&[approved]), skip(SkipReason::OtherSigner)),
    ];
    for (name, signer, status, expected) in cases {
        let mut object = request("a", KUBELET_CLIENT, "joe", "");
        object["status"] = status;
        assert_eq!(plan(&decode(&object), signer), expected, "{name}");
    }
}

/// Name, signer, request, usages, violation.
type Case<'a> = (&'a str, Signer, String, Vec<&'a str>, &'a str);

#[test]
fn g8_rules_of_signers() {
    const NODES: &[&str] = &["system:nodes"];
    const CN: &str = "system:node:a";
    let client = || vec!["digital signature", "key encipherment", "client auth"];
    let server = || vec!["digital signature", "key encipherment", "server auth"];
    let serving = |names: &[SanType]| pem(NODES, CN, names);
    let email = SanType::Rfc822Name("a@b".try_into().unwrap());
    let uri = SanType::URI("http://a".try_into().unwrap());
    let ip = SanType::IpAddress("10.0.0.1".parse().unwrap());
    let (s, c, a, l) = (Signer::KubeletServing, Signer::KubeletClient, Signer::ApiClient, Signer::LegacyUnknown);
    let free = pem(&["system:masters"], "joe", from_ref(&email));
    let organization = "subject organization is not system:nodes";
    let server_usages = "usages did not match [digital signature key encipherment server auth]";
    let client_usages = "usages did not match [client auth digital signature key encipherment]";
    let prefix = "subject common name does not begin with system:node:";
    let cases: [Case<'_>; 26] = [
        ("serving", s, serving(&[dns("a")]), server(), ""),
        ("serving of an address", s, serving(from_ref(&ip)), vec!["server auth", "digital signature"], ""),
        ("serving of another organisation", s, pem(&["x"], CN, &[dns("a")]), server(), organization),
        ("serving without a name", s, serving(&[]), server(), "DNS or IP subjectAltName is required"),
        (
            "serving of an e-mail address only",
            s,
            serving(from_ref(&email)),
            server(),
            "DNS or IP subjectAltName is required",
        ),
        (
            "serving with an e-mail address",
            s,
            serving(&[dns("a"), email.clone()]),
            server(),
            "Email subjectAltNames are not allowed",
        ),
        ("serving with a URI", s, serving(&[dns("a"), uri.clone()]), server(), "URI subjectAltNames are not allowed"),
        ("serving with other usages", s, serving(&[dns("a")]), client(), server_usages),
        ("serving with too few usages", s, serving(&[dns("a")]), vec!["server auth"], server_usages),
        ("serving of no node", s, pem(NODES, "joe", &[dns("a")]), server(), prefix),
        ("serving of no node with other usages", s, pem(NODES, "joe", &[dns("a")]), client(), server_usages),
        ("client", c, node_pem("a"), client(), ""),
        ("client without key encipherment", c, node_pem("a"), vec!["digital signature", "client auth"], ""),
        ("client of another organisation", c, pem(&["x"], CN, &[]), client(), organization),
        ("client with a DNS name", c, serving(&[dns("a")]), client(), "DNS subjectAltNames are not allowed"),
        (
            "client with an e-mail address",
            c,
            serving(from_ref(&email)),
            client(),
            "Email subjectAltNames are not allowed",
        ),
        ("client with an IP address", c, serving(&[ip]), client(), "IP subjectAltNames are not allowed"),
        ("client with a URI", c, serving(&[uri]), client(), "URI subjectAltNames are not allowed"),
        ("client of no node", c, pem(NODES, "joe", &[]), server(), prefix),
        ("client with other usages", c, node_pem("a"), server(), client_usages),
        ("client of the API server", a, free.clone(), client(), ""),
        ("client of the API server with one usage", a, free.clone(), vec!["client auth"], ""),
        (
            "server at the API server",
            a,
            free.clone(),
            vec!["client auth", "server auth"],
            "invalid usage for client certificate: server auth",
        ),
        (
            "signature only",
            a,
            free.clone(),
            vec!["digital signature"],
            "missing required usage for client certificate: client auth",
        ),
        ("no usages", a, free.clone(), vec![], "missing required usage for client certificate: client auth"),
        ("legacy", l, free, vec!["any"], ""),
    ];
    for (name, signer, pem, usages, expected) in cases {
        let decoded = decode_request(&decode(&request("a", signer.name(), "joe", &pem)).document).unwrap();
        let violation = signer.validate(&decoded, &usages).err().map(|violation| violation.to_string());
        assert_eq!(violation.unwrap_or_default(), expected, "{name}");
    }
}

#[test]
fn g1_g2_pairs_of_files() {
    let pair = |certificate: &str, key: &str| [certificate.to_owned(), key.to_owned()];
    let files = |common, of_signers: &[(Signer, [String; 2])]| {
        let files = Files { common, of_signers: of_signers.iter().cloned().collect() };
        let name = |path: &Path| path.display().to_string();
        let pairs = files.pairs().into_iter();
        pairs.map(|(signer, pair)| (signer, [name(&pair.certificate), name(&pair.key)])).collect::<BTreeMap<_, _>>()
    };
    let none = || pair("", "");
    let all = Signer::ALL.map(|signer| (signer, pair("/c", "/k")));
    let one = [(Signer::KubeletClient, pair("/c", "/k"))];
    assert_eq!(files(none(), &[]), BTreeMap::new(), "nothing is set");
    assert_eq!(files(pair("/c", ""), &[]), BTreeMap::new(), "half of the common pair");
    assert_eq!(files(pair("", "/k"), &[]), BTreeMap::new(), "the other half of the common pair");
    assert_eq!(files(pair("/c", "/k"), &[]), all.clone().into(), "the common pair");
    assert_eq!(files(pair("/x", "/y"), &one), one.clone().into(), "a signer with its own pair");
    assert_eq!(files(none(), &all), all.clone().into(), "all with their own");
    let half = [(Signer::KubeletClient, pair("/c", ""))];
    assert_eq!(files(pair("/x", "/y"), &half), BTreeMap::new(), "half of a signer's pair");
}

#[test]
fn a_lifetime_of_zero_is_the_default() {
    assert_eq!(lifetime(GoDuration::from_secs(0)).unwrap(), SignedDuration::from_hours(8760));
    assert_eq!(lifetime(GoDuration::from_secs(60)).unwrap(), SignedDuration::from_mins(1));
}

#[test]
fn the_certificate_leaves_the_conditions_as_they_are() {
    let mut object = request("a", KUBELET_CLIENT, "joe", "");
    object["status"] = json!({ "conditions": [{ "type": "Approved", "status": "True", "foreign": 1 }] });
    let written = with_certificate(&decode(&object).document, "PEM").unwrap();
    object["status"]["certificate"] = "UEVN".into();
    assert_eq!(serde_json::from_str::<Value>(written.as_str()).unwrap(), object);
}
