//! The order of a reconcile: plan by the cache, live list of Pods if it matters, plan, write.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{PersistentVolumeClaim, Pod};
use kcm_framework::client::{ApiError, ResponseExt as _};
use kcm_framework::informers::{Index, Informer};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::condition::with_unused;
use super::live_pods::{self, LivePod, LivePods};
use super::plan::{FINALIZER, Plan, plan};
use super::terminating::Terminating;
use super::usage::PodReader;
use crate::shared::protection::{Protection, protected};

pub(super) struct Reconciler {
    /// The gate of the condition `Unused`.
    pub(super) records_use: bool,
    pub(super) reader: PodReader,
    pub(super) pods: Informer<Pod>,
    pub(super) pods_of_claim: Index<Pod, ObjectKey>,
    pub(super) live_pods: LivePods,
    pub(super) terminating: Arc<Terminating>,
}

#[async_trait]
impl ReconcileObject<PersistentVolumeClaim> for Reconciler {
    async fn reconcile(&self, claim: &Arc<PersistentVolumeClaim>, session: &Session) -> Result<(), ReconcileError> {
        let mut planned = self.plan(claim);
        if planned.needs_live_pods() {
            if self.waits_for_undecodable(claim, session) {
                return Ok(());
            }
            // A Pod that the cache does not show yet may use the claim.
            let since = self.terminating.since(&claim.metadata.key);
            let live = self.live_plan(claim, since, session).await?;
            if live != planned {
                // A shared list may show a Pod that was deleted since: its event has enqueued the claim, and is the last one.
                planned = self.live_plan(claim, Some(Instant::now()), session).await?;
            }
        }
        session.explain(|| planned.explain());
        self.apply(planned, claim, session).await
    }
}

impl Reconciler {
    fn plan(&self, claim: &PersistentVolumeClaim) -> Plan {
        let pods = self.pods_of_claim.get(&claim.metadata.key);
        plan(claim, &pods.iter().map(|pod| self.reader.use_of(pod)), self.records_use)
    }

    /// Plans with a live list of Pods that was not requested before `since`.
    async fn live_plan(
        &self,
        claim: &PersistentVolumeClaim,
        since: Option<Instant>,
        session: &Session,
    ) -> Result<Plan, ReconcileError> {
        let namespace = claim.metadata.key.namespace().unwrap_or_default();
        let pods = self.live_pods.get(namespace, since, live_pods::read(session, namespace)).await?;
        Ok(plan(claim, &pods.iter().map(LivePod::use_of_claims), self.records_use))
    }

    async fn apply(
        &self,
        planned: Plan,
        claim: &PersistentVolumeClaim,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let finalizer = |change| protected(&claim.document, &claim.metadata, FINALIZER, change);
        let written = match planned {
            Plan::Keep(_) => return Ok(()),
            Plan::AddFinalizer => {
                // The condition may be due as well.
                session.requeue_after(std::time::Duration::ZERO);
                let Some(changed) = finalizer(Protection::Add)? else { return Ok(()) };
                session.update(&**claim, &changed).await
            }
            Plan::RemoveFinalizer => {
                let Some(changed) = finalizer(Protection::Remove)? else { return Ok(()) };
                session.update(&**claim, &changed).await
            }
            Plan::SetUsed | Plan::SetUnused => {
                let changed = with_unused(&claim.document, planned == Plan::SetUnused, session.now())?;
                session.update_status(&**claim, &changed).await
            }
        };
        if written.ignore(ApiError::is_not_found)?.is_some() {
            tracing::info!(?planned, "Changed the protection of a claim");
        }
        Ok(())
    }

    /// Returns `true` if a Pod that cannot be decoded may use the claim. Its change reconciles the claim again.
    fn waits_for_undecodable(&self, claim: &PersistentVolumeClaim, session: &Session) -> bool {
        let namespace = claim.metadata.key.namespace();
        let undecodable = self.pods.undecodable_objects();
        let Some(pod) = undecodable.iter().find(|pod| pod.key.namespace() == namespace) else { return false };
        session.requeue_when_decodable(&self.pods.cache(), pod);
        session.explain(|| format!("changes nothing: the pod {} cannot be decoded and may use the claim", pod.key));
        true
    }
}
