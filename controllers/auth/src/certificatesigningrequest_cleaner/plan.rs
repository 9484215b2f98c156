//! The reasons to delete a request. Pure.

use jiff::{SignedDuration, Timestamp};

use crate::shared::signing_request::{APPROVED, DENIED, FAILED, Issued, SigningRequestView};

/// Age at which requests with a result are deleted.
const WITH_RESULT: SignedDuration = SignedDuration::from_hours(1);

/// Age at which requests without a result are deleted.
const WITHOUT_RESULT: SignedDuration = SignedDuration::from_hours(24);

/// A reason to delete a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The certificate was issued long ago.
    Issued,
    /// The request was denied long ago.
    Denied,
    /// Signing has failed long ago.
    Failed,
    Pending,
    /// The certificate has expired.
    Expired,
    /// The request is approved, and nobody signs.
    Unissued,
}

/// Returns the first reason to delete a request, in the order of upstream.
pub(super) fn reason(request: &SigningRequestView, now: Timestamp) -> Option<Reason> {
    let is_old = |time: Option<Timestamp>, age| time.is_some_and(|time| now.duration_since(time) > age);
    let has_old = |type_, age| request.conditions_of(type_).any(|condition| is_old(condition.last_update_time, age));
    let has_expired = match request.certificate {
        Issued::No => false,
        Issued::Yes { expiry } => expiry.is_some_and(|expiry| now > expiry),
    };
    if request.is_issued() && has_old(APPROVED, WITH_RESULT) {
        Some(Reason::Issued)
    } else if has_old(DENIED, WITH_RESULT) {
        Some(Reason::Denied)
    } else if has_old(FAILED, WITH_RESULT) {
        Some(Reason::Failed)
    } else if request.conditions.is_empty() && is_old(request.metadata.creation_timestamp, WITHOUT_RESULT) {
        Some(Reason::Pending)
    } else if has_expired && request.has(APPROVED) {
        Some(Reason::Expired)
    } else if !request.is_issued() && has_old(APPROVED, WITHOUT_RESULT) {
        Some(Reason::Unissued)
    } else {
        None
    }
}

impl Reason {
    /// Returns the words of the log line.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Issued => "issued more than an hour ago",
            Self::Denied => "denied more than an hour ago",
            Self::Failed => "failed more than an hour ago",
            Self::Pending => "not decided for a day",
            Self::Expired => "the certificate is expired",
            Self::Unissued => "approved and not issued for a day",
        }
    }
}
