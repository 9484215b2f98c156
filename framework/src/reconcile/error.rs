//! The errors of a reconcile, and when the key is requeued.

use std::time::Duration;

use kcm_api::EditError;
use kcm_client::{ApiError, BoxError, ErrorClass};

/// The error of a reconcile: its cause and its class.
#[derive(Debug, thiserror::Error)]
#[error("reconcile failed")]
pub struct ReconcileError {
    class: Class,
    #[source]
    source: BoxError,
}

/// The class of a reconcile error, which decides when the key is requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The reconcile may succeed later: the key is requeued with back-off.
    Transient,
    /// The API server, or a webhook that it calls, cannot serve the request now, and no event announces when it can
    /// again: the key is requeued with a back-off of at most a second for the first minute, and a growing one after it.
    Unavailable,
    /// The object has changed meanwhile: the key is requeued with back-off, and a single conflict is logged at debug
    /// level.
    Conflict,
    /// The reconcile cannot succeed before something changes: the key is not requeued.
    Terminal,
    /// A permission is missing: the key is requeued after [`FORBIDDEN_DELAY`](Self::FORBIDDEN_DELAY).
    Forbidden,
}

/// When the key of a failed reconcile is requeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// After the back-off of the key.
    BackOff,
    /// After the back-off of the key, within that limit.
    BackOffWithin(Duration),
    /// After a fixed delay.
    After(Duration),
    /// When a change enqueues the key.
    OnChange,
}

impl Class {
    /// The delay after a missing permission: an administrator grants it, and no watch event follows.
    pub const FORBIDDEN_DELAY: Duration = Duration::from_mins(1);

    /// When a key is requeued that had failed `before` times in a row.
    pub(super) fn retry(self, before: u32) -> Retry {
        match self {
            // The first retries of the back-off are a few milliseconds away, which is soon enough for a conflict.
            Self::Transient | Self::Conflict => Retry::BackOff,
            Self::Unavailable => Retry::BackOffWithin(longest_back_off(before)),
            Self::Forbidden => Retry::After(Self::FORBIDDEN_DELAY),
            Self::Terminal => Retry::OnChange,
        }
    }

    /// Returns `true` if a failure of a key that had failed `before` times in a row is logged as a warning or an error.
    ///
    /// A single conflict is normal. A conflict that persists for seconds shows another writer of the same fields, or an
    /// object that never appears in the cache.
    pub(super) const fn is_logged(self, before: u32) -> bool {
        const PERSISTENT: u32 = 10;
        match self {
            Self::Conflict => before >= PERSISTENT,
            Self::Transient | Self::Unavailable | Self::Terminal | Self::Forbidden => true,
        }
    }

    /// Returns `true` if an unreachable API server may have caused the failure.
    pub(super) const fn may_be_outage(self) -> bool {
        match self {
            Self::Transient | Self::Unavailable => true,
            Self::Conflict | Self::Terminal | Self::Forbidden => false,
        }
    }

    /// The value of the label `class` in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Unavailable => "unavailable",
            Self::Conflict => "conflict",
            Self::Terminal => "terminal",
            Self::Forbidden => "forbidden",
        }
    }
}

/// The longest back-off of a key that waits for a server or webhook, and had failed `before` times in a row: a second,
/// until the back-off and such seconds have taken a minute, doubling from then on.
///
/// The eighth failure is the first with a back-off above half a second, so that the 66th comes after about a minute;
/// the back-off after the 70th is at most 8 s.
fn longest_back_off(before: u32) -> Duration {
    const WITHIN_A_MINUTE: u32 = 66;
    Duration::from_secs(1_u64 << before.saturating_sub(WITHIN_A_MINUTE).min(u64::BITS - 1))
}

impl ReconcileError {
    /// An error with an explicit class.
    pub fn new(class: Class, source: impl Into<BoxError>) -> Self {
        Self { class, source: source.into() }
    }

    /// An error that no retry fixes: the key is not requeued before something changes.
    pub fn terminal(source: impl Into<BoxError>) -> Self {
        Self::new(Class::Terminal, source)
    }

    /// The class of the error.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }
}

impl From<&ApiError> for Class {
    /// Derives the class from the response.
    ///
    /// An object that is not found is a conflict: the cache is behind. No refusal of the API server is terminal: another
    /// quota, limit range, policy or webhook may admit the same object later, and no event announces that. Only an
    /// object that cannot be serialized needs a change of its own.
    fn from(error: &ApiError) -> Self {
        match error.class() {
            ErrorClass::Unavailable => Self::Unavailable,
            ErrorClass::Terminal if error.status().is_none() => Self::Terminal,
            ErrorClass::Transient | ErrorClass::Gone | ErrorClass::Terminal => Self::Transient,
            ErrorClass::Conflict | ErrorClass::NotFound => Self::Conflict,
            ErrorClass::Forbidden => Self::Forbidden,
        }
    }
}

impl From<ApiError> for ReconcileError {
    /// The error with the class that its response has.
    fn from(error: ApiError) -> Self {
        Self::new(Class::from(&error), error)
    }
}

impl From<EditError> for ReconcileError {
    /// The JSON of an object is not what the API server should store: only a change of the object helps.
    fn from(error: EditError) -> Self {
        Self::terminal(error)
    }
}

#[cfg(test)]
mod tests {
    use kcm_client::Cause;

    use super::*;

    #[test]
    fn what_the_server_refuses_is_tried_again_and_only_a_broken_object_waits_for_a_change() {
        let refused = |code, message: &str| {
            let status = kcm_api::Status { code, message: message.to_owned(), ..kcm_api::Status::default() };
            ApiError::new("create pods in namespace \"a\"", Cause::Status(Box::new(status)))
        };
        let denied = "admission webhook \"a\" denied the request: no";
        let quota = "pods \"x\" is forbidden: exceeded quota: q";
        let unserializable = serde::ser::Error::custom("x");
        for (name, error, class) in [
            ("a webhook", refused(400, denied), Class::Transient),
            ("a policy", refused(422, "x is invalid"), Class::Transient),
            ("a quota", refused(403, quota), Class::Transient),
            ("the authorizer", refused(403, "pods is forbidden: User \"u\" cannot"), Class::Forbidden),
            ("a failing webhook", refused(500, "Internal error occurred: failed calling webhook"), Class::Unavailable),
            ("a busy server", refused(429, "too many requests"), Class::Unavailable),
            ("a newer version", refused(409, "modified"), Class::Conflict),
            ("a broken object", ApiError::new("create pods", Cause::Encode(unserializable)), Class::Terminal),
        ] {
            assert_eq!(ReconcileError::from(error).class(), class, "{name}");
        }
    }

    #[test]
    fn a_conflict_is_logged_once_it_persists_and_every_other_failure_at_once() {
        let logged = |class: Class| [0, 9, 10, 1000].map(|before| class.is_logged(before));
        assert_eq!(logged(Class::Conflict), [false, false, true, true]);
        for class in [Class::Transient, Class::Unavailable, Class::Terminal, Class::Forbidden] {
            assert_eq!(logged(class), [true; 4], "{class:?}");
        }
    }

    #[test]
    fn a_key_that_waits_for_a_server_is_tried_every_second_for_a_minute_and_less_often_after_it() {
        let longest = |before| longest_back_off(before).as_secs();
        assert_eq!([0, 8, 66].map(longest), [1; 3]);
        assert_eq!([67, 68, 69].map(longest), [2, 4, 8]);
        assert_eq!(longest(u32::MAX), 1 << 63);
        let backed_off: Duration =
            (0..66).map(|before| Duration::from_millis(5 << before.min(30)).min(longest_back_off(before))).sum();
        assert_eq!(backed_off.as_secs(), 59);
    }
}
