//! Event mapping: the daemon sets that a change enqueues.

use kcm_api::views::DaemonSet;
use kcm_framework::ownership::{OwnerLister, Owners};

/// The daemon sets as owners of pods and revisions: a change of one enqueues the set that controls it, before and after
/// the change. That of an orphan enqueues all sets that select it: one of them adopts it.
///
/// Nodes enqueue daemon sets through a queue of their own: see `node_updates.rs`.
pub(super) fn owners<L: OwnerLister<DaemonSet>>(sets: L) -> Owners<DaemonSet, L> {
    Owners::known(sets, |set| set.selector.as_ref().ok())
}
