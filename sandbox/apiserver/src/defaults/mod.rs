//! What the API server fills in. Pure.
//!
//! ```text
//! body ─▶ of_cluster ─▶ initial_state ─▶ apply: defaults, encoding ─▶ validation ─▶ allocate ─▶ stored
//!         (new objects) (new objects)    (carry_over: updates)                     (services)
//! ```
//!
//! # Upstream
//! `pkg/apis/*/v*/defaults.go`, `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry`, and the
//! admission plugins that change objects

mod batch;
mod cluster;
mod encoding;
mod hooks;
mod network;
mod pod;
mod scaling;
mod start;
mod storage;
mod workloads;

use serde_json::{Value, json};

pub(crate) use cluster::{allocate, of_cluster};
pub(crate) use start::{carry_over, initial_state};

use crate::json;
use crate::kinds::{Behaviour, Kind};
use crate::schema;

/// Fills in the fields that a client left out, and writes all fields as the typed API does.
pub(crate) fn apply(kind: &Kind, object: &mut Value) {
    if kind.is_custom() {
        return;
    }
    let resource = &kind.resource;
    match (&*resource.group, &*resource.plural) {
        ("", "pods") => {
            pod::whole(object);
            first_of_several(object, ["status", "podIP"], ["status", "podIPs"], |ip| json!({ "ip": ip }));
        }
        ("", "podtemplates") => pod::template(object.get_mut("template")),
        ("", "replicationcontrollers") => workloads::replication_controller(object),
        ("apps", "replicasets") => workloads::replica_set(object),
        ("apps", "deployments") => workloads::deployment(object),
        ("apps", "statefulsets") => workloads::stateful_set(object),
        ("apps", "daemonsets") => workloads::daemon_set(object),
        ("batch", "jobs") => {
            batch::job(object);
            batch::default_labels(object);
        }
        ("batch", "cronjobs") => batch::cron_job(object),
        ("", "services") => network::service(object),
        ("", "endpoints") => network::endpoints(object),
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice(object),
        ("networking.k8s.io", "networkpolicies") => network::policy(object),
        ("networking.k8s.io", "ingressclasses") => network::ingress_class(object),
        ("coordination.k8s.io", "leases") => {
            // These belong to a feature that is off.
            for field in ["strategy", "preferredHolder"] {
                json::set(object, &["spec", field], None);
            }
        }
        ("", "nodes") => {
            first_of_several(object, ["spec", "podCIDR"], ["spec", "podCIDRs"], Value::clone);
            if let Some(capacity) = json::at(object, &["status", "capacity"]).cloned() {
                json::set_default(object, &["status", "allocatable"], capacity);
            }
        }
        ("", "namespaces") => {
            let name = json::name(object).to_owned();
            json::set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], Some(name.into()));
        }
        ("", "secrets") => secret(object),
        ("", "limitranges") => limit_range(object),
        ("", "persistentvolumeclaims") => storage::claim(object),
        ("", "persistentvolumes") => storage::volume(object),
        ("storage.k8s.io", "storageclasses") => storage::class(object),
        ("storage.k8s.io", "csidrivers") => storage::csi_driver(object),
        ("autoscaling", "horizontalpodautoscalers") => scaling::autoscaler(object),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(object),
        ("scheduling.k8s.io", "priorityclasses") => {
            json::set_default(object, &["preemptionPolicy"], "PreemptLowerPriority");
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            json::set_default(object, &["spec", "usages"], vec!["digital signature", "key encipherment"]);
        }
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations" | "mutatingwebhookconfigurations") => {
            hooks::webhooks(object, &*resource.plural == "mutatingwebhookconfigurations");
        }
        ("admissionregistration.k8s.io", plural) => hooks::admission_policy(object, plural),
        _ => {}
    }
    let types = schema::types();
    if kind.behaviour != Behaviour::Review
        && let Some(of) = types.of_kind(&resource.group, &resource.version, &resource.kind)
    {
        encoding::write(types, of, object);
    }
}

/// A field that grew from one value to several: the one is always the first of them.
fn first_of_several(object: &mut Value, one: [&str; 2], several: [&str; 2], whole: impl Fn(&Value) -> Value) {
    let given = json::at(object, &one).filter(|value| **value != "").cloned();
    let first = json::list(object, &several).first().cloned();
    match (given, first) {
        (Some(given), first) if first.as_ref() != Some(&whole(&given)) => {
            json::set(object, &several, Some(vec![whole(&given)].into()));
        }
        (None, Some(first)) => {
            let plain = first.get("ip").cloned().unwrap_or(first);
            json::set(object, &one, Some(plain));
        }
        _ => {}
    }
}

/// `stringData` is only ever written.
fn secret(secret: &mut Value) {
    json::set_default(secret, &["type"], "Opaque");
    let Some(text) = secret.as_object_mut().and_then(|secret| secret.remove("stringData")) else { return };
    for (key, value) in text.as_object().into_iter().flatten() {
        let encoded = base64(value.as_str().unwrap_or_default().as_bytes());
        json::set(secret, &["data", key], Some(encoded.into()));
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = chunk.iter().enumerate().fold(0_u32, |all, (at, byte)| all | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = DIGITS.get((all >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'=');
            text.push(char::from(if at <= chunk.len() { digit } else { b'=' }));
        }
    }
    text
}

/// Limits of containers state by themselves what is asked for and what is allowed.
fn limit_range(range: &mut Value) {
    for item in items(range, &["spec", "limits"]) {
        if json::text(item, &["type"]) != Some("Container") {
            continue;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let known: Vec<(String, Value)> = json::at(item, &[from])
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(resource, amount)| (resource.clone(), amount.clone()))
                .collect();
            for (resource, amount) in known {
                json::set_default(item, &[to, &resource], amount);
            }
        }
    }
}

fn binding(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    default_text(binding, &["roleRef", "apiGroup"], GROUP);
    for subject in items(binding, &["subjects"]) {
        if matches!(json::text(subject, &["kind"]), Some("User" | "Group")) {
            default_text(subject, &["apiGroup"], GROUP);
        }
    }
}

/// The items of a list at `path`.
fn items<'a>(object: &'a mut Value, path: &[&str]) -> impl Iterator<Item = &'a mut Value> {
    let list = path.iter().try_fold(object, |value, field| value.get_mut(*field));
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets a text where it is absent or empty, which the typed API does not tell apart.
fn default_text(object: &mut Value, path: &[&str], text: &str) {
    if json::text(object, path).is_none_or(str::is_empty) && json::at(object, path).is_none_or(Value::is_string) {
        json::set(object, path, Some(text.into()));
    }
}

/// Sets a number where it is absent or 0.
fn default_number(object: &mut Value, path: &[&str], number: i64) {
    if json::at(object, path).is_none_or(|given| given == 0) {
        json::set(object, path, Some(number.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_base_64() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("ä", "w6Q=")] {
            assert_eq!(base64(bytes.as_bytes()), expected, "{bytes}");
        }
    }
}
