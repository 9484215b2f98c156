//! The context of a write, and its time.

use std::time::Duration;

use jiff::Timestamp;

use super::field_manager::FieldManager;
use super::target::Target;

/// The time of a request.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Time since the start of the sandbox.
    pub elapsed: Duration,
    /// The wall-clock time for object timestamps.
    pub time: Timestamp,
}

impl Now {
    /// Formats the time in whole seconds, as objects store it.
    #[must_use]
    pub fn stamp(self, after_seconds: i64) -> String {
        let second = self.time.as_second().saturating_add(after_seconds);
        kcm_api::time::format_seconds(Timestamp::from_second(second).unwrap_or(Timestamp::MAX))
    }
}

/// The parameters that all writes share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) target: &'a Target,
    pub(crate) dry_run: bool,
    pub(crate) field_manager: FieldManager<'a>,
    pub(crate) now: Now,
}
