//! Fields that a write preserves: the status on the main path, everything else on the status path. Pure.
//!
//! # Upstream
//! `PrepareForUpdate` of the strategies in `pkg/registry`

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::defaults::stamp_device_taints;
use crate::json::{self, at, carry_over, text};
use crate::kinds::Kind;
use crate::request::Now;

/// Metadata fields that a client can set.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Kinds whose status strategy ignores all metadata of the client.
const METADATA_KEPT: [&str; 11] = [
    "devicetaintrules",
    "flowschemas",
    "podcertificaterequests",
    "podgroups",
    "prioritylevelconfigurations",
    "resourceclaims",
    "resourcepoolstatusrequests",
    "servicecidrs",
    "storageversionmigrations",
    "storageversions",
    "volumeattachments",
];

/// Copies the fields from the old object that this write preserves.
pub(crate) fn unreached(kind: &Kind, subresource: Option<&str>, old: &Value, new: &mut Value, now: Now) {
    if kind.is_custom() {
        custom(kind, subresource, old, new);
        return;
    }
    let resource = &kind.resource;
    match (&*resource.group, &*resource.plural, subresource) {
        ("", "namespaces", None) => carry(old, new, &[&["status"], &["spec", "finalizers"]]),
        ("", "namespaces", Some("finalize")) => carry(old, new, &[&["status"]]),
        ("", "pods", Some("status")) => pod_status(old, new),
        ("", "pods", Some("ephemeralcontainers")) => ephemeral_containers(old, new),
        ("", "pods", Some("resize")) => resize(old, new),
        ("", "persistentvolumes", Some("status")) => volume_status(old, new, now),
        ("apps", "deployments", Some("status")) => carry(old, new, &[&["spec"], &["metadata", "labels"]]),
        ("certificates.k8s.io", "certificatesigningrequests", None) => carry(old, new, &[&["spec"], &["status"]]),
        ("certificates.k8s.io", "certificatesigningrequests", Some("status")) => {
            carry(old, new, &[&["spec"]]);
            keep_decisions(old, new);
            stamp_conditions(old, new, now);
        }
        ("certificates.k8s.io", "certificatesigningrequests", Some(_)) => {
            let conditions = at(new, &["status", "conditions"]).cloned();
            carry(old, new, &[&["spec"], &["status"]]);
            json::set(new, &["status", "conditions"], conditions);
            stamp_conditions(old, new, now);
        }
        ("apiregistration.k8s.io", "apiservices", Some("status")) => {
            carry(old, new, &[&["spec"]]);
            metadata(old, new);
        }
        (_, plural, Some("status")) => {
            carry(old, new, &[&["spec"]]);
            if METADATA_KEPT.contains(&plural) || plural.ends_with("admissionpolicies") {
                metadata(old, new);
            }
        }
        ("resource.k8s.io", "devicetaintrules" | "resourceslices", None) => {
            if kind.status {
                carry(old, new, &[&["status"]]);
            }
            stamp_device_taints(kind, Some(old), new, &now.stamp(0));
        }
        (_, _, None | Some(_)) if kind.status => carry(old, new, &[&["status"]]),
        (_, _, None | Some(_)) => {}
    }
}

fn carry(old: &Value, new: &mut Value, paths: &[&[&str]]) {
    for path in paths {
        carry_over(old, new, path);
    }
}

fn metadata(old: &Value, new: &mut Value) {
    for field in METADATA {
        carry_over(old, new, &["metadata", field]);
    }
}

fn custom(kind: &Kind, subresource: Option<&str>, old: &Value, new: &mut Value) {
    if subresource == Some("status") {
        let status = new.get("status").cloned();
        let version = at(new, &["metadata", "resourceVersion"]).cloned();
        *new = old.clone();
        json::set(new, &["status"], status);
        json::set(new, &["metadata", "resourceVersion"], version);
    } else if kind.status && subresource.is_none() {
        carry_over(old, new, &["status"]);
    }
}

fn pod_status(old: &Value, new: &mut Value) {
    carry(old, new, &[&["spec"], &["metadata", "ownerReferences"]]);
    json::set(new, &["metadata", "deletionTimestamp"], None);
    if text(new, &["status", "qosClass"]).unwrap_or_default().is_empty() {
        carry_over(old, new, &["status", "qosClass"]);
    }
    if at(new, &["status", "observedGeneration"]).is_none_or(|generation| *generation == 0) {
        carry_over(old, new, &["status", "observedGeneration"]);
    }
}

fn ephemeral_containers(old: &Value, new: &mut Value) {
    let containers = at(new, &["spec", "ephemeralContainers"]).cloned();
    carry(old, new, &[&["spec"], &["status"]]);
    metadata(old, new);
    json::set(new, &["spec", "ephemeralContainers"], containers);
}

/// Preserves everything except container resources and resize policies.
fn resize(old: &Value, new: &mut Value) {
    let sized: Vec<(&str, Vec<Value>)> = ["containers", "initContainers"]
        .into_iter()
        .map(|list| {
            let (old, new) = (json::list(old, &["spec", list]), json::list(new, &["spec", list]));
            let same = old.len() == new.len()
                && old.iter().zip(new).all(|(old, new)| text(old, &["name"]) == text(new, &["name"]));
            // Validation rejects another set of containers.
            if !same {
                return (list, new.to_vec());
            }
            let mut sized = old.to_vec();
            for (sized, new) in sized.iter_mut().zip(new) {
                carry(new, sized, &[&["resources"], &["resizePolicy"]]);
            }
            (list, sized)
        })
        .collect();
    let resources = at(new, &["spec", "resources"]).cloned();
    carry(old, new, &[&["spec"], &["status"]]);
    metadata(old, new);
    json::set(new, &["spec", "resources"], resources);
    for (list, containers) in sized {
        json::set(new, &["spec", list], (!containers.is_empty()).then(|| containers.into()));
    }
}

fn volume_status(old: &Value, new: &mut Value, now: Now) {
    carry_over(old, new, &["spec"]);
    let (phase, time) = (["status", "phase"], ["status", "lastPhaseTransitionTime"]);
    let (changed, given) = (at(old, &phase) != at(new, &phase), at(new, &time));
    if changed && (given.is_none() || given == at(old, &time)) {
        json::set(new, &time, Some(now.stamp(0).into()));
    } else if !changed && given.is_none() {
        carry_over(old, new, &time);
    }
}

/// Preserves the approval conditions: a signer does not decide on approval.
fn keep_decisions(old: &Value, new: &mut Value) {
    let conditions = ["status", "conditions"];
    for decision in ["Approved", "Denied"] {
        let is_decision = |condition: &&Value| text(condition, &["type"]) == Some(decision);
        let mut kept = json::list(old, &conditions).iter().filter(is_decision).cloned();
        let mut merged = json::list(new, &conditions).to_vec();
        merged.retain_mut(|condition| {
            if text(condition, &["type"]) != Some(decision) {
                return true;
            }
            // Decisions cannot be added or changed here.
            kept.next().map(|known| *condition = known).is_some()
        });
        json::set(new, &conditions, (!merged.is_empty()).then(|| merged.into()));
    }
}

fn stamp_conditions(old: &Value, new: &mut Value, now: Now) {
    let known: BTreeMap<&str, &Value> = json::list(old, &["status", "conditions"])
        .iter()
        .rev()
        .filter_map(|condition| Some((text(condition, &["type"])?, condition)))
        .collect();
    let conditions = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let before = text(condition, &["type"]).and_then(|kind| known.get(kind));
        json::set_default(condition, &["lastUpdateTime"], now.stamp(0));
        if at(condition, &["lastTransitionTime"]).is_none() {
            let same = before.filter(|before| before.get("status") == condition.get("status"));
            let since = same.and_then(|before| at(before, &["lastTransitionTime"]).cloned());
            json::set(condition, &["lastTransitionTime"], Some(since.unwrap_or_else(|| json!(now.stamp(0)))));
        }
    }
}
