//! Broken rules: [`Violation`], and the functions that find them.

use std::fmt;

use crate::history::History;

/// A rule of a controller that must hold for every history.
///
/// It is a plain function in the folder of the controller. The violation names the rule, for example `D2.1`.
pub type Invariant = fn(&History) -> Result<(), Violation>;

/// A rule that a run has broken.
///
/// Two violations are the same failure if `rule` and `what` are equal. So `what` has neither uids nor resource versions
/// nor generated names, and those go into `detail`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Id of the rule: an oracle such as `O2`, or an invariant such as `D2.1`.
    pub rule: String,
    /// The rule that was broken and by what, without anything that differs between two runs with the same failure.
    pub what: String,
    /// The objects and numbers of this run.
    pub detail: String,
    /// Index in [`History::changes`] of the write that broke the rule, if it was a write.
    pub change: Option<usize>,
}

impl Violation {
    /// Creates the violation of a rule.
    #[must_use]
    pub fn new(rule: impl Into<String>, what: impl Into<String>) -> Self {
        Self { rule: rule.into(), what: what.into(), detail: String::new(), change: None }
    }

    /// Adds the objects and numbers of this run.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// Adds the index of the write that broke the rule.
    #[must_use]
    pub fn at(self, change: usize) -> Self {
        Self { change: Some(change), ..self }
    }

    /// Returns `true` if both are the same failure.
    #[must_use]
    pub fn is_same_failure(&self, other: &Self) -> bool {
        self.rule == other.rule && self.what == other.what
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        self.change.map_or(Ok(()), |change| write!(f, ", at change {change}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failure_may_have_other_objects_in_another_run() {
        let one = Violation::new("D2.1", "more pods than wanted").detail("web-abcde").at(3);
        let other = Violation::new("D2.1", "more pods than wanted").detail("web-fghij").at(5);
        assert!(one.is_same_failure(&other));
        assert!(!one.is_same_failure(&Violation::new("D2.2", "more pods than wanted")));
        assert_eq!(one.to_string(), "D2.1: more pods than wanted (web-abcde), at change 3");
    }
}
