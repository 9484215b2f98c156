//! The order of a reconcile: observe, claim, find the revisions, plan, apply, status, history.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodVolumes, StatefulSet};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::ownership::{Owner, adopt_and_release};
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{Writer, apply_revisions, delete_old_revisions};
use super::events::StatefulSetEvent;
use super::gates::Gates;
use super::metrics::Metrics;
use super::observe::Caches;
use super::plan::plan;
use super::recreate::{check_strategy, set_progress};
use super::revisions::Revisions;
use super::status::{after_rollout, is_outdated, recheck_at, status};
use super::steps::{Input, Recreation};
use crate::shared::revisions::sort;

/// Reconciles `StatefulSets`.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) volumes: PartReader<PodVolumes>,
    pub(super) gates: Gates,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl ReconcileObject<StatefulSet> for Reconciler {
    async fn reconcile(&self, set: &Arc<StatefulSet>, session: &Session) -> Result<(), ReconcileError> {
        let selector = match &set.selector {
            Ok(selector) => selector,
            Err(error) => {
                session.wait_for_change("its selector is invalid", error);
                return Ok(());
            }
        };
        let observed = self.caches.observe(set);
        let pods = observed.claim_pods(selector);
        session.requeue_by(recheck_at(set, pods.kept.iter().chain(&pods.adopt), session.now()));
        let owner = Owner::of(&**set);
        let mut revisions = adopt_and_release(session, owner, observed.claim_revisions(selector)).await?;
        sort(&mut revisions);
        let pods = adopt_and_release(session, owner, pods).await?;

        if set.metadata.is_terminating() {
            // The garbage collector deletes the revisions, and none is created for it to delete.
            return self.sync(session, set, &pods, &Revisions::of_status(set)).await;
        }
        let found = apply_revisions(session, set, &revisions, self.gates).await;
        let synced = match (&found, check_strategy(set, self.gates)) {
            (Ok(found), Ok(())) => self.sync(session, set, &pods, found).await,
            (Ok(_), Err(unknown)) => {
                session.explain(|| "changes no pod: its update strategy is not carried out");
                session.record(&**set, &StatefulSetEvent::UnknownStrategy { message: unknown.to_string() });
                // Each retry repeats the event, which the API server deletes after an hour.
                Err(ReconcileError::new(Class::Transient, unknown))
            }
            (Err(_), _) => Ok(()),
        };
        let truncated = delete_old_revisions(session, set, &pods, &revisions, found.as_ref().ok()).await;
        found?;
        synced?;
        Ok(truncated?)
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.metrics.forget(key);
        Ok(())
    }
}

impl Reconciler {
    async fn sync(
        &self,
        session: &Session,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        revisions: &Revisions,
    ) -> Result<(), ReconcileError> {
        let (claims, gates, now) = (&self.caches.claims, self.gates, session.now());
        let plan = plan(Input { set, pods, revisions, claims, volumes: self.volumes, gates, now });
        tracing::debug!(phases = plan.phases.len(), wait = ?plan.wait, "Planned");
        session.explain(|| plan.explain());
        if gates.max_unavailable {
            self.metrics.observe(set, plan.unavailable);
        }

        let writer = Writer { session, set, revisions };
        let (going, applied) = writer.apply(&plan.phases).await;

        // The status is written after a failure too.
        let mut status = after_rollout(set, status(set, revisions, &plan.counted, now), going);
        // Upstream reports deletions only after all of them succeeded.
        let recreation = plan.recreation.filter(|state| applied.is_ok() || *state == Recreation::Creating);
        set_progress(set, &mut status, recreation, gates, now);
        let written = if is_outdated(&set.status, &status) { writer.update_status(&status).await } else { Ok(()) };
        applied?;
        written
    }
}
