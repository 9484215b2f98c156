//! The checks of literals that an environment can demand.

/// A check of literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Validator {
    /// The argument of `duration` must be a duration.
    Durations,
    /// The argument of `timestamp` must be a point in time.
    Timestamps,
    /// The first argument of `matches` must be a regular expression of RE2. For the form without a receiver that is
    /// the text and not the expression, as in cel-go.
    RegularExpressions,
    /// The elements of lists, and the keys and values of maps, must have one type each. Arguments of `format` are
    /// exempt if [`Self::Format`] is on too.
    Homogeneous,
    /// The arguments of `format` must fit the text.
    Format,
}
