//! Nodes, quotas, storage, and what authorizes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::phrase::{self, or, text_of};
use super::row::Row;

const UNKNOWN: &str = "<unknown>";

pub(super) fn node_status(row: &Row<'_>) -> String {
    let ready = match row.condition("Ready") {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let cordoned = if row.flag("/spec/unschedulable") == Some(true) { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}")
}

/// The roles in the labels of a node, in either form.
pub(super) fn node_roles(row: &Row<'_>) -> String {
    let labels = row.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str()?,
            None => return None,
        };
        (!role.is_empty()).then(|| role.to_owned())
    };
    let roles: BTreeSet<String> = labels.filter_map(role).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn kernel(row: &Row<'_>) -> Value {
    let kernel = or(row.text("/status/nodeInfo/kernelVersion"), UNKNOWN);
    match row.str("/status/nodeInfo/architecture") {
        None | Some("") => kernel.into(),
        Some(architecture) => format!("{kernel} ({architecture})").into(),
    }
}

/// The used and hard amounts of a quota, of limits or of all other resources.
pub(super) fn quota(row: &Row<'_>, limits: bool) -> String {
    let hard = row.at("/status/hard");
    let mut names: Vec<&String> = hard.and_then(Value::as_object).into_iter().flat_map(|hard| hard.keys()).collect();
    names.sort_unstable();
    let piece = |name: &String| {
        let used = phrase::amount(row.at("/status/used"), name);
        format!("{name}: {used}/{}", phrase::amount(hard, name))
    };
    let pieces = names.into_iter().filter(|name| name.starts_with("limits.") == limits).map(piece);
    pieces.collect::<Vec<_>>().join(", ")
}

/// The phase, or that the object is being deleted.
pub(super) fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_terminating() { "Terminating" } else { row.text("/status/phase") }
}

pub(super) fn access_modes(modes: &[Value]) -> String {
    let short =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let given = short.into_iter().filter(|(mode, _)| modes.iter().any(|given| given == mode));
    given.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

pub(super) fn resource_claim_state(row: &Row<'_>) -> &'static str {
    let is_reserved = !row.list("/status/reservedFor").is_empty();
    match (row.is_terminating(), row.at("/status/allocation").is_some(), is_reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}

pub(super) fn subjects(row: &Row<'_>, kind: &str) -> Value {
    let name = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", text_of(subject, "namespace"), text_of(subject, "name")),
        _ => text_of(subject, "name").to_owned(),
    };
    let subjects = row.list("/subjects").iter().filter(|subject| subject["kind"] == *kind);
    subjects.map(name).collect::<Vec<_>>().join(", ").into()
}

/// The decision, and whether it failed or a certificate was issued.
pub(super) fn certificate_state(row: &Row<'_>) -> String {
    let has = |kind: &str| row.condition(kind).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let is_issued = row.str("/status/certificate").is_some_and(|certificate| !certificate.is_empty());
    let issued = if is_issued { ",Issued" } else { "" };
    format!("{decision}{failed}{issued}")
}
