//! Container behaviour, as written in phrases such as `crash after=5s times=3`. Pure.

mod image;
mod phrase;
mod rules;

use std::time::Duration;

pub(crate) use image::behaviour as of_image;
pub(crate) use image::is_malformed as is_malformed_image;
pub use phrase::PhraseError;
pub(crate) use rules::Subject;
pub use rules::{PodRules, RulesError};

/// A range of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Range {
    pub(crate) const fn millis(min: u64, max: u64) -> Self {
        Self { min: Duration::from_millis(min), max: Duration::from_millis(max) }
    }
}

/// The result of the image pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pull {
    Takes(Range),
    Fails,
}

/// When a running container becomes ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    After(Range),
    Never,
}

/// The end of a running container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It does not terminate.
    Never,
    Exits {
        code: i32,
        after: Range,
        /// Number of runs that terminate; later ones keep running.
        times: Option<u32>,
    },
}

/// The response of a container to SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    After(Range),
    /// It ignores SIGTERM and is killed at the end of its grace period.
    Never,
    /// It cannot be killed.
    Stuck,
}

/// The specified behaviour of a container; unspecified fields are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Behaviour {
    pub(crate) start: Option<Range>,
    pub(crate) pull: Option<Pull>,
    pub(crate) ready: Option<Ready>,
    pub(crate) end: Option<End>,
    pub(crate) stop: Option<Stop>,
}

impl Behaviour {
    /// Returns this behaviour, with unspecified fields taken from `other`.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            start: self.start.or(other.start),
            pull: self.pull.or(other.pull),
            ready: self.ready.or(other.ready),
            end: self.end.or(other.end),
            stop: self.stop.or(other.stop),
        }
    }
}
