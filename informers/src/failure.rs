//! The errors of lists and watches, and their classes.

use std::time::Duration;

use http::StatusCode;
use kcm_api::{Resource, Status};

use crate::connection::may_be_outage;
use crate::envelope::status_of_body;
use crate::protocol::{Failure, ListWatchRequest, Trouble};

/// A failed list or watch: the request, the resource and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{request} of {resource} {cause}{}", remedy(.resource, .cause))]
pub(crate) struct ExchangeError {
    pub(crate) request: ListWatchRequest,
    pub(crate) resource: Resource,
    #[source]
    pub(crate) cause: Cause,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error("got no response")]
    Unreachable(#[source] kube::Error),
    #[error("was refused with {}{}: {}", .0.code, reason_of(.0), .0.message)]
    Status(Status),
    #[error("was interrupted")]
    Broken(#[source] kube::Error),
    #[error("cannot be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("was aborted")]
    GivenUp(#[source] Trouble),
    #[error("ended in a panic: {0}")]
    Panic(String),
}

fn reason_of(status: &Status) -> String {
    if status.reason.is_empty() { String::new() } else { format!(" {}", status.reason) }
}

/// The remedy, if an operator must act.
fn remedy(resource: &Resource, cause: &Cause) -> String {
    match cause {
        Cause::Status(Status { code: 401, .. }) => "; renew the credentials of the user".to_owned(),
        Cause::Status(Status { code: 403, .. }) => format!("; grant the user list and watch of {resource}"),
        Cause::Status(_)
        | Cause::Unreachable(_)
        | Cause::Broken(_)
        | Cause::Unreadable(_)
        | Cause::GivenUp(_)
        | Cause::Panic(_) => String::new(),
    }
}

impl Cause {
    /// Returns `true` if the API server has no such resource.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Status(status) if status.code == 404)
    }

    /// The class of the failure, which decides the next step of the protocol.
    pub(crate) fn class(&self) -> Failure {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::GivenUp(_) => Failure::Broken,
            Self::Status(status) => class_of(status),
            Self::Unreadable(_) => Failure::Refused,
            Self::Panic(_) => Failure::Panicked,
        }
    }

    /// Returns `true` if an outage may have caused the failure. A probe decides.
    pub(crate) fn may_be_outage(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::GivenUp(Trouble::NoAnswer | Trouble::Silent) => true,
            Self::Status(status) => may_be_outage(status),
            Self::GivenUp(Trouble::Short | Trouble::Unfinished | Trouble::TooLarge)
            | Self::Unreadable(_)
            | Self::Panic(_) => false,
        }
    }
}

/// The longest honoured `Retry-After`: a load balancer under maintenance may ask for more and recover sooner.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

fn class_of(status: &Status) -> Failure {
    match status.code {
        410 => Failure::Expired,
        _ if status.reason == "Expired" || status.reason == "Gone" || status.has_cause("ResourceVersionTooLarge") => {
            Failure::Expired
        }
        400 | 405 | 422 => Failure::Unsupported,
        _ if status.message.contains("sendInitialEvents") => Failure::Unsupported,
        // A refusal would count against the version that the watch resumes from.
        code if !matches!(code, 403 | 503) && may_be_outage(status) => Failure::Broken,
        429 | 503 => {
            let seconds = status.details.retry_after_seconds;
            let wait = Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER);
            Failure::Busy { retry_after: (seconds > 0).then_some(wait) }
        }
        401 | 403 | 404 => Failure::Denied,
        500 if is_before_storage(status) => Failure::Denied,
        _other => Failure::Refused,
    }
}

/// Returns `true` if the API server failed before it looked at the resource, for example because its authorization
/// webhook fails.
///
/// # Upstream
/// `InternalError` of `apiserver/pkg/endpoints/handlers/responsewriters` writes plain text; an error of storage is a
/// `Status`, whose message does not begin so.
fn is_before_storage(status: &Status) -> bool {
    status.message.starts_with("Internal Server Error: \"")
}

/// Returns the status in the body of an error response. If there is none, makes a status from the code.
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

#[cfg(test)]
mod tests {
    use kcm_api::{StatusCause, StatusDetails};

    use super::*;
    use crate::error_chain::chain;

    fn refused(code: u16, reason: &str, message: &str) -> Status {
        Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::default() }
    }

    #[test]
    fn statuses_have_classes() {
        let busy = StatusDetails { retry_after_seconds: 3, ..StatusDetails::default() };
        let out_for_the_day = StatusDetails { retry_after_seconds: u64::MAX, ..StatusDetails::default() };
        let too_large = StatusDetails {
            causes: vec![StatusCause { reason: "ResourceVersionTooLarge".to_owned(), ..StatusCause::default() }],
            ..StatusDetails::default()
        };
        let rows = [
            (refused(410, "Gone", ""), Failure::Expired),
            (refused(410, "Expired", ""), Failure::Expired),
            (Status { details: too_large, ..refused(504, "Timeout", "") }, Failure::Expired),
            (refused(422, "Invalid", "sendInitialEvents: Forbidden"), Failure::Unsupported),
            (refused(400, "BadRequest", ""), Failure::Unsupported),
            (refused(405, "MethodNotAllowed", ""), Failure::Unsupported),
            (refused(500, "", "sendInitialEvents is forbidden for watch"), Failure::Unsupported),
            (refused(401, "Unauthorized", ""), Failure::Denied),
            (refused(403, "Forbidden", ""), Failure::Denied),
            (refused(404, "NotFound", ""), Failure::Denied),
            (
                status_of(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    None,
                    br#"Internal Server Error: "/api/v1/pods": webhook"#,
                ),
                Failure::Denied,
            ),
            (refused(500, "InternalError", ""), Failure::Refused),
            (refused(500, "InternalError", "etcdserver: request timed out"), Failure::Broken),
            (refused(504, "Timeout", "request timed out"), Failure::Broken),
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
    fn an_error_status_reads_as_one_sentence() {
        let status = refused(403, "Forbidden", r#"replicasets.apps is forbidden: User "a" cannot list"#);
        let error = ExchangeError {
            request: ListWatchRequest::Page { continue_token: None, limit: 500 },
            resource: Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet"),
            cause: Cause::Status(status),
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
