//! How large scenarios are.

/// The size of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// About a tenth, for development.
    Quick,
    /// The size of the record.
    Full,
}

impl Size {
    pub(super) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}
