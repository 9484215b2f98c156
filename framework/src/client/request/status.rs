//! What the API server says about a request that it did not fulfil.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

/// What the API server says about a request that it did not fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, for example `AlreadyExists`; of the code where the server gave none.
    pub reason: String,
    /// The server's sentence.
    pub message: String,
    /// The causes in the status' details.
    pub causes: Vec<StatusCause>,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// One cause in the details of a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// The machine-readable reason.
    pub reason: String,
    /// The server's sentence.
    pub message: String,
    /// The field of the object at fault, if any.
    pub field: String,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() { write!(f, "{} ({})", self.reason, self.code) } else { f.write_str(&self.message) }
    }
}

impl Status {
    /// Reads an answer that is no success; one that carries no status object is described by its code.
    #[must_use]
    pub fn read(code: StatusCode, retry_after: Option<&str>, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Raw {
            kind: String,
            #[serde(default)]
            reason: String,
            #[serde(default)]
            message: String,
            #[serde(default)]
            details: Option<Details>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Details {
            causes: Vec<StatusCause>,
            retry_after_seconds: u64,
        }

        let header = retry_after.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
        match serde_json::from_slice::<Raw>(body) {
            Ok(raw) if raw.kind == "Status" => {
                let details = raw.details.unwrap_or_default();
                let reason = if raw.reason.is_empty() { reason_of(code).to_owned() } else { raw.reason };
                let in_body =
                    (details.retry_after_seconds > 0).then(|| Duration::from_secs(details.retry_after_seconds));
                Self {
                    code: code.as_u16(),
                    reason,
                    message: raw.message,
                    causes: details.causes,
                    retry_after: header.or(in_body),
                }
            }
            _ => Self {
                code: code.as_u16(),
                reason: reason_of(code).to_owned(),
                message: plain_text(code, body),
                causes: Vec::new(),
                retry_after: header,
            },
        }
    }

    pub(super) fn has_cause(&self, reason: &str) -> bool {
        self.causes.iter().any(|cause| cause.reason == reason)
    }
}

fn plain_text(code: StatusCode, body: &[u8]) -> String {
    const ENOUGH: usize = 200;
    let text = String::from_utf8_lossy(body);
    let shown: String = text.trim().chars().take(ENOUGH).collect();
    let shown = if shown.is_empty() { code.canonical_reason().unwrap_or("no explanation").to_owned() } else { shown };
    format!("the server answered {}: {shown}", code.as_u16())
}

fn reason_of(code: StatusCode) -> &'static str {
    match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_taken_from_header_or_body() {
        let read =
            |header, body: &str| Status::read(StatusCode::TOO_MANY_REQUESTS, header, body.as_bytes()).retry_after;
        assert_eq!(read(Some("2"), ""), Some(Duration::from_secs(2)));
        assert_eq!(read(None, r#"{"kind":"Status","details":{"retryAfterSeconds":5}}"#), Some(Duration::from_secs(5)));
        assert_eq!(read(None, ""), None);
    }
}
