//! The feature gates.

use kcm_framework::config::gates::{
    MAX_UNAVAILABLE_STATEFUL_SET, STATEFUL_SET_RECREATE_STRATEGY, STATEFUL_SET_SEMANTIC_REVISION_COMPARISON,
};
use kcm_framework::config::{Gate, GateStage};

/// Gate of this project: with it, a rollout in order also replaces a broken pod of an earlier revision if no pod of that
/// revision is ready.
pub(super) const ROLLOUT_RECOVERY: Gate =
    Gate { name: "StatefulSetRolloutRecovery", default: false, stage: GateStage::Alpha, locked: false };

/// The feature gates that a reconcile depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "gates are independent of each other")]
pub(super) struct Gates {
    /// Gate `StatefulSetSemanticRevisionComparison`: a revision also equals a template that has the same meaning.
    pub(super) semantic_revisions: bool,
    /// Gate `MaxUnavailableStatefulSet`: a rollout replaces as many pods at once as `maxUnavailable` says.
    pub(super) max_unavailable: bool,
    /// Gate `StatefulSetRecreateStrategy`: the strategy `Recreate` is carried out.
    pub(super) recreate: bool,
    /// Gate `StatefulSetRolloutRecovery`.
    pub(super) rollout_recovery: bool,
}

impl Gates {
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            semantic_revisions: gate(&STATEFUL_SET_SEMANTIC_REVISION_COMPARISON),
            max_unavailable: gate(&MAX_UNAVAILABLE_STATEFUL_SET),
            recreate: gate(&STATEFUL_SET_RECREATE_STRATEGY),
            rollout_recovery: gate(&ROLLOUT_RECOVERY),
        }
    }
}
