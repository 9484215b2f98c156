//! The reconcile of orphans: Pods whose finalizer no Job removes.

use kcm_framework::api::views::{Job, Pod};
use kcm_framework::informers::Informer;
use kcm_framework::ownership::{Dependents, Owners};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::remove_finalizer;
use super::event_mapping::{OrphanKey, is_orphan};

/// Removes the finalizer of orphans.
pub(super) struct OrphanReconciler {
    pub(super) pods: Informer<Pod>,
    pub(super) dependents: Dependents<Pod>,
    pub(super) owners: Owners<Job>,
}

#[async_trait]
impl Reconcile<OrphanKey> for OrphanReconciler {
    async fn reconcile(&self, key: &OrphanKey, session: &Session) -> Result<(), ReconcileError> {
        let mut pods = match key {
            OrphanKey::Pod(pod) => self.pods.get(pod).into_iter().collect(),
            OrphanKey::PodsOf { job: _, uid } => self.dependents.controlled_by(uid),
        };
        pods.retain(|pod| is_orphan(pod, &self.owners));
        session.explain(|| match pods.len() {
            0 => "removes no finalizer: the pods are gone, or a job counts them".to_owned(),
            count => format!("removes the finalizer of {count} pods, which no job counts"),
        });
        for pod in pods {
            remove_finalizer(session, &pod).await?;
        }
        Ok(())
    }
}
