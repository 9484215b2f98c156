//! The error of a schedule.

/// A schedule that cannot be read, with the message of the Go library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in super::super) struct ParseError(String);

impl ParseError {
    pub(super) const fn new(message: String) -> Self {
        Self(message)
    }
}
