//! Token, self-subject and access reviews. Pure; they are never stored.
//!
//! The bearer of the token is an administrator, so everything is allowed. Anonymous users may do nothing.
//!
//! # Upstream
//! `pkg/registry/{authentication,authorization}`

use serde_json::{Value, json};

use crate::json::{self, at, list, text};
use crate::kinds::Kind;
use crate::request::Now;
use crate::status::{FieldError, Status};

/// The user of every request.
const USER: &str = "sandbox-admin";
const ANONYMOUS: &str = "system:anonymous";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

pub(crate) fn answer(kind: &Kind, namespace: Option<&str>, review: &Value, now: Now) -> Result<Value, Status> {
    let spec = at(review, &["spec"]).cloned().unwrap_or_else(|| json!({}));
    let (metadata, spec, status) = match &*kind.resource.kind {
        "SelfSubjectReview" => {
            let status = json!({ "userInfo": { "username": USER, "groups": GROUPS } });
            (json!({ "creationTimestamp": now.stamp(0) }), None, status)
        }
        "TokenReview" => {
            if text(&spec, &["token"]).unwrap_or_default().is_empty() {
                return Err(Status::bad_request("token is required for TokenReview in authentication"));
            }
            // The request's own token is checked before; other tokens are unknown.
            (json!({}), Some(spec), json!({ "user": {}, "error": "invalid bearer token" }))
        }
        "SelfSubjectRulesReview" => {
            if text(&spec, &["namespace"]).unwrap_or_default().is_empty() {
                return Err(Status::bad_request("no namespace on request"));
            }
            (json!({}), Some(json!({})), rules())
        }
        name => {
            let errors = check_access(name, namespace, review, &spec);
            if !errors.is_empty() {
                return Err(Status::invalid(&kind.resource.group, "", "", &errors));
            }
            let mut metadata = json!({});
            json::set(&mut metadata, &["namespace"], namespace.map(Value::from));
            let allowed = text(&spec, &["user"]) != Some(ANONYMOUS);
            (metadata, Some(spec), json!({ "allowed": allowed }))
        }
    };
    let mut answer = json!({
        "kind": kind.resource.kind, "apiVersion": kind.resource.api_version(), "metadata": metadata, "status": status,
    });
    json::set(&mut answer, &["spec"], spec);
    Ok(answer)
}

fn rules() -> Value {
    json!({
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    })
}

fn check_access(kind: &str, namespace: Option<&str>, review: &Value, spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (of_resource, of_path) = (at(spec, &["resourceAttributes"]), at(spec, &["nonResourceAttributes"]));
    let path = |attributes: &Value| {
        let field = |field: &str| text(attributes, &[field]).unwrap_or_default().to_owned();
        json!({ "Path": field("path"), "Verb": field("verb") })
    };
    if let (true, Some(attributes)) = (kind.starts_with("Local"), of_path) {
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", path(attributes), detail));
        return errors;
    }
    match (of_resource, of_path) {
        (Some(_), Some(attributes)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", path(attributes), detail));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid("spec", Value::Null, detail));
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    let user = text(spec, &["user"]).unwrap_or_default();
    if !kind.starts_with("Self") && user.is_empty() && list(spec, &["groups"]).is_empty() {
        errors.push(FieldError::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    let mut metadata = at(review, &["metadata"]).cloned().unwrap_or_else(|| json!({}));
    for field in ["namespace", "managedFields", "creationTimestamp"] {
        json::set(&mut metadata, &[field], None);
    }
    if metadata.as_object().is_some_and(|metadata| !metadata.is_empty()) {
        errors.push(FieldError::invalid("metadata", metadata, "must be empty"));
    }
    let wanted = of_resource.and_then(|attributes| text(attributes, &["namespace"])).unwrap_or_default();
    if kind.starts_with("Local") && Some(wanted) != namespace {
        let detail = "must match metadata.namespace";
        errors.push(FieldError::invalid("spec.resourceAttributes.namespace", wanted, detail));
    }
    errors
}
