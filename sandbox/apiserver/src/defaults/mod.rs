//! Defaults, and the state of new and updated objects. Pure.
//!
//! Constant defaults are rows of `data/defaults.txt`; what depends on other fields or objects is computed here.
//!
//! ```text
//! body ─▶ of_cluster ─▶ initial_state ─▶ apply: defaults, encoding ─▶ validation ─▶ allocate ─▶ stored
//!         (new objects) (new objects)    (carry_over: updates)                     (services)
//! ```
//!
//! # Upstream
//! `pkg/apis/*/v*/defaults.go`, `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry`, and the
//! admission plugins that change objects

mod allocation;
mod batch;
mod cluster;
mod devices;
mod encoding;
mod network;
mod pod;
mod rows;
mod start;
mod workloads;

use serde_json::Value;

pub(crate) use allocation::Allocations;
pub(crate) use cluster::of_cluster;
pub(crate) use devices::stamp as stamp_device_taints;
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
    rows::apply(&resource.to_string(), object);
    let types = schema::types();
    if kind.behaviour != Behaviour::Review
        && let Some(of) = types.of_kind(&resource.group, &resource.version, &resource.kind)
    {
        encoding::write(types, of, object);
    }
}

/// Defaults of an object, or of a part of one, that depend on its other fields; they come before constant ones.
fn computed(block: &str) -> Option<fn(&mut Value)> {
    Some(match block {
        "pods" => pod::whole,
        "pod-spec" => pod::spec,
        "container" => pod::container,
        "pod-volume" => pod::volume,
        "replicationcontrollers" => workloads::replication_controller,
        "jobs.batch" => batch::job,
        "services" => network::service,
        "networkpolicies.networking.k8s.io" => network::policy,
        "leases.coordination.k8s.io" => lease,
        "nodes" => node,
        "namespaces" => namespace,
        "secrets" => secret,
        "limitranges" => limit_range,
        "claim-spec" => claim_spec,
        _ => return None,
    })
}

/// Removes the fields of a feature that is off.
fn lease(lease: &mut Value) {
    for field in ["strategy", "preferredHolder"] {
        json::set(lease, &["spec", field], None);
    }
}

fn node(node: &mut Value) {
    first_of_several(node, ["spec", "podCIDR"], ["spec", "podCIDRs"], Value::clone);
    if let Some(capacity) = json::at(node, &["status", "capacity"]).cloned() {
        json::set_default(node, &["status", "allocatable"], capacity);
    }
}

fn namespace(namespace: &mut Value) {
    let name = json::name(namespace).to_owned();
    json::set(namespace, &["metadata", "labels", "kubernetes.io/metadata.name"], Some(name.into()));
}

/// The spec of a persistent volume claim.
fn claim_spec(spec: &mut Value) {
    // The two fields are equal; one is copied to the other.
    let (from, to) = if json::at(spec, &["dataSource"]).is_some() {
        ("dataSource", "dataSourceRef")
    } else {
        ("dataSourceRef", "dataSource")
    };
    let is_local = |source: &Value| source.get("namespace").is_none();
    if json::at(spec, &[to]).is_none()
        && let Some(source) = json::at(spec, &[from]).filter(|source| is_local(source)).cloned()
    {
        json::set(spec, &[to], Some(source));
    }
}

/// Keeps a singular field equal to the first item of its plural form.
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

/// The items of a list at `path`.
fn items<'a>(object: &'a mut Value, path: &[&str]) -> impl Iterator<Item = &'a mut Value> {
    let list = path.iter().try_fold(object, |value, field| value.get_mut(*field));
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets a string that is absent or empty, which the typed API does not distinguish.
fn default_text(object: &mut Value, path: &[&str], text: &str) {
    if json::text(object, path).is_none_or(str::is_empty) && json::at(object, path).is_none_or(Value::is_string) {
        json::set(object, path, Some(text.into()));
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
