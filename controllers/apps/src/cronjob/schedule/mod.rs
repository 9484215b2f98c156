//! Cron schedules: when they start.
//!
//! # Upstream
//! `robfig/cron/v3`, whose answers are in the table of the tests. Messages of errors are equal.

mod error;
mod field;
mod next;
mod parse;
mod zones;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(super) use error::ParseError;
pub(super) use zones::{TimeZones, UnknownTimeZone, local_time_zone};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Schedule {
    /// The minutes that all fields match.
    Fields(Fields),
    /// So many seconds after the last start, as `@every` says.
    Every {
        /// The seconds, at least one.
        seconds: i64,
    },
}

/// The fields of a schedule, each as the set of the numbers that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    minutes: u64,
    hours: u64,
    days_of_month: u64,
    months: u64,
    days_of_week: u64,
    zone: TimeZone,
}

impl Schedule {
    /// The first start after a time; absent where there is none within five years.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Fields(fields) => fields.next(after),
            // A part of a second does not carry over: all starts are at whole seconds.
            Self::Every { seconds } => Timestamp::from_second(next::whole_seconds(after).checked_add(*seconds)?).ok(),
        }
    }
}
