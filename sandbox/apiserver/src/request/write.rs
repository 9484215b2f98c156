//! What all writes have in common, and their time.

use std::time::Duration;

use jiff::Timestamp;

use super::field_manager::FieldManager;
use super::target::Target;

/// The time of a request.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Since the sandbox was made.
    pub elapsed: Duration,
    /// As objects are stamped.
    pub time: Timestamp,
}

impl Now {
    /// The time as objects carry it, in whole seconds.
    #[must_use]
    pub fn stamp(self, after_seconds: i64) -> String {
        let second = self.time.as_second().saturating_add(after_seconds);
        kcm_api::time::format_seconds(Timestamp::from_second(second).unwrap_or(Timestamp::MAX))
    }
}

/// A write, as far as all writes are alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) target: &'a Target,
    pub(crate) dry_run: bool,
    pub(crate) field_manager: FieldManager<'a>,
    pub(crate) now: Now,
}
