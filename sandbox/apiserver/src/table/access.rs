//! Roles, their bindings, and requests for certificates.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, text};
use super::duration::human_duration;
use super::phrase::{NONE, text_of};
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "rolebindings" | "clusterrolebindings" => ROLE_BINDINGS,
        "certificatesigningrequests" => CERTIFICATE_SIGNING_REQUESTS,
        _ => PLAIN,
    }
}

const ROLE_BINDINGS: Columns = &[
    NAME,
    text("Role", "The role that is granted.", |row| {
        let role = |field: &str| row.at("/roleRef").map_or("", |role| text_of(role, field));
        format!("{}/{}", role("kind"), role("name")).into()
    }),
    AGE,
    subjects("Users", "Users who have the role.", |row| names_of(row, "User")),
    subjects("Groups", "Groups who have the role.", |row| names_of(row, "Group")),
    subjects("ServiceAccounts", "Service accounts that have the role.", |row| names_of(row, "ServiceAccount")),
];

const fn subjects(name: &'static str, description: &'static str, cell: fn(&Row<'_>) -> Value) -> Column {
    text(name, description, cell).wide()
}

const CERTIFICATE_SIGNING_REQUESTS: Columns = &[
    NAME,
    AGE,
    text("SignerName", "Who is to sign.", |row| row.filled_or("/spec/signerName", NONE)),
    text("Requestor", "Who asked.", |row| row.text("/spec/username")),
    text("RequestedDuration", "How long the certificate should last.", |row| match row.at("/spec/expirationSeconds") {
        None => NONE.into(),
        Some(_) => human_duration(row.int("/spec/expirationSeconds")).into(),
    }),
    text("Condition", "How far the request is.", |row| certificate_state(row).into()),
];

fn names_of(row: &Row<'_>, kind: &str) -> Value {
    let name = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", text_of(subject, "namespace"), text_of(subject, "name")),
        _ => text_of(subject, "name").to_owned(),
    };
    let subjects = row.list("/subjects").iter().filter(|subject| subject["kind"] == *kind);
    subjects.map(name).collect::<Vec<_>>().join(", ").into()
}

/// The decision, and what came of it.
fn certificate_state(row: &Row<'_>) -> String {
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
