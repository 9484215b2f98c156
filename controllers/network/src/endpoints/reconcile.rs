//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;

use kcm_framework::api::views::{Endpoints, PodAddresses, Service};
use kcm_framework::api::{ObjectKey, PartReader};
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::addresses::{has_endpoints_of_pods, subsets_of};
use super::apply::{delete, write};
use super::plan::{Existing, OVER_CAPACITY, Plan, plan};
use crate::shared::batching::Batching;
use crate::shared::pods::SelectedPods;
use crate::shared::subsets::{InvalidSubsets, subsets_in};
use crate::shared::trigger_time::TriggerTimes;

/// The annotation of endpoints that hold a record of leader election.
pub(super) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// Reconciles services.
pub(super) struct Reconciler {
    pub(super) pods: SelectedPods,
    pub(super) endpoints: Informer<Endpoints>,
    pub(super) addresses: PartReader<PodAddresses>,
    pub(super) triggers: TriggerTimes,
    pub(super) batching: Arc<Batching>,
    pub(super) queue: Queue<ObjectKey>,
}

#[async_trait]
impl ReconcileObject<Service> for Reconciler {
    /// Enqueues all endpoints once, to find those whose service was deleted while no manager ran. Records of leader
    /// election have no service and stay.
    async fn prepare(&self, _: &Session) -> Result<(), ReconcileError> {
        for endpoints in self.endpoints.list() {
            if endpoints.metadata.annotations.get(LEADER).is_none() {
                self.queue.add(endpoints.metadata.key.clone(), Priority::Initial);
            }
        }
        Ok(())
    }

    async fn reconcile(&self, service: &Arc<Service>, session: &Session) -> Result<(), ReconcileError> {
        if !has_endpoints_of_pods(service) {
            session.explain(|| "leaves its endpoints alone, as it selects no pods");
            return Ok(());
        }
        if let Some(pod) = self.pods.undecodable(service) {
            self.pods.requeue_when_decodable(&pod, session);
            session
                .explain(|| format!("leaves its endpoints as they are, as pod {} cannot be decoded", pod.key.name()));
            return Ok(());
        }
        let key = &service.metadata.key;
        let existing = match self.endpoints.lookup(key) {
            Lookup::Found(endpoints) => Some(endpoints),
            Lookup::Absent => None,
            Lookup::Undecodable(endpoints) => {
                session.requeue_when_decodable(&self.endpoints.cache(), &endpoints);
                session.explain(|| "leaves its endpoints as they are, as they cannot be decoded");
                return Ok(());
            }
        };
        let pods = self.pods.of(service);
        self.batching.begins(key, pods.len());
        // Even if nothing is written, the next change is compared with this state.
        let trigger = self.triggers.next(service, &pods, self.addresses);
        let observed = existing.as_deref().map(observe).transpose()?;
        let plan = plan(service, subsets_of(service, &pods, self.addresses), observed, trigger);
        session.explain(|| plan.explain());
        match plan {
            Plan::Keep => Ok(()),
            Plan::Write(desired) => write(session, key, existing.as_deref(), &desired).await,
        }
    }

    async fn deleted(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        self.triggers.forget(key);
        self.batching.forget(key);
        match self.endpoints.lookup(key) {
            Lookup::Found(endpoints) => {
                session.explain(|| "deletes the endpoints, as there is no such service");
                delete(session, &endpoints).await?;
                Ok(())
            }
            Lookup::Undecodable(endpoints) => {
                session.requeue_when_decodable(&self.endpoints.cache(), &endpoints);
                session.explain(|| "deletes the endpoints when they can be decoded, as there is no such service");
                Ok(())
            }
            Lookup::Absent => Ok(()),
        }
    }
}

fn observe(endpoints: &Endpoints) -> Result<Existing<'_>, InvalidSubsets> {
    Ok(Existing {
        labels: &endpoints.metadata.labels,
        over_capacity: endpoints.metadata.annotations.get(OVER_CAPACITY),
        subsets: subsets_in(&endpoints.document)?,
    })
}
