//! The outcome of a write, as far as it is known.

use tokio::time::Instant;

/// The outcome of a write, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It took effect, or it never will, or no second one can.
    Known,
    /// It may take effect until `deadline`; the deadline of an attempt in progress is not known.
    Unknown {
        /// The time after which the request can no longer take effect.
        deadline: Option<Instant>,
    },
}
