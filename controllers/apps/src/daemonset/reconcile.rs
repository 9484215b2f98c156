//! The order of a reconcile: observe, claim, revisions, plan, apply, status.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{DaemonSet, PodTargetNode};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::ownership::{Claims, Owner, adopt_and_release};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;

use super::apply::Writer;
use super::backoff::FailedPodBackoff;
use super::changes::{DeleteReason, PodChanges};
use super::creation_order::FailedCreations;
use super::events::DaemonSetEvent;
use super::gates::Gates;
use super::history::History;
use super::observe::Caches;
use super::plan::plan;
use super::pods_by_node::next_availability;
use super::revision::CurrentRevision;
use super::rollout::Limits;
use super::snapshot::Snapshot;
use crate::shared::revisions::RevisionData;

/// Reconciles `DaemonSets`.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) targets: PartReader<PodTargetNode>,
    pub(super) gates: Gates,
    pub(super) backoff: Mutex<FailedPodBackoff>,
    pub(super) failed_creations: Mutex<FailedCreations>,
}

#[async_trait]
impl ReconcileObject<DaemonSet> for Reconciler {
    async fn reconcile(&self, set: &Arc<DaemonSet>, session: &Session) -> Result<(), ReconcileError> {
        let set = &**set;
        let selector = match &set.selector {
            Ok(selector) if selector.is_everything() => {
                session.explain(|| "does nothing, as the selector is empty and would select all pods");
                session.record(set, &DaemonSetEvent::SelectingAll);
                return Ok(());
            }
            Ok(selector) => selector,
            Err(error) => {
                session.wait_for_change("its selector is invalid", error);
                return Ok(());
            }
        };
        if set.metadata.is_terminating() {
            // Its revisions may be deleted already, so that its status cannot be computed.
            session.explain(|| "does nothing, as the daemon set is being deleted");
            return Ok(());
        }

        let data = RevisionData::of(set.template()).map_err(ReconcileError::terminal)?;
        let (observed, owner, writer) = (self.caches.observe(set), Owner::of(set), Writer { session, set });
        if let Some(node) = self.caches.undecodable_node_of(&observed.pods, self.targets) {
            // Its pods would be deleted or not counted, as if there was no such node.
            session.requeue_when_decodable(&self.caches.nodes.cache(), &node);
            session.explain(|| format!("does nothing, as node {} cannot be decoded", node.key.name()));
            return Ok(());
        }
        let pods = Claims::of(owner, selector, &observed.pods);
        let own = pods.kept.iter().chain(&pods.adopt);
        session.requeue_by(next_availability(own, set.min_ready_seconds, session.now()));
        let revisions = Claims::of(owner, selector, &observed.revisions);
        let history = History::of(adopt_and_release(session, owner, revisions).await?, &data);
        let pods = adopt_and_release(session, owner, pods).await?;
        let Some(hash) = writer.apply_history(&history, &data, &pods).await? else {
            session.explain(|| "changes revisions, and leaves pods to the reconcile of a later event");
            return Ok(());
        };

        let (revision, now) = (CurrentRevision::new(set, hash), session.now());
        let failures = self.failed_creations.lock().of(&set.metadata.key);
        let snapshot = Snapshot::of((set, &observed.nodes, &pods), self.targets, revision, failures, self.gates, now);
        let (limits, valid) = match Limits::of(set, snapshot.desired()) {
            Ok(limits) => (limits, Ok(())),
            Err(error) => (Limits::unreadable(set), Err(ReconcileError::terminal(error))),
        };
        let plan = plan(&snapshot, limits, &self.backoff.lock());
        session.requeue_by(plan.changes.recheck);
        session.explain(|| plan.explain(&snapshot));
        self.start_backoff(&plan.changes, now);
        let creations = &plan.changes.create;
        let (failed, created) = writer.create_pods(creations, &snapshot.revision).await;
        let failed: Vec<&str> =
            failed.iter().filter_map(|at| creations.get(*at)).map(|creation| &*creation.node).collect();
        self.failed_creations.lock().record(&set.metadata.key, &failed);
        // Deletions are tried after a failed creation too.
        let deleted = writer.delete_pods(&plan.changes).await;
        let mut applied = created.and(deleted).and(valid);
        if applied.is_ok() {
            let exceeding = history.exceeding(set.revision_history_limit, &pods);
            applied = writer.delete_revisions(&exceeding).await.map_err(ReconcileError::from);
        }

        // The status is written after a failure too: nodes that have their pods are reported.
        if plan.status != set.status {
            let written = writer.update_status(&plan.status).await;
            applied = applied.and(written);
        }
        applied
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.failed_creations.lock().forget(key);
        Ok(())
    }
}

impl Reconciler {
    /// Starts the back-off of the nodes whose failed pods are deleted.
    fn start_backoff(&self, changes: &PodChanges, now: Timestamp) {
        let mut backoff = self.backoff.lock();
        for deletion in &changes.delete {
            if let DeleteReason::Failed(key) = &deletion.reason {
                backoff.deleted(key.clone(), now);
            }
        }
    }
}
