//! The requests of a reconcile: pods that are created and deleted, and the status.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, ReplicaSetStatus};
use kcm_framework::client::Payload;
use kcm_framework::ownership::StaleOwner;
use kcm_framework::{Class, ReconcileError, Session};

use super::error::ScaleError;
use super::metrics::Metrics;
use super::owner::ReplicaOwner;
use super::plan::Step;
use super::status::with_status;
use crate::shared::pod_control::{PodControl, PodTemplate};

/// Writes the steps of one reconcile of one object.
pub(super) struct Writer<'a, V> {
    pub(super) session: &'a Session,
    pub(super) metrics: &'a Metrics,
    pub(super) owner: &'a V,
}

impl<V: ReplicaOwner> Writer<'_, V> {
    /// Sends the requests of a step.
    pub(super) async fn apply(&self, step: Step) -> Result<(), ScaleError> {
        match step {
            Step::CreatePods { count } => self.create_pods(count).await,
            Step::RejectTemplate(error) => Err(ScaleError::InvalidTemplate(error)),
            Step::DeletePods { victims, age_ratios } => {
                self.metrics.observe_deletions(&age_ratios);
                self.delete_pods(&victims).await
            }
        }
    }

    async fn create_pods(&self, count: usize) -> Result<(), ScaleError> {
        tracing::info!(v = 2, need = self.owner.replicas(), creating = count, "Too few replicas");
        let template = PodTemplate::of(self.owner, self.owner.document());
        let pod = |name: &str| Payload::json(&template.pod(name));
        self.pod_control().create(vec![pod; count]).await.map_err(ScaleError::Create)
    }

    async fn delete_pods(&self, victims: &[Arc<Pod>]) -> Result<(), ScaleError> {
        tracing::info!(v = 2, need = self.owner.replicas(), deleting = victims.len(), "Too many replicas");
        let deleted = self.pod_control().delete(victims).await;
        deleted.map_err(
            |error| {
                if error.is_other_object() { ScaleError::Replaced(error) } else { ScaleError::Delete(error) }
            },
        )
    }

    const fn pod_control(&self) -> PodControl<'_, V> {
        PodControl { session: self.session, owner: self.owner }
    }

    /// Updates the status, and after a conflict the status of the live object.
    pub(super) async fn update_status(&self, status: &ReplicaSetStatus) -> Result<(), ReconcileError> {
        match self.update_status_of(self.owner, status).await {
            Err(error) if error.class() == Class::Conflict => {}
            outcome => return outcome,
        }
        let meta = self.owner.meta();
        let live: V = self.session.api().get(const { &V::RESOURCE }, &meta.key).await?;
        if live.meta().uid != meta.uid {
            let wanted = meta.uid.clone();
            return Err(StaleOwner::Replaced { got: live.meta().uid.clone(), wanted }.into());
        }
        self.update_status_of(&live, status).await
    }

    async fn update_status_of(&self, current: &V, status: &ReplicaSetStatus) -> Result<(), ReconcileError> {
        self.session.update_status(current, &with_status(current, status)?).await?;
        Ok(())
    }
}
