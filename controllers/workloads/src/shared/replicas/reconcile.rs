//! The order of a reconcile: observe, claim, plan, apply, status.

use kcm_api::ObjectKey;
use kcm_framework::ownership::{Owner, adopt_and_release};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::Writer;
use super::claim::plan_claims;
use super::error::ScaleError;
use super::metrics::Metrics;
use super::observe::Caches;
use super::owner::ReplicaOwner;
use super::plan::{Plan, plan};
use super::settings::Settings;
use super::status::{CountedPods, recheck_at, status};

/// Reconciles the objects of a kind.
pub(super) struct Reconciler<V> {
    pub(super) caches: Caches<V>,
    pub(super) settings: Settings,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl<V: ReplicaOwner> Reconcile for Reconciler<V> {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(observed) = self.caches.observe(key) else { return Ok(()) };
        let owner = &*observed.owner;
        let selector = match owner.selector() {
            Ok(selector) => selector,
            Err(error) => {
                // A selector is immutable: a retry cannot succeed.
                tracing::error!(kind = V::NOUN, %error, "The selector is invalid");
                session.explain(|| format!("does nothing until the {} changes, as its selector is invalid", V::NOUN));
                return Ok(());
            }
        };

        let claims = plan_claims(&observed, selector);
        let terminating = claims.terminating;
        let active = adopt_and_release(session, Owner::of(owner), claims.active).await?;

        let writer = Writer { session, metrics: &self.metrics, owner };
        let plan = plan(&observed, &active, self.settings, session.now());
        session.explain(|| plan.explain(V::NOUN, owner.replicas(), active.len()));
        let scaled = match plan {
            Plan::Idle(reason) => {
                tracing::debug!(?reason, pods = active.len(), "Planned no change of the number of pods");
                Ok(())
            }
            Plan::Scale(step) => writer.apply(step).await,
        };

        // The status is written after a failure too, which it reports.
        let now = session.now();
        let failure = scaled.as_ref().err().and_then(ScaleError::failure);
        let status = status(owner, CountedPods { active: &active, terminating }, failure.as_ref(), self.settings, now);
        if status != *owner.status() {
            writer.put_status(&status).await?;
        }
        scaled?;
        let recheck = recheck_at(owner, &active, &status, now);
        Ok(recheck.map_or_else(|| (), |at| session.requeue_by(at)))
    }
}
