//! [`Status`]: API errors, and [`FieldError`]: validation errors.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kcm_api::Resource;
use serde::Serialize;
use serde_json::{Value, json};

/// Maximum number of reported invalid fields per object; upstream reports all.
const MOST_CAUSES: usize = 10_000;

/// An API error: an HTTP code and a `Status` object.
///
/// Messages and reasons equal upstream's, since users and clients depend on them.
///
/// # Upstream
/// `apimachinery/pkg/api/errors`
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP status code of the response.
    pub code: u16,
    /// Machine-readable reason; empty if upstream has none.
    pub reason: Cow<'static, str>,
    /// Message for users, in upstream's words.
    pub message: String,
    /// The object of the error.
    pub details: Option<Box<Details>>,
    /// Continue token for an inconsistent continuation of a list.
    pub continue_token: Option<String>,
}

/// Details of a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Resource, or kind for invalid objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Causes, such as invalid fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// `retryAfterSeconds`; 0 if unset.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A cause of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Reason for programs, such as `FieldValueInvalid`.
    pub reason: String,
    /// Message for users, in upstream's words.
    pub message: String,
    /// Path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// Creates an error without details.
    #[must_use]
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None, continue_token: None }
    }

    /// Returns the error with the details of an object of `resource`.
    #[must_use]
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = resource.group.to_string();
        details.kind = resource.plural.to_string();
        name.clone_into(&mut details.name);
        self
    }

    /// Returns the error with another cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        let cause = Cause { reason: reason.to_owned(), message: message.into(), field: field.to_owned() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Returns the error with `retryAfterSeconds`.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// 404: the object is not found.
    #[must_use]
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// 409: the object already exists.
    #[must_use]
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {name:?} already exists")).about(resource, name)
    }

    /// 409: conflict with the stored object, as a changed resource version.
    #[must_use]
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 403: forbidden by authorization or admission.
    #[must_use]
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let what = if name.is_empty() { resource.to_string() } else { format!("{resource} {name:?}") };
        Self::new(403, "Forbidden", format!("{what} is forbidden: {why}")).about(resource, name)
    }

    /// 410: the resource version is older than the window.
    #[must_use]
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Status 400 with a message.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404: the path is not served.
    #[must_use]
    pub fn not_served() -> Self {
        Self::without_details(404, "NotFound", "the server could not find the requested resource")
    }

    /// 501: not implemented in the sandbox, with the reason.
    pub(crate) fn not_implemented(why: &str) -> Self {
        Self::without_details(501, "NotImplemented", why)
    }

    /// 405: the path does not support the method.
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::without_details(405, "MethodNotAllowed", message)
    }

    /// Returns the error with empty details, as upstream before the request is routed.
    pub(crate) fn without_details(code: u16, reason: &'static str, message: &str) -> Self {
        Self { details: Some(Box::default()), ..Self::new(code, reason, message) }
    }

    /// 401: missing or invalid credentials.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 413: the body is too large.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 429: too many requests; the client retries later.
    #[must_use]
    pub fn too_many_requests(seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", "Too many requests, please try again later.").retry_after(seconds)
    }

    /// Status 504 after a time-out.
    #[must_use]
    pub fn timeout() -> Self {
        Self::without_details(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
    }

    /// 415: the media type of the body is not supported.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        Self::new(
            415,
            "UnsupportedMediaType",
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}"),
        )
    }

    /// 406: no requested media type is supported.
    #[must_use]
    pub fn not_acceptable() -> Self {
        Self::new(406, "NotAcceptable", "only the following media types are accepted: application/json")
    }

    /// 504: the requested resource version is not reached yet.
    #[must_use]
    pub fn version_too_large(requested: u64, current: u64) -> Self {
        Self::new(504, "Timeout", format!("Timeout: Too large resource version: {requested}, current: {current}"))
            .retry_after(1)
            .with_cause("ResourceVersionTooLarge", "Too large resource version", "")
    }

    /// 422: an object with invalid fields.
    #[must_use]
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut seen = BTreeSet::new();
        let messages = errors.iter().take(MOST_CAUSES).map(ToString::to_string);
        let messages: Vec<String> = messages.filter(|message| seen.insert(message.clone())).collect();
        let all =
            if let [single] = messages.as_slice() { single.clone() } else { format!("[{}]", messages.join(", ")) };
        let mut status = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {all}"));
        status.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: errors.iter().take(MOST_CAUSES).map(FieldError::cause).collect(),
            retry_after_seconds: 0,
        }));
        status
    }

    /// Returns the `Status` object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = json!(token);
        }
        let mut object = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            object["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            object["details"] = json!(details);
        }
        object
    }
}

/// An invalid field.
///
/// # Upstream
/// `apimachinery/pkg/util/validation/field`
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    kind: FieldErrorKind,
    field: String,
    detail: String,
}

#[derive(Debug, Clone, PartialEq)]
enum FieldErrorKind {
    Required,
    Forbidden,
    TooLong,
    // The value as a string.
    Invalid(String),
    // The value is omitted.
    InvalidWithoutValue,
    Duplicate(String),
    NotFound(String),
    NotSupported(String),
    TooMany(usize),
}

impl FieldError {
    /// A required field is missing.
    #[must_use]
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self { kind: FieldErrorKind::Required, field: field.into(), detail: detail.to_owned() }
    }

    /// A field is forbidden, or changed in a forbidden way.
    #[must_use]
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Forbidden, field: field.into(), detail: detail.into() }
    }

    /// A field has an invalid value.
    #[must_use]
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::invalid_shown(field, value.into().to_string(), detail)
    }

    /// A field has an invalid value, formatted as `shown`.
    pub(crate) fn invalid_shown(field: impl Into<String>, shown: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Invalid(shown.into()), field: field.into(), detail: detail.into() }
    }

    /// A field has an invalid value, which the message omits.
    pub(crate) fn invalid_without_value(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::InvalidWithoutValue, field: field.into(), detail: detail.into() }
    }

    /// A list has too many items.
    pub(crate) fn too_many(field: impl Into<String>, count: usize, limit: usize) -> Self {
        let detail = format!("must have at most {limit} items");
        Self { kind: FieldErrorKind::TooMany(count), field: field.into(), detail }
    }

    /// A referenced name is not found.
    pub(crate) fn not_found(field: impl Into<String>, name: &str) -> Self {
        Self {
            kind: FieldErrorKind::NotFound(Value::from(name).to_string()),
            field: field.into(),
            detail: String::new(),
        }
    }

    /// Reports whether the error is about the field or one of its descendants.
    pub(crate) fn is_about(&self, field: &str) -> bool {
        self.field.starts_with(field)
    }

    /// An item is duplicated.
    #[must_use]
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::duplicate_shown(field, value.into().to_string(), "")
    }

    /// An item is duplicated, formatted as `shown`.
    pub(crate) fn duplicate_shown(field: impl Into<String>, shown: impl Into<String>, detail: &str) -> Self {
        Self { kind: FieldErrorKind::Duplicate(shown.into()), field: field.into(), detail: detail.to_owned() }
    }

    /// A value is not supported.
    #[must_use]
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        Self::not_supported_shown(field, value.into().to_string(), supported)
    }

    /// A value is not supported, formatted as `shown`.
    pub(crate) fn not_supported_shown(field: impl Into<String>, shown: impl Into<String>, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self { kind: FieldErrorKind::NotSupported(shown.into()), field: field.into(), detail }
    }

    /// A string is too long.
    #[must_use]
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self { kind: FieldErrorKind::TooLong, field: field.into(), detail }
    }

    fn cause(&self) -> Cause {
        let reason = match self.kind {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::Invalid(_) | FieldErrorKind::InvalidWithoutValue => "FieldValueInvalid",
            FieldErrorKind::Duplicate(_) => "FieldValueDuplicate",
            FieldErrorKind::NotFound(_) => "FieldValueNotFound",
            FieldErrorKind::TooMany(_) => "FieldValueTooMany",
            FieldErrorKind::NotSupported(_) => "FieldValueNotSupported",
            FieldErrorKind::TooLong => "FieldValueTooLong",
        };
        Cause { reason: reason.to_owned(), message: self.body(), field: self.field.clone() }
    }

    fn body(&self) -> String {
        let mut body = match &self.kind {
            FieldErrorKind::Required => "Required value".to_owned(),
            FieldErrorKind::Forbidden => "Forbidden".to_owned(),
            FieldErrorKind::Invalid(value) => format!("Invalid value: {value}"),
            FieldErrorKind::InvalidWithoutValue => "Invalid value".to_owned(),
            FieldErrorKind::Duplicate(value) => format!("Duplicate value: {value}"),
            FieldErrorKind::NotFound(value) => format!("Not found: {value}"),
            FieldErrorKind::NotSupported(value) => format!("Unsupported value: {value}"),
            FieldErrorKind::TooMany(count) => format!("Too many: {count}"),
            FieldErrorKind::TooLong => "Too long".to_owned(),
        };
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
