//! The order of a reconcile: observe, claim, revisions, plan, apply, status.

use jiff::Timestamp;
use kcm_api::views::PodTargetNode;
use kcm_api::{ObjectKey, PartReader};
use kcm_framework::ownership::{Claims, Owner, adopt_and_release};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use parking_lot::Mutex;

use super::apply::Writer;
use super::backoff::FailedPodBackoff;
use super::changes::{DeleteReason, PodChanges};
use super::events::EventReason;
use super::history::History;
use super::observe::Caches;
use super::plan::plan;
use super::pods_by_node::next_availability;
use super::revision::CurrentRevision;
use super::rollout::Limits;
use super::settings::Settings;
use super::snapshot::Snapshot;
use crate::shared::revisions::RevisionData;

/// Reconciles daemon sets.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) targets: PartReader<PodTargetNode>,
    pub(super) settings: Settings,
    pub(super) backoff: Mutex<FailedPodBackoff>,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(observed) = self.caches.observe(key) else { return Ok(()) };
        let set = &*observed.set;
        let selector = match &set.selector {
            Ok(selector) if selector.is_everything() => {
                session.explain(|| "does nothing, as the selector is empty and would select all pods");
                session.record(set, &EventReason::SelectingAll);
                return Ok(());
            }
            Ok(selector) => selector,
            Err(error) => {
                // A selector is immutable: a retry cannot succeed.
                tracing::error!(%error, "Daemon set has an invalid selector");
                session.explain(|| "does nothing until the daemon set changes, as its selector is invalid");
                return Ok(());
            }
        };
        if set.metadata.is_terminating() {
            // Its revisions may be gone already, so that its status cannot be computed.
            session.explain(|| "does nothing, as the daemon set is being deleted");
            return Ok(());
        }

        let data = RevisionData::of(set.template()).map_err(|error| ReconcileError::new(Class::Terminal, error))?;
        let (owner, writer) = (Owner::of(set), Writer { session, set });
        let claims = Claims::of(owner, selector, &observed.revisions);
        let history = History::of(adopt_and_release(session, owner, claims).await?, &data);
        let pods = adopt_and_release(session, owner, Claims::of(owner, selector, &observed.pods)).await?;
        let Some(hash) = writer.apply_history(&history, &data, &pods).await? else {
            session.explain(|| "changes revisions, and leaves pods to the reconcile of a later event");
            return Ok(());
        };

        let (revision, now) = (CurrentRevision::new(set, hash), session.now());
        let snapshot = Snapshot::of((set, &observed.nodes, &pods), self.targets, revision, self.settings, now);
        let limits =
            Limits::of(set, snapshot.desired()).map_err(|error| ReconcileError::new(Class::Terminal, error))?;
        let plan = plan(&snapshot, limits, &self.backoff.lock());
        session.explain(|| plan.explain(&snapshot));
        self.start_backoff(&plan.changes, now);
        let mut applied = writer.apply(&plan.changes, &snapshot.revision).await;
        if applied.is_ok() {
            let exceeding = history.exceeding(set.revision_history_limit, &pods);
            applied = writer.delete_revisions(&exceeding).await.map_err(ReconcileError::from);
        }

        // The status is written after a failure too: nodes that have their pods are reported.
        if plan.status != set.status {
            let written = writer.put_status(&plan.status).await;
            applied = applied.and(written);
        }
        applied?;
        let available = next_availability(&pods, set.min_ready_seconds, now);
        let recheck = plan.changes.recheck.into_iter().chain(available).min();
        Ok(recheck.map_or_else(|| (), |at| session.requeue_by(at)))
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
