//! The feature gates.

use kcm_framework::api::scheduling::ComparisonOperators;
use kcm_framework::config::Gate;
use kcm_framework::config::gates::TAINT_TOLERATION_COMPARISON_OPERATORS;

/// The feature gates that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    /// Gate `TaintTolerationComparisonOperators`: the operators `Gt` and `Lt` of tolerations compare numbers.
    pub(super) comparison: ComparisonOperators,
}

impl Gates {
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        let enabled = gate(&TAINT_TOLERATION_COMPARISON_OPERATORS);
        Self { comparison: if enabled { ComparisonOperators::Enabled } else { ComparisonOperators::Disabled } }
    }
}
