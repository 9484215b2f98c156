//! The settings.

use kcm_api::scheduling::ComparisonOperators;
use kcm_config::gates::TAINT_TOLERATION_COMPARISON_OPERATORS;
use kcm_config::{Gate, Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-daemonset-syncs";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[Row::new(CONCURRENT_SYNCS, "Daemonset-controller", Initial::Int32(2))
    .path("DaemonSetController.ConcurrentDaemonSetSyncs")
    .help("How many daemon sets are worked on at once. More is faster, and loads the API server and the network more.")
    .check(checks::positive)
    .reloaded()];

/// The feature gates that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Gate `TaintTolerationComparisonOperators`: the operators `Gt` and `Lt` of tolerations compare numbers.
    pub(super) comparison: ComparisonOperators,
}

impl Settings {
    /// Reads the gates.
    pub(super) fn from_gates(gate: impl Fn(&Gate) -> bool) -> Self {
        let enabled = gate(&TAINT_TOLERATION_COMPARISON_OPERATORS);
        Self { comparison: if enabled { ComparisonOperators::Enabled } else { ComparisonOperators::Disabled } }
    }
}
