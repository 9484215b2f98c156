//! A reconcile that failed, and what follows from it.

use std::time::Duration;

use crate::client::{ApiError, ErrorClass};
use crate::error::BoxError;

/// Why a reconcile failed, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("reconcile failed")]
pub struct ReconcileError {
    class: Class,
    #[source]
    source: BoxError,
}

/// What follows from a failed reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It may succeed as it is: the key is retried with back-off.
    Transient,
    /// Somebody else was faster: the key is retried soon, and nobody needs to be told.
    Conflict,
    /// It cannot succeed before something changes: the key waits for that.
    Terminal,
    /// A permission is missing: the key is retried after a long time.
    Forbidden,
}

/// What becomes of the key of a failed reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// With the key's own back-off.
    BackOff,
    /// After a fixed delay.
    After(Duration),
    /// When something changes.
    OnChange,
}

impl Class {
    /// How long a key waits for a permission: granting one is a person's work, and wakes nobody.
    pub const FORBIDDEN_DELAY: Duration = Duration::from_mins(1);

    /// The one place that decides about retries.
    pub(super) const fn retry(self) -> Retry {
        match self {
            // The first retries of the back-off are a few milliseconds away, which is soon enough for a conflict.
            Self::Transient | Self::Conflict => Retry::BackOff,
            Self::Forbidden => Retry::After(Self::FORBIDDEN_DELAY),
            Self::Terminal => Retry::OnChange,
        }
    }

    /// Whether people are told of a failure of a key that had failed `before` times in a row.
    ///
    /// Conflicts are everyday's business; one that goes on for seconds is a quarrel with somebody, or an object that
    /// never comes.
    pub(super) const fn is_told(self, before: u32) -> bool {
        const STUBBORN: u32 = 10;
        match self {
            Self::Conflict => before >= STUBBORN,
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
    /// An error of a class that the caller knows better than the error does.
    pub fn new(class: Class, source: impl Into<BoxError>) -> Self {
        Self { class, source: source.into() }
    }

    /// What follows from it.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }
}

impl From<ApiError> for ReconcileError {
    /// Takes the class from the API's answer. An object that is not found is a conflict: the cache was behind.
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
    fn a_conflict_is_told_once_it_goes_on_and_every_other_failure_at_once() {
        let told = |class: Class| [0, 9, 10, 1000].map(|before| class.is_told(before));
        assert_eq!(told(Class::Conflict), [false, false, true, true]);
        for class in [Class::Transient, Class::Terminal, Class::Forbidden] {
            assert_eq!(told(class), [true; 4], "{class:?}");
        }
    }
}
