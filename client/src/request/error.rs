//! The errors of API requests.

use std::error::Error as StdError;
use std::time::Duration;

use kcm_api::Status;
use tokio::time::Instant;

use crate::client_provider::CredentialsError;
use crate::fence::Fenced;

use super::error_class::{ErrorClass, NAMESPACE_TERMINATING, class_of, is_failed_webhook};

/// The error of an API request.
///
/// Displays as the attempted request: `cannot create pods in namespace "a"`. The reason is
/// [`cause`](Self::cause), which is also its source.
#[derive(Debug, thiserror::Error)]
#[error("cannot {request}")]
pub struct ApiError {
    request: Box<str>,
    #[source]
    cause: Cause,
    deadline: Option<Instant>,
    follows_lost_response: bool,
}

/// The cause of a failed request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The API server responded with an error status.
    #[error("{0}")]
    Status(Box<Status>),
    /// The connection broke: the request may have reached the server.
    #[error("the connection to the API server broke before the response was complete")]
    Transport(#[source] Box<dyn StdError + Send + Sync>),
    /// The request was not sent: no connection could be made, or no credentials were available.
    #[error("the API server was not reached")]
    NotSent(#[source] Box<dyn StdError + Send + Sync>),
    /// The request is a write and was not sent, because the [fence](crate::Fence) is closed.
    #[error(transparent)]
    Fenced(Fenced),
    /// The request is a write of a loop to a resource that the loop does not declare, and was not sent.
    #[error(
        "the loop {name:?} declares no writes to {resource}: call `reads` on its builder, so that it waits for its own \
         writes, or `writes` if it reads them from no cache"
    )]
    Undeclared {
        /// Name of the loop.
        name: &'static str,
        /// The resource that was written.
        resource: String,
    },
    /// The response was a success, but cannot be decoded.
    #[error("the response of the API server cannot be decoded")]
    Decode(#[source] serde_json::Error),
    /// The response is longer than the caller accepts, and was not read to its end.
    #[error(
        "the response of {path} is longer than {} MiB, and was not read to its end: if an APIService serves this path, \
         check its server",
        .limit >> 20
    )]
    TooLarge {
        /// Path of the request.
        path: Box<str>,
        /// Number of bytes that the caller accepts.
        limit: usize,
    },
    /// The body of the request cannot be serialized, so it was not sent.
    #[error("the object cannot be serialized as JSON")]
    Encode(#[source] serde_json::Error),
    /// No response within the timeout of the request, which was awaited for so long.
    #[error("no response within {}s", .0.as_secs())]
    Timeout(Duration),
    /// The request is a write that was sent, and whose response was awaited for so long, until the
    /// [fence](crate::Fence) closed.
    #[error(
        "given up after {0:.1?} without a response, because another manager may act by now: it may still take effect"
    )]
    GivenUp(Duration),
}

impl ApiError {
    /// The error of `request`, such as `create pods in namespace "a"`, which failed with `cause`.
    pub fn new(request: impl Into<Box<str>>, cause: Cause) -> Self {
        Self { request: request.into(), cause, deadline: None, follows_lost_response: false }
    }

    pub(crate) fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Marks the error of a repeated request: the response of an earlier attempt was lost.
    pub(crate) const fn after_lost_response(mut self) -> Self {
        self.follows_lost_response = true;
        self
    }

    /// Clears the record of a lost response: the name belongs to an object that the earlier attempt did not create.
    #[must_use]
    pub const fn without_lost_response(mut self) -> Self {
        self.follows_lost_response = false;
        self
    }

    /// The cause of the failure.
    #[must_use]
    pub const fn cause(&self) -> &Cause {
        &self.cause
    }

    /// The status in the response, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        if let Cause::Status(status) = &self.cause { Some(status) } else { None }
    }

    /// The failure in one line, without the request: the message of the server, if there is one.
    ///
    /// Upstream prints such errors this way, for example in events.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = self.cause.to_string();
        let mut source = self.cause.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        text
    }

    /// The class of the failure.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match &self.cause {
            Cause::Status(status) => class_of(status),
            Cause::Transport(_)
            | Cause::NotSent(_)
            | Cause::Fenced(_)
            | Cause::Timeout(_)
            | Cause::GivenUp(_)
            | Cause::Decode(_)
            | Cause::TooLarge { .. } => ErrorClass::Transient,
            Cause::Encode(_) | Cause::Undeclared { .. } => ErrorClass::Terminal,
        }
    }

    /// Returns `true` if a write that failed like this may have taken effect nevertheless.
    ///
    /// A broken connection, a timeout, a closed fence, an undecodable response and an error of the server (5xx, which does not show
    /// what its storage did) count as lost responses. So does any failure of a request that repeats a request whose
    /// response was lost. The failure of an admission webhook, which is called before the write, does not.
    #[must_use]
    pub fn response_lost(&self) -> bool {
        if self.follows_lost_response {
            return true;
        }
        match &self.cause {
            Cause::Transport(_) | Cause::Timeout(_) | Cause::GivenUp(_) | Cause::Decode(_) | Cause::TooLarge { .. } => {
                true
            }
            Cause::NotSent(_) | Cause::Fenced(_) | Cause::Encode(_) | Cause::Undeclared { .. } => false,
            Cause::Status(status) => status.code >= 500 && status.code != 501 && !is_failed_webhook(status),
        }
    }

    /// Returns `true` if the API server refused the write because it could not call an admission webhook.
    #[must_use]
    pub fn is_failed_webhook(&self) -> bool {
        self.status().is_some_and(is_failed_webhook)
    }

    /// Returns `true` if the connection failed or broke.
    #[must_use]
    pub const fn is_connection_failure(&self) -> bool {
        matches!(self.cause, Cause::Transport(_) | Cause::NotSent(_))
    }

    /// The time after which a write whose response was lost can no longer take effect; absent for reads.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The `Retry-After` of the server, if it sent one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status().map_or(0, |status| status.details.retry_after_seconds);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Returns `true` if the namespace of the object is terminating, so that no object can be created in it.
    #[must_use]
    pub fn is_namespace_terminating(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403 && status.has_cause(NAMESPACE_TERMINATING))
    }

    /// Returns `true` if an object of that name exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.has_reason("AlreadyExists") && !self.follows_lost_response
    }

    /// Returns `true` if an object of that name exists, in all likelihood created by this request: the response of an
    /// earlier attempt was lost, and its repetition was refused because the name is taken.
    ///
    /// If the name was generated for this object, treat the object as created, and do not try another name.
    #[must_use]
    pub fn is_probably_created(&self) -> bool {
        self.has_reason("AlreadyExists") && self.follows_lost_response
    }

    /// Returns `true` if the object, or its resource, does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    /// Returns `true` if the object has changed meanwhile, or a precondition fails.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.has_reason("Conflict")
    }

    /// Returns `true` if the request was for another object of that name: the object was recreated. This covers a uid
    /// precondition that failed, and a patch that would change the uid, but not a conflict of resource versions.
    ///
    /// # Upstream
    /// `Preconditions.Check` and `BeforeDelete` of the API server, and its validation of the immutable `metadata.uid`.
    /// The scenarios of the sandbox compare their messages with a real API server.
    #[must_use]
    pub fn is_other_object(&self) -> bool {
        const FAILED_PRECONDITIONS: [&str; 2] = ["UID in precondition: ", "the UID in the precondition "];
        let Some(status) = self.status() else { return false };
        let has_failed_precondition = || FAILED_PRECONDITIONS.iter().any(|text| status.message.contains(text));
        self.is_conflict() && has_failed_precondition()
            || self.is_invalid() && status.message.contains("metadata.uid: ")
    }

    /// Returns `true` if the object is invalid.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.has_reason("Invalid")
    }

    /// Returns `true` if authorization or admission (quota, policies) forbids the request.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.has_code(403)
    }

    /// Returns `true` if the server limits requests.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.has_code(429)
    }

    /// Returns `true` if the request timed out, in the server or here.
    ///
    /// # Upstream
    /// Status reason `Timeout`. The API server also returns it if it has created the object and its own response was
    /// lost.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause, Cause::Timeout(_)) || self.has_reason("Timeout")
    }

    fn has_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }

    fn has_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }
}

/// Turns expected errors of a request into values.
pub trait ResponseExt<T> {
    /// Returns `None` if the object, or its resource, does not exist. For reads, and for writes to objects that may be
    /// deleted meanwhile.
    fn ignore_not_found(self) -> Result<Option<T>, ApiError>;

    /// Returns `None` for errors of which `is_expected` is true: `.ignore(ApiError::is_other_object)`.
    fn ignore(self, is_expected: impl Fn(&ApiError) -> bool) -> Result<Option<T>, ApiError>;
}

impl<T> ResponseExt<T> for Result<T, ApiError> {
    fn ignore_not_found(self) -> Result<Option<T>, ApiError> {
        self.ignore(ApiError::is_not_found)
    }

    fn ignore(self, is_expected: impl Fn(&ApiError) -> bool) -> Result<Option<T>, ApiError> {
        match self {
            Ok(response) => Ok(Some(response)),
            Err(error) if is_expected(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The error and its sources, including the sources that `std::io::Error` hides from its `source`.
pub(crate) fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
        None => error.source(),
    })
}

/// Distinguishes a connection that was never made from a connection that broke.
pub(crate) fn transport(error: kube::Error) -> Cause {
    let not_sent = chain(&error).any(|error| {
        error
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect)
            || error.is::<kube::client::AuthError>()
            || error.is::<CredentialsError>()
            || matches!(error.downcast_ref(), Some(kube::Error::Auth(_)))
    });
    // Kube's wrapper repeats its source in its message.
    let error = if let kube::Error::Service(error) = error { error } else { error.into() };
    if not_sent { Cause::NotSent(error) } else { Cause::Transport(error) }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn status(code: u16, body: &str) -> ApiError {
        let status = super::super::status::read_status(StatusCode::from_u16(code).unwrap(), None, body.as_bytes());
        ApiError::new("create pods in namespace \"a\"", Cause::Status(Box::new(status)))
    }

    fn body(reason: &str, causes: &str) -> String {
        format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","reason":"{reason}","details":{{"causes":[{causes}]}}}}"#
        )
    }

    fn failed(reason: &str, why: &str) -> String {
        let message = format!("Internal error occurred: {why}");
        serde_json::json!({"kind": "Status", "reason": reason, "message": message}).to_string()
    }

    #[test]
    fn statuses_and_causes_have_classes() {
        let terminating = r#"{"reason":"NamespaceTerminating","message":"x"}"#;
        for (name, error, class) in [
            ("refused object", status(422, &body("Invalid", "")), ErrorClass::Terminal),
            ("bad request", status(400, ""), ErrorClass::Terminal),
            (
                "missing permission",
                status(403, r#"{"kind":"Status","message":"pods is forbidden: User \"u\" cannot create resource"}"#),
                ErrorClass::Forbidden,
            ),
            ("missing credentials", status(401, ""), ErrorClass::Forbidden),
            ("dying namespace", status(403, &body("Forbidden", terminating)), ErrorClass::Terminal),
            (
                "exhausted quota",
                status(403, r#"{"kind":"Status","message":"pods \"a\" is forbidden: exceeded quota: q"}"#),
                ErrorClass::Transient,
            ),
            ("changed meanwhile", status(409, &body("Conflict", "")), ErrorClass::Conflict),
            ("there already", status(409, &body("AlreadyExists", "")), ErrorClass::Conflict),
            ("not there", status(404, ""), ErrorClass::NotFound),
            ("forgotten version", status(410, ""), ErrorClass::Gone),
            ("too many requests", status(429, ""), ErrorClass::Unavailable),
            ("failing server", status(500, ""), ErrorClass::Unavailable),
            ("unimplemented", status(501, ""), ErrorClass::Transient),
            ("no response", ApiError::new("x", Cause::Timeout(Duration::from_secs(30))), ErrorClass::Transient),
            ("given up", ApiError::new("x", Cause::GivenUp(Duration::from_secs(14))), ErrorClass::Transient),
            ("broken connection", ApiError::new("x", Cause::Transport("x".into())), ErrorClass::Transient),
        ] {
            assert_eq!(error.class(), class, "{name}");
        }
    }

    #[test]
    fn another_object_of_the_same_name_is_told_from_a_conflict_of_versions() {
        let of = |code, reason: &str, message: &str| {
            let body = serde_json::json!({"kind": "Status", "reason": reason, "message": message}).to_string();
            status(code, &body).is_other_object()
        };
        let precondition = "Precondition failed: UID in precondition: a, UID in object meta: b";
        for (name, is_other, expected) in [
            (
                "deletion",
                of(409, "Conflict", &format!("Operation cannot be fulfilled on pods \"web\": {precondition}")),
                true,
            ),
            (
                "graceful deletion",
                of(409, "Conflict", "the UID in the precondition (a) does not match the UID in record (b)"),
                true,
            ),
            (
                "patch",
                of(422, "Invalid", "Pod \"web\" is invalid: metadata.uid: Invalid value: \"a\": field is immutable"),
                true,
            ),
            ("version", of(409, "Conflict", "the object has been modified; please apply your changes"), false),
            ("other field", of(422, "Invalid", "Pod \"web\" is invalid: spec: Forbidden"), false),
            ("no object", of(404, "NotFound", "pods \"web\" not found"), false),
        ] {
            assert_eq!(is_other, expected, "{name}");
        }
    }

    #[test]
    fn expected_errors_become_none() {
        let of = |error: ApiError| Err::<u8, _>(error).ignore_not_found();
        assert_eq!(of(status(404, "")).unwrap(), None);
        assert!(of(status(409, "")).unwrap_err().has_code(409));
        assert_eq!(Ok(1_u8).ignore_not_found().unwrap(), Some(1));
    }

    #[test]
    fn a_response_counts_as_lost_unless_the_write_certainly_failed() {
        let unreadable = || serde_json::from_str::<u8>("x").unwrap_err();
        for (name, error, lost) in [
            ("broken connection", ApiError::new("x", Cause::Transport("x".into())), true),
            ("no response", ApiError::new("x", Cause::Timeout(Duration::from_secs(30))), true),
            ("given up", ApiError::new("x", Cause::GivenUp(Duration::from_secs(14))), true),
            ("undecodable response", ApiError::new("x", Cause::Decode(unreadable())), true),
            ("no connection", ApiError::new("x", Cause::NotSent("x".into())), false),
            ("unwritable object", ApiError::new("x", Cause::Encode(unreadable())), false),
            ("internal error", status(500, ""), true),
            ("not implemented", status(501, ""), false),
            ("failing webhook", status(500, &failed("InternalError", "failed calling webhook \"a\": x")), false),
            ("failing conversion", status(500, &failed("InternalError", "conversion webhook for a failed: x")), true),
            ("unavailable", status(503, ""), true),
            ("timed out in the server", status(504, ""), true),
            ("too many requests", status(429, ""), false),
            ("conflict", status(409, ""), false),
            ("refused", status(422, ""), false),
        ] {
            assert_eq!(error.response_lost(), lost, "{name}");
        }
    }

    #[test]
    fn predicates_read_reason_and_causes() {
        assert!(status(409, &body("AlreadyExists", "")).is_already_exists());
        assert!(!status(409, &body("AlreadyExists", "")).is_conflict());
        let repeated = status(409, &body("AlreadyExists", "")).after_lost_response();
        assert!(repeated.is_probably_created() && !repeated.is_already_exists() && repeated.response_lost());
        assert!(!status(409, &body("AlreadyExists", "")).is_probably_created());
        assert!(status(409, "").is_conflict());
        assert!(status(404, "404 page not found").is_not_found());
        assert!(status(422, "").is_invalid());
        assert!(status(504, "").is_timeout());
        let terminating = r#"{"reason":"NamespaceTerminating","message":"namespace a is being terminated"}"#;
        assert!(status(403, &body("Forbidden", terminating)).is_namespace_terminating());
        assert!(!status(403, &body("Forbidden", "")).is_namespace_terminating());
    }

    #[test]
    fn displays_what_was_tried_and_leaves_the_reason_to_the_source() {
        let error = status(422, &body("Invalid", ""));
        assert_eq!(error.to_string(), "cannot create pods in namespace \"a\"");
        assert_eq!(error.message(), "m");
        assert_eq!(error.source().unwrap().to_string(), "m");
        assert_eq!(status(503, "upstream is down\n").message(), "the server answered 503: upstream is down");
    }
}
