//! `metav1.Status`: why the API server did not fulfil a request.

use std::fmt;

use serde::Deserialize;

use crate::decode::null_as_default;
use crate::protobuf::{Field, Kind, Message};

/// A `metav1.Status`: the body of a response that is not a success, and the object of an `ERROR` event of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, for example `AlreadyExists`.
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    /// The message of the API server.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    /// The object, causes, and how long to wait.
    #[serde(deserialize_with = "null_as_default")]
    pub details: StatusDetails,
}

/// The details of a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusDetails {
    /// Name of the object that the failure is about. Empty if it is about no object, such as for a path that is not
    /// served.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// The causes of the failure.
    #[serde(deserialize_with = "null_as_default")]
    pub causes: Vec<StatusCause>,
    /// Number of seconds that the client waits before it sends the request again; 0 if the server does not say.
    pub retry_after_seconds: u64,
}

/// One cause in the details of a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// Machine-readable reason of the failure.
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
    /// The message of the API server.
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
    /// The path of the invalid field, if any.
    #[serde(deserialize_with = "null_as_default")]
    pub field: String,
}

impl Status {
    /// The fields of the message in protobuf.
    pub const MESSAGE: &'static Message = &[
        Field::text(3, "message"),
        Field::text(4, "reason"),
        Field::one(5, "details", StatusDetails::MESSAGE),
        Field::integer(6, "code"),
    ];

    /// Returns `true` if the details have a cause with this reason.
    #[must_use]
    pub fn has_cause(&self, reason: &str) -> bool {
        self.details.causes.iter().any(|cause| cause.reason == reason)
    }
}

impl StatusDetails {
    const MESSAGE: &'static Message = &[
        Field::text(1, "name"),
        Field::list(4, "causes", &Kind::One(StatusCause::MESSAGE)),
        Field::integer(5, "retryAfterSeconds"),
    ];
}

impl StatusCause {
    const MESSAGE: &'static Message = &[Field::text(1, "reason"), Field::text(2, "message"), Field::text(3, "field")];
}

impl fmt::Display for Status {
    /// Writes the message. If there is none, writes reason and code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() { write!(f, "{} ({})", self.reason, self.code) } else { f.write_str(&self.message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_missing_fields_are_defaults() {
        let status: Status = serde_json::from_str(r#"{"code":404,"reason":null,"details":{"causes":null}}"#).unwrap();
        assert_eq!(status, Status { code: 404, ..Status::default() });
    }

    #[test]
    fn displays_its_message_or_reason_and_code() {
        let mut status = Status { code: 404, reason: "NotFound".to_owned(), ..Status::default() };
        assert_eq!(status.to_string(), "NotFound (404)");
        status.message = "pods \"a\" not found".to_owned();
        assert_eq!(status.to_string(), "pods \"a\" not found");
    }
}
