//! Certificate signing requests and authorities.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_testing::sandbox::Sandbox;
use kcm_testing::sandbox::direct::DirectClient;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use crate::shared::signing_request::SigningRequest;

pub(crate) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(crate) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
pub(crate) const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// A request in PEM.
pub(crate) fn pem(organizations: &[&str], common_name: &str, names: &[SanType]) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // rcgen keeps one value of a type.
    if let [organization] = organizations {
        params.distinguished_name.push(DnType::OrganizationName, *organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.subject_alt_names = names.to_vec();
    let key = KeyPair::generate().unwrap();
    params.serialize_request(&key).unwrap().pem().unwrap()
}

/// The request of a node, in PEM.
pub(crate) fn node_pem(node: &str) -> String {
    pem(&["system:nodes"], &format!("system:node:{node}"), &[])
}

pub(crate) fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

/// A signing request of a user.
pub(crate) fn request(name: &str, signer: &str, user: &str, pem: &str) -> Value {
    let usage = if signer == KUBELET_SERVING { "server auth" } else { "client auth" };
    json!({
        "metadata": { "name": name },
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": signer,
            "usages": ["digital signature", usage],
            "username": user,
            "groups": ["system:authenticated"],
        },
    })
}

/// Creates the request of a node that it is named after.
pub(crate) fn create(sandbox: &Sandbox, name: &str, signer: &str) {
    let names: &[SanType] = if signer == KUBELET_SERVING { &[dns("a.example")] } else { &[] };
    let pem = pem(&["system:nodes"], &format!("system:node:{name}"), names);
    create_request(sandbox, request(name, signer, "system:bootstrap:abcdef", &pem));
}

pub(crate) fn create_request(sandbox: &Sandbox, request: Value) {
    sandbox.create(&SigningRequest::RESOURCE, request).expect("the request must be valid");
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(name.to_owned())
}

pub(crate) fn approve(sandbox: &Sandbox, name: &str) {
    decide(sandbox, name, "Approved");
}

pub(crate) fn deny(sandbox: &Sandbox, name: &str) {
    decide(sandbox, name, "Denied");
}

fn decide(sandbox: &Sandbox, name: &str, type_: &str) {
    let condition = json!({ "type": type_, "status": "True", "reason": "Test", "message": "by the test" });
    let change = json!({ "status": { "conditions": [condition] } });
    DirectClient::new(sandbox).merge(&SigningRequest::RESOURCE, &key(name), Some("approval"), &change).unwrap();
}

/// The request as it is now; null if it does not exist.
pub(crate) fn get(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&SigningRequest::RESOURCE, &key(name)).unwrap_or_default()
}

/// The reasons and messages of the conditions of a type.
pub(crate) fn conditions(sandbox: &Sandbox, name: &str, type_: &str) -> Vec<String> {
    let request = get(sandbox, name);
    let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |condition: &Value| {
        format!("{}: {}", condition["reason"].as_str().unwrap(), condition["message"].as_str().unwrap_or_default())
    };
    conditions.iter().filter(|condition| condition["type"] == type_).map(text).collect()
}

/// A certificate authority: certificate and key in PEM.
pub(crate) fn authority(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// A certificate that is valid for long, as the status has it.
pub(crate) fn certificate() -> String {
    STANDARD.encode(authority("a").0)
}

/// A certificate that has expired, as the status has it.
pub(crate) fn expired_certificate() -> String {
    let mut params = CertificateParams::default();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    STANDARD.encode(params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem())
}
