//! The settings.

use kcm_config::gates::{MAX_UNAVAILABLE_STATEFUL_SET, STATEFUL_SET_SEMANTIC_REVISION_COMPARISON};
use kcm_config::{Gate, GateStage, Initial, Row, checks};

/// How many keys are reconciled at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-statefulset-syncs";

/// Whether a pod that is not ready, of an earlier revision of which no pod is, is replaced in order. A gate of ours.
pub(super) const ROLLOUT_RECOVERY: Gate =
    Gate { name: "StatefulSetRolloutRecovery", default: false, stage: GateStage::Alpha, locked: false };

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[Row::new(CONCURRENT_SYNCS, "Statefulset-controller", Initial::Int32(5))
    .path("StatefulSetController.ConcurrentStatefulSetSyncs")
    .help(
        "How many stateful sets are worked on at once. More is faster, and loads the API server and the network more.",
    )
    .check(checks::positive)
    .reloaded()];

/// The feature gates that a reconcile depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Gate `StatefulSetSemanticRevisionComparison`: a revision also equals a template that has the same meaning.
    pub(super) semantic_revisions: bool,
    /// Gate `MaxUnavailableStatefulSet`: a rollout replaces as many pods at once as `maxUnavailable` says.
    pub(super) max_unavailable: bool,
    /// Gate `StatefulSetRolloutRecovery`: a pod of an earlier revision that never became ready is replaced in order.
    pub(super) rollout_recovery: bool,
}

impl Settings {
    /// Reads the gates.
    pub(super) fn from_gates(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            semantic_revisions: gate(&STATEFUL_SET_SEMANTIC_REVISION_COMPARISON),
            max_unavailable: gate(&MAX_UNAVAILABLE_STATEFUL_SET),
            rollout_recovery: gate(&ROLLOUT_RECOVERY),
        }
    }
}
