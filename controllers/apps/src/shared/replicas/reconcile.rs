//! The order of a reconcile: observe, claim, plan, apply, status.

use std::sync::Arc;

use kcm_framework::ownership::{Owner, adopt_and_release};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::Writer;
use super::claim::plan_claims;
use super::error::ScaleError;
use super::gates::Gates;
use super::metrics::Metrics;
use super::observe::Caches;
use super::owner::ReplicaOwner;
use super::plan::{Plan, plan};
use super::status::{CountedPods, recheck_at, status};

/// Reconciles the objects of a kind.
pub(super) struct Reconciler<V> {
    pub(super) caches: Caches<V>,
    pub(super) gates: Gates,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl<V: ReplicaOwner> ReconcileObject<V> for Reconciler<V> {
    async fn reconcile(&self, owner: &Arc<V>, session: &Session) -> Result<(), ReconcileError> {
        let selector = match owner.selector() {
            Ok(selector) => selector,
            Err(error) => {
                session.wait_for_change("its selector is invalid", error);
                return Ok(());
            }
        };
        let observed = self.caches.observe(owner);
        let claims = plan_claims(&observed, selector);
        let terminating = claims.terminating;
        let own = claims.active.kept.iter().chain(&claims.active.adopt);
        session.requeue_by(recheck_at(&**owner, own, session.now()));
        let active = adopt_and_release(session, Owner::of(&**owner), claims.active).await?;

        let writer = Writer { session, metrics: &self.metrics, owner: &**owner };
        let plan = plan(&observed, &active, self.gates, session.now());
        session.explain(|| plan.explain(V::NOUN, owner.replicas(), active.len()));
        let scaled = match plan {
            Plan::Idle(reason) => {
                tracing::debug!(?reason, pods = active.len(), "Planned no change of the number of pods");
                Ok(())
            }
            Plan::Scale(step) => writer.apply(step).await,
        };

        // The status is written after a failure too, which it reports.
        let failure = scaled.as_ref().err().and_then(ScaleError::failure);
        let counted = CountedPods { active: &active, terminating };
        let status = status(&**owner, counted, failure.as_ref(), self.gates, session.now());
        if status != *owner.status() {
            writer.update_status(&status).await?;
        }
        Ok(scaled?)
    }
}
