//! Config maps and secrets.
//!
//! # Upstream
//! `ValidateConfigMap` and `ValidateSecret` of `pkg/apis/core/validation`

use serde_json::Value;

use super::field_path::{Errors, FieldPath, immutable};
use super::names;
use crate::json::at;
use crate::status::FieldError;

/// The most bytes that all values together may have.
const LIMIT: usize = 1024 * 1024;

pub(super) fn map(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        value.refuse(key, names::config_key, errors);
        if binary.key(key).is_given() {
            errors.push(value.refused(key, "duplicate of key present in binaryData"));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        value.refuse(key, names::config_key, errors);
        size += decoded_length(value.text());
    }
    if size > LIMIT {
        errors.push(FieldError::too_long("[]", LIMIT));
    }
}

/// The decoded length of a base64 string.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

pub(super) fn secret(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let data = object.get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        value.refuse(key, names::config_key, errors);
        size += decoded_length(value.text());
    }
    if size > LIMIT {
        errors.push(FieldError::too_long(data.to_string(), LIMIT));
    }
    let required: &[&str] = match object.get("type").text() {
        "kubernetes.io/service-account-token" => {
            let annotations = object.get("metadata.annotations");
            annotations.key("kubernetes.io/service-account.name").must_be_set("", errors);
            &[]
        }
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if data.key("username").is_absent() && data.key("password").is_absent() => {
            &["username", "password"]
        }
        _ => &[],
    };
    for key in required {
        if data.key(key).is_absent() {
            errors.push(data.key(key).required(""));
        }
    }
}

const FIXED: &str = "field is immutable when `immutable` is set";

/// Refuses changes of immutable config maps and secrets.
pub(super) fn change(old: &Value, new: &Value, errors: &mut Errors) {
    if old.get("type").is_some() {
        immutable(old, new, "type", errors);
    }
    if at(old, &["immutable"]) != Some(&Value::Bool(true)) {
        return;
    }
    let root = FieldPath::root(new);
    if !root.get("immutable").is_true() {
        errors.push(root.get("immutable").forbidden(FIXED));
    }
    for field in ["data", "binaryData"] {
        if old.get(field) != new.get(field) {
            errors.push(root.get(field).forbidden(FIXED));
        }
    }
}
