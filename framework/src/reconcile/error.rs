//! The errors of a reconcile, and when the key is requeued.

use std::time::Duration;

use crate::client::{ApiError, ErrorClass};
use crate::error::BoxError;

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
    /// After a fixed delay.
    After(Duration),
    /// When something changes.
    OnChange,
}

impl Class {
    /// The delay after a missing permission: an administrator grants it, and no watch event follows.
    pub const FORBIDDEN_DELAY: Duration = Duration::from_mins(1);

    /// When the key is requeued.
    pub(super) const fn retry(self) -> Retry {
        match self {
            // The first retries of the back-off are a few milliseconds away, which is soon enough for a conflict.
            Self::Transient | Self::Conflict => Retry::BackOff,
            Self::Forbidden => Retry::After(Self::FORBIDDEN_DELAY),
            Self::Terminal => Retry::OnChange,
        }
    }

    /// Whether a failure of a key that had failed `before` times in a row is logged as a warning or an error.
    ///
    /// A single conflict is normal; one that persists for seconds shows another writer of the same fields, or an object
    /// that never appears in the cache.
    pub(super) const fn is_logged(self, before: u32) -> bool {
        const PERSISTENT: u32 = 10;
        match self {
            Self::Conflict => before >= PERSISTENT,
            Self::Transient | Self::Terminal | Self::Forbidden => true,
        }
    }

    /// The value of the label `class` in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Terminal => "terminal",
            Self::Forbidden => "forbidden",
        }
    }
}

impl ReconcileError {
    /// An error with an explicit class.
    pub fn new(class: Class, source: impl Into<BoxError>) -> Self {
        Self { class, source: source.into() }
    }

    /// The class of the error.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }
}

impl From<ApiError> for ReconcileError {
    /// Derives the class from the response. An object that is not found is a conflict: the cache is behind.
    fn from(error: ApiError) -> Self {
        let class = match error.class() {
            ErrorClass::Transient | ErrorClass::Gone => Class::Transient,
            ErrorClass::Conflict | ErrorClass::NotFound => Class::Conflict,
            ErrorClass::Terminal => Class::Terminal,
            ErrorClass::Forbidden => Class::Forbidden,
        };
        Self::new(class, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_logged_once_it_persists_and_every_other_failure_at_once() {
        let logged = |class: Class| [0, 9, 10, 1000].map(|before| class.is_logged(before));
        assert_eq!(logged(Class::Conflict), [false, false, true, true]);
        for class in [Class::Transient, Class::Terminal, Class::Forbidden] {
            assert_eq!(logged(class), [true; 4], "{class:?}");
        }
    }
}
