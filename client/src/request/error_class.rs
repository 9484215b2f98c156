//! The classes of failed requests, and what a status says.

use kcm_api::Status;

/// The class of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// It may succeed later: back off and retry.
    Transient,
    /// The API server, or a webhook that it calls, cannot serve the request now (429, 5xx): retry soon, as no event
    /// tells when it can.
    Unavailable,
    /// The object has changed meanwhile: read it again and retry soon.
    Conflict,
    /// It cannot succeed without a change, of the object or of what admits it.
    Terminal,
    /// A permission or a credential is missing: retry after a long time.
    Forbidden,
    /// The object, or its resource, does not exist.
    NotFound,
    /// The requested version is not available any more (410): list again.
    Gone,
}

/// The cause in the status of a creation in a namespace that is being deleted.
pub(super) const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// The class of a request whose response has this status.
pub(super) fn class_of(status: &Status) -> ErrorClass {
    match status.code {
        401 => ErrorClass::Forbidden,
        403 if status.has_cause(NAMESPACE_TERMINATING) => ErrorClass::Terminal,
        // Only the authorizer names the user. Admission (quota, policies) refuses this object at this time, and no
        // watch event follows when it would accept it: transient.
        403 if status.message.contains("is forbidden: User ") => ErrorClass::Forbidden,
        404 => ErrorClass::NotFound,
        409 => ErrorClass::Conflict,
        410 => ErrorClass::Gone,
        400 | 405 | 406 | 413 | 415 | 422 => ErrorClass::Terminal,
        429 | 500 | 502..=599 => ErrorClass::Unavailable,
        _ => ErrorClass::Transient,
    }
}

/// Returns `true` if the refusal of one attempt of a request applies to every other attempt, including an attempt in
/// progress.
///
/// A missing permission, an exhausted quota or too many requests may apply to this attempt alone.
pub(super) fn is_final(status: &Status) -> bool {
    match class_of(status) {
        ErrorClass::Conflict | ErrorClass::NotFound | ErrorClass::Terminal => true,
        ErrorClass::Transient | ErrorClass::Unavailable | ErrorClass::Forbidden | ErrorClass::Gone => false,
    }
}

/// Returns `true` if the API server could not call an admission webhook. Admission comes before storage.
///
/// # Upstream
/// `ErrCallingWebhook` within an internal error. The failure of a conversion webhook, which may follow the write, reads
/// differently.
pub(super) fn is_failed_webhook(status: &Status) -> bool {
    status.code == 500
        && status.reason == "InternalError"
        && status.message.starts_with("Internal error occurred: failed calling webhook ")
}
