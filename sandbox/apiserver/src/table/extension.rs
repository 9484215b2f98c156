//! What extends the API: webhooks, policies and services behind it.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, integer, text};
use super::phrase::{self, UNSET, text_of};
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => WEBHOOKS,
        "validatingadmissionpolicies" => VALIDATING_POLICIES,
        "mutatingadmissionpolicies" => MUTATING_POLICIES,
        "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings" => POLICY_BINDINGS,
        "apiservices" => API_SERVICES,
        _ => PLAIN,
    }
}

const WEBHOOKS: Columns =
    &[NAME, integer("Webhooks", "How many webhooks there are.", |row| row.count("/webhooks")), AGE];

const VALIDATING_POLICIES: Columns =
    &[NAME, integer("Validations", "How many rules there are.", |row| row.count("/spec/validations")), PARAM_KIND, AGE];

const MUTATING_POLICIES: Columns =
    &[NAME, integer("Mutations", "How many rules there are.", |row| row.count("/spec/mutations")), PARAM_KIND, AGE];

const POLICY_BINDINGS: Columns = &[
    NAME,
    text("PolicyName", "The policy.", |row| row.text("/spec/policyName")),
    text("ParamRef", "The parameters.", parameters),
    AGE,
];

const API_SERVICES: Columns = &[
    NAME,
    text("Service", "The service behind the API.", |row| match row.at("/spec/service") {
        None => "Local".into(),
        Some(service) => format!("{}/{}", text_of(service, "namespace"), text_of(service, "name")).into(),
    }),
    text("Available", "Whether the service answers.", available),
    AGE,
];

const PARAM_KIND: Column = text("ParamKind", "The kind of the parameters.", |row| match row.at("/spec/paramKind") {
    None => UNSET.into(),
    Some(kind) => format!("{}/{}", text_of(kind, "apiVersion"), text_of(kind, "kind")).into(),
});

fn parameters(row: &Row<'_>) -> Value {
    let Some(parameters) = row.at("/spec/paramRef") else { return UNSET.into() };
    match (text_of(parameters, "namespace"), text_of(parameters, "name")) {
        (_, "") if parameters["selector"].is_object() => phrase::selector_or_none(parameters.get("selector")),
        (_, "") => UNSET.into(),
        // Whether the parameters have a namespace is not known here.
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}

fn available(row: &Row<'_>) -> Value {
    let Some(condition) = row.condition("Available") else { return "Unknown".into() };
    match (text_of(condition, "status"), text_of(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    }
}
