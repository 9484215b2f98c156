//! The order of a reconcile: plan, look again, update.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::Pod;
use kcm_framework::client::ResponseExt as _;
use kcm_framework::informers::{Index, Informer};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::first_looks::FirstLooks;
use super::plan::{Plan, plan, released};
use super::view::PodGroup;

pub(super) struct Reconciler {
    pub(super) pods: Informer<Pod>,
    pub(super) active: Index<Pod, ObjectKey>,
    pub(super) first_looks: FirstLooks,
}

#[async_trait]
impl ReconcileObject<PodGroup> for Reconciler {
    async fn reconcile(&self, group: &Arc<PodGroup>, session: &Session) -> Result<(), ReconcileError> {
        let (key, uid) = (&group.metadata.key, &group.metadata.uid);
        let idle_for = self.first_looks.since(key, uid);
        let planned = plan(&group.metadata, || self.active.count(key), idle_for);
        session.explain(|| planned.explain());
        match planned {
            Plan::Leave | Plan::InUse { .. } => self.first_looks.forget(key),
            Plan::LookAgain { after } => {
                self.first_looks.look(key, uid);
                session.requeue_after(after);
            }
            Plan::Remove => {
                if self.waits_for_undecodable(key, session) {
                    return Ok(());
                }
                let changed = released(&group.document, &group.metadata)?;
                if session.update(&**group, &changed).await.ignore_not_found()?.is_some() {
                    tracing::info!("Removed the finalizer of a pod group without active pods");
                }
            }
        }
        Ok(())
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.first_looks.forget(key);
        Ok(())
    }
}

impl Reconciler {
    /// Returns `true` if a pod that cannot be decoded may be in the group. Its change reconciles the group again.
    fn waits_for_undecodable(&self, group: &ObjectKey, session: &Session) -> bool {
        let undecodable = self.pods.undecodable_objects();
        let Some(pod) = undecodable.iter().find(|pod| pod.key.namespace() == group.namespace()) else { return false };
        session.requeue_when_decodable(&self.pods.cache(), pod);
        session.explain(|| format!("keeps the finalizer: the pod {} cannot be decoded and may be active", pod.key));
        true
    }
}
