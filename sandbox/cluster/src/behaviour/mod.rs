//! What containers do, as people say it: `crash after=5s times=3`. Pure.

mod image;
mod phrase;
mod rules;

use std::time::Duration;

pub(crate) use image::behaviour as of_image;
pub(crate) use image::is_malformed as is_malformed_image;
pub use phrase::PhraseError;
pub(crate) use rules::Subject;
pub use rules::{PodRules, RulesError};

/// From so long to so long.
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

/// What becomes of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pull {
    Takes(Range),
    Fails,
}

/// When a running container is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    After(Range),
    Never,
}

/// How a running container ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It does not.
    Never,
    Exits {
        code: i32,
        after: Range,
        /// How often; afterwards it runs on.
        times: Option<u32>,
    },
}

/// How a container answers to being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    After(Range),
    /// It runs until its grace period is over, and is killed then.
    Never,
    /// Nothing ends it.
    Stuck,
}

/// What a container does, as far as something was said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Behaviour {
    pub(crate) start: Option<Range>,
    pub(crate) pull: Option<Pull>,
    pub(crate) ready: Option<Ready>,
    pub(crate) end: Option<End>,
    pub(crate) stop: Option<Stop>,
}

impl Behaviour {
    /// This, and what `other` says of what this says nothing about.
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
