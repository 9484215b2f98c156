//! Extensions of the API: webhooks, policies and API services.

use serde_json::Value;

use super::phrase::{self, NONE, UNSET, text_of};
use super::row::Row;

pub(super) fn parameters(row: &Row<'_>) -> Value {
    let Some(parameters) = row.at("/spec/paramRef") else { return UNSET.into() };
    match (text_of(parameters, "namespace"), text_of(parameters, "name")) {
        (_, "") if parameters["selector"].is_object() => {
            phrase::selector(parameters.get("selector"), "<error>", NONE).into()
        }
        (_, "") => UNSET.into(),
        // Whether the parameters have a namespace is not known here.
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}

pub(super) fn available(row: &Row<'_>) -> Value {
    let Some(condition) = row.condition("Available") else { return "Unknown".into() };
    match (text_of(condition, "status"), text_of(condition, "reason")) {
        (status @ "True", _) | (status, "") => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    }
}
