//! Explains the plan of a reconcile to operators.

use std::collections::BTreeMap;

use super::changes::{CreateReason, DeleteReason};
use super::placement::{LeaveReason, Placement};
use super::plan::{Plan, Step};
use super::snapshot::Snapshot;

/// The number of names that are listed.
const NAMED: usize = 3;

impl Plan {
    /// Explains the plan for a `DaemonSet`, and why nodes have no pod.
    pub(super) fn explain(&self, snapshot: &Snapshot<'_>) -> String {
        let status = &self.status;
        let counts = format!(
            "{} nodes should run the daemon, {} have a pod, {} of the present template, {} available",
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.updated_number_scheduled,
            status.number_available
        );
        let mut sentences: Vec<String> = self.explain_changes();
        if sentences.is_empty() {
            sentences.push("creates and deletes no pod".to_owned());
        } else if self.step == Step::RollingUpdate {
            sentences.insert(0, "rolls the template out".to_owned());
        }
        sentences.extend(explain_unplaced(snapshot));
        format!("{} ({counts})", sentences.join("; "))
    }

    fn explain_changes(&self) -> Vec<String> {
        let mut created: BTreeMap<CreateReason, Vec<&str>> = BTreeMap::new();
        for creation in &self.changes.create {
            created.entry(creation.reason).or_default().push(&creation.node);
        }
        let mut deleted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for deletion in &self.changes.delete {
            deleted.entry(deletion.reason.explain()).or_default().push(deletion.pod.metadata.key.name());
        }
        let creations = created
            .into_iter()
            .map(|(reason, nodes)| format!("creates pods for {}, as {}", names(&nodes), reason.explain()));
        let deletions = deleted.into_iter().map(|(reason, pods)| format!("deletes {}, as {reason}", names(&pods)));
        creations.chain(deletions).collect()
    }
}

impl CreateReason {
    const fn explain(self) -> &'static str {
        match self {
            Self::Missing => "these nodes should run the daemon and have no pod",
            Self::OldUnavailable => "their old pods are not available",
            Self::Surge => "maxSurge leaves room for new pods beside the old ones",
        }
    }
}

impl DeleteReason {
    const fn explain(&self) -> &'static str {
        match self {
            Self::Failed(_) => "they have failed",
            Self::Succeeded(_) => "they have succeeded, and a daemon runs for ever",
            Self::Surplus => "their nodes have more pods than one",
            Self::NotPlaced => "their nodes should not run the daemon",
            Self::NodeMissing => "their nodes do not exist",
            Self::OldNotReady => "they have an old template and are not ready, and new pods are there",
            Self::Replaced => "they have an old template, and new pods are available",
            Self::OldUnavailable => "they have an old template and are not available",
            Self::Update => "they have an old template, and maxUnavailable allows it",
            Self::NotPlacedAnyMore => "their nodes should not run the daemon any more, and enough others are available",
        }
    }
}

/// Explains why nodes should not run the daemon, with the nodes of each reason.
fn explain_unplaced(snapshot: &Snapshot<'_>) -> Vec<String> {
    let mut nodes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (node, placement) in &snapshot.placements {
        if let Some(reason) = placement.explain() {
            nodes.entry(reason).or_default().push(node);
        }
    }
    nodes.into_iter().map(|(reason, nodes)| format!("no pod for {}, as {reason}", names(&nodes))).collect()
}

impl Placement<'_> {
    fn explain(self) -> Option<String> {
        Some(match self {
            Self::Run => return None,
            Self::Keep { taint } => {
                format!("the daemon does not tolerate the taint {}:{}, which lets pods stay", taint.key, taint.effect)
            }
            Self::Leave(LeaveReason::OtherNode) => "the template names another node".to_owned(),
            Self::Leave(LeaveReason::NotSelected) => "node selector and affinity do not select it".to_owned(),
            Self::Leave(LeaveReason::Taint(taint)) => {
                format!("the daemon does not tolerate the taint {}:{}", taint.key, taint.effect)
            }
        })
    }
}

/// Returns the first names, and the number of the others.
fn names(all: &[&str]) -> String {
    let named = all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
