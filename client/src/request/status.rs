//! The status of a response that is no success.

use http::StatusCode;
use kcm_api::Status;

/// Reads the status of a response that is no success; a body that is no status object is described by its code.
///
/// A `Retry-After` header in seconds overrides `retryAfterSeconds` in the body. A reason that is absent follows from
/// the code, apart from the API server's 500 without a reason: it ended the request with an error that has none.
pub(crate) fn read_status(code: StatusCode, retry_after: Option<&str>, body: &[u8]) -> Status {
    let sent = from_body(body);
    let is_without_reason = sent.is_some() && code == StatusCode::INTERNAL_SERVER_ERROR;
    let mut status = sent.unwrap_or_else(|| Status { message: describe(code, body), ..Status::default() });
    status.code = code.as_u16();
    if status.reason.is_empty() && !is_without_reason {
        reason_of(code).clone_into(&mut status.reason);
    }
    if let Some(seconds) = retry_after.and_then(|seconds| seconds.trim().parse().ok()) {
        status.details.retry_after_seconds = seconds;
    }
    status
}

fn from_body(body: &[u8]) -> Option<Status> {
    #[derive(serde::Deserialize)]
    struct Typed {
        kind: String,
        #[serde(flatten)]
        status: Status,
    }
    let Typed { kind, status } = serde_json::from_slice(body).ok()?;
    (kind == "Status").then_some(status)
}

fn describe(code: StatusCode, body: &[u8]) -> String {
    const MAX_LENGTH: usize = 200;
    let text = String::from_utf8_lossy(body);
    let shown: String = text.trim().chars().take(MAX_LENGTH).collect();
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
        let read = |header, body: &str| {
            read_status(StatusCode::TOO_MANY_REQUESTS, header, body.as_bytes()).details.retry_after_seconds
        };
        assert_eq!(read(Some("2"), ""), 2);
        assert_eq!(read(None, r#"{"kind":"Status","details":{"retryAfterSeconds":5}}"#), 5);
        assert_eq!(read(None, ""), 0);
    }
}
