//! A run as data: a [`Schedule`] is a list of perturbations of the default order.
//!
//! Its text is the format of the files in which schedules are kept: one perturbation per line, the anchor before the
//! colon.
//!
//! ```
//! use kcm_simulation::Schedule;
//!
//! let text = "replicaset default/web write 2: kill after\ncache pods delivery 3: hold until 1 writes\n";
//! let schedule: Schedule = text.parse()?;
//! assert_eq!(schedule.len(), 2);
//! assert_eq!(schedule.to_string(), text);
//! # Ok::<(), kcm_simulation::ParseError>(())
//! ```

mod anchor;
mod text;
mod what;

use std::fmt;
use std::str::FromStr;

pub use anchor::{Access, Anchor, Place};
pub use text::ParseError;
pub use what::{By, Failure, Moment, Order, Relist, Settings, Until, What};

/// A run, as the perturbations of the default order. Without any it is the reference run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Schedule(pub Vec<Perturbation>);

/// A deviation from the default order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Perturbation {
    /// The point of the run at which it applies.
    pub at: Anchor,
    /// The deviation from the default order.
    pub what: What,
}

impl Schedule {
    /// The schedule with one perturbation.
    #[must_use]
    pub fn single(at: Anchor, what: What) -> Self {
        Self(vec![Perturbation { at, what }])
    }

    /// Returns the number of perturbations.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` for the reference run.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|perturbation| writeln!(f, "{perturbation}"))
    }
}

impl FromStr for Schedule {
    type Err = ParseError;

    /// Parses one perturbation per line. Empty lines and lines that begin with `#` are skipped.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Perturbation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}
