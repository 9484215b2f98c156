//! What can go wrong between us and the API server, in words and in classes.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use http::StatusCode;
use kcm_api::{Resource, Status};

use crate::envelope::status_of_body;
use crate::frames::TooLong;
use crate::protocol::{Failure, ListWatchRequest, Trouble};

/// An exchange with the API server that failed: what was asked, of which resource, and why it failed.
#[derive(Debug, thiserror::Error)]
#[error("{ask} of {resource} {cause}{}", remedy(.resource, .cause))]
pub(crate) struct ExchangeError {
    pub(crate) ask: ListWatchRequest,
    pub(crate) resource: Resource,
    #[source]
    pub(crate) cause: Cause,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("got no answer")]
    Unreachable(#[source] kube::Error),
    #[error("was refused with {}{}: {}", .0.code, reason_of(.0), .0.message)]
    Refused(Status),
    #[error("broke off")]
    Broken(#[source] kube::Error),
    #[error("cannot be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("cannot be read")]
    TooLong(#[source] TooLong),
    #[error("was given up")]
    GivenUp(#[source] Trouble),
    #[error("ended in a panic: {0}")]
    Panic(String),
}

fn reason_of(status: &Status) -> String {
    if status.reason.is_empty() { String::new() } else { format!(" {}", status.reason) }
}

/// What an operator can do about it, where only an operator can.
fn remedy(resource: &Resource, cause: &Cause) -> String {
    match cause {
        Cause::Refused(Status { code: 401, .. }) => "; renew the credentials of the user".to_owned(),
        Cause::Refused(Status { code: 403, .. }) => format!("; grant the user list and watch of {resource}"),
        Cause::Refused(_)
        | Cause::Unreachable(_)
        | Cause::Broken(_)
        | Cause::Unreadable(_)
        | Cause::TooLong(_)
        | Cause::GivenUp(_)
        | Cause::Panic(_) => String::new(),
    }
}

impl Cause {
    /// What the failure means for the protocol.
    pub(crate) fn class(&self) -> Failure {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::GivenUp(_) => Failure::Broken,
            Self::Refused(status) => class_of(status),
            Self::Unreadable(_) | Self::TooLong(_) => Failure::Refused,
            Self::Panic(_) => Failure::Expired,
        }
    }
}

/// For longer no caller stays away: whoever asks for more, as a load balancer under maintenance does, may be gone sooner.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

fn class_of(status: &Status) -> Failure {
    match status.code {
        410 => Failure::Expired,
        _ if status.reason == "Expired" || status.reason == "Gone" || status.has_cause("ResourceVersionTooLarge") => {
            Failure::Expired
        }
        400 | 405 | 422 => Failure::Unsupported,
        _ if status.message.contains("sendInitialEvents") => Failure::Unsupported,
        429 | 503 => {
            let seconds = status.details.retry_after_seconds;
            let wait = Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER);
            Failure::Busy { retry_after: (seconds > 0).then_some(wait) }
        }
        _other => Failure::Refused,
    }
}

/// The status in the body of a refusal, or what can be said without one.
pub(crate) fn status_of(code: StatusCode, retry_after: Option<u64>, body: &[u8]) -> Status {
    const SHOWN: usize = 200;
    let mut status = status_of_body(body).filter(|status| status.code != 0).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        let message: String = text.trim().chars().take(SHOWN).collect();
        let message = if message.is_empty() { "no reason given".to_owned() } else { message };
        let reason = code.canonical_reason().unwrap_or_default().to_owned();
        Status { code: code.as_u16(), reason, message, ..Status::default() }
    });
    if let Some(seconds) = retry_after {
        status.details.retry_after_seconds = status.details.retry_after_seconds.max(seconds);
    }
    status
}

/// An error with all its causes in one line; a cause that an outer text already tells is not repeated.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let told = cause.to_string();
        if !text.contains(&told) {
            write!(text, ": {told}").expect("writing to a string cannot fail");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use kcm_api::{StatusCause, StatusDetails};

    use super::*;

    fn refused(code: u16, reason: &str, message: &str) -> Status {
        Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::default() }
    }

    #[test]
    fn refusals_have_classes() {
        let busy = StatusDetails { retry_after_seconds: 3, ..StatusDetails::default() };
        let out_for_the_day = StatusDetails { retry_after_seconds: u64::MAX, ..StatusDetails::default() };
        let too_large = StatusDetails {
            causes: vec![StatusCause { reason: "ResourceVersionTooLarge".to_owned(), ..StatusCause::default() }],
            retry_after_seconds: 0,
        };
        let rows = [
            (refused(410, "Gone", ""), Failure::Expired),
            (refused(410, "Expired", ""), Failure::Expired),
            (Status { details: too_large, ..refused(504, "Timeout", "") }, Failure::Expired),
            (refused(422, "Invalid", "sendInitialEvents: Forbidden"), Failure::Unsupported),
            (refused(400, "BadRequest", ""), Failure::Unsupported),
            (refused(405, "MethodNotAllowed", ""), Failure::Unsupported),
            (refused(500, "", "sendInitialEvents is forbidden for watch"), Failure::Unsupported),
            (refused(401, "Unauthorized", ""), Failure::Refused),
            (refused(403, "Forbidden", ""), Failure::Refused),
            (refused(404, "NotFound", ""), Failure::Refused),
            (refused(500, "InternalError", ""), Failure::Refused),
            (
                Status { details: busy, ..refused(429, "TooManyRequests", "") },
                Failure::Busy { retry_after: Some(Duration::from_secs(3)) },
            ),
            (
                Status { details: out_for_the_day, ..refused(503, "ServiceUnavailable", "") },
                Failure::Busy { retry_after: Some(LONGEST_RETRY_AFTER) },
            ),
            (refused(503, "ServiceUnavailable", ""), Failure::Busy { retry_after: None }),
        ];
        for (status, expected) in rows {
            assert_eq!(class_of(&status), expected, "{status:?}");
        }
    }

    #[test]
    fn a_refusal_reads_as_one_sentence() {
        let status = refused(403, "Forbidden", r#"replicasets.apps is forbidden: User "a" cannot list"#);
        let error = ExchangeError {
            ask: ListWatchRequest::Page { continue_token: None },
            resource: Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet"),
            cause: Cause::Refused(status),
        };
        assert_eq!(
            chain(&error),
            r#"list of replicasets.apps was refused with 403 Forbidden: replicasets.apps is forbidden: User "a" cannot list; grant the user list and watch of replicasets.apps"#
        );
    }

    #[test]
    fn a_body_that_is_no_status_is_shown_in_part() {
        let status = status_of(StatusCode::BAD_GATEWAY, None, "x".repeat(300).as_bytes());
        assert_eq!((status.code, status.reason.as_str(), status.message.len()), (502, "Bad Gateway", 200));
        assert_eq!(status_of(StatusCode::NOT_FOUND, Some(2), b"").message, "no reason given");
    }
}
