//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Endpoints, Service};
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::MANAGED_BY;
use super::apply::Writer;
use super::event_mapping::is_mirrored;
use super::metrics::Metrics;
use super::plan::plan;
use crate::shared::slices::{ExistingSlice, OwnWrites, SlicesOfServices};
use crate::shared::subsets::subsets_in;

/// Reconciles endpoints.
pub(super) struct Reconciler {
    pub(super) services: Informer<Service>,
    pub(super) slices: SlicesOfServices,
    pub(super) own_writes: Arc<OwnWrites>,
    pub(super) metrics: Metrics,
    pub(super) max_endpoints: usize,
}

#[async_trait]
impl ReconcileObject<Endpoints> for Reconciler {
    /// Forgets the own writes, because the events of their deletion were not seen while the loop did not run.
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        self.own_writes.clear();
        Ok(())
    }

    async fn reconcile(&self, endpoints: &Arc<Endpoints>, session: &Session) -> Result<(), ReconcileError> {
        let start = Instant::now();
        let result = self.sync(endpoints, session).await;
        self.metrics.synced(start.elapsed());
        result
    }

    async fn deleted(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let start = Instant::now();
        let result = self.clean_up(key, session).await;
        self.metrics.synced(start.elapsed());
        result
    }
}

impl Reconciler {
    async fn sync(&self, endpoints: &Endpoints, session: &Session) -> Result<(), ReconcileError> {
        let key = &endpoints.metadata.key;
        let service = self.services.lookup(key);
        if let Lookup::Undecodable(service) = &service
            && is_mirrored(endpoints)
        {
            session.requeue_when_decodable(&self.services.cache(), service);
            session.explain(|| "leaves the slices as they are, as the service cannot be decoded");
            return Ok(());
        }
        let has_service_without_selector = service.found().is_some_and(|service| service.selector.is_empty());
        if !is_mirrored(endpoints) || !has_service_without_selector {
            return self.clean_up(key, session).await;
        }
        let (slices, invalid) = ExistingSlice::read_all(self.slices.of(key, MANAGED_BY));
        let mut plan = plan(endpoints, subsets_in(&endpoints.document)?, slices, self.max_endpoints);
        for slice in invalid {
            session.explain(|| format!("replaces slice {}, which cannot be read", slice.metadata.key.name()));
            plan.delete.push(slice);
        }
        session.explain(|| {
            let (create, update, delete) = (plan.create.len(), plan.update.len(), plan.delete.len());
            format!("creates {create}, updates {update} and deletes {delete} slices")
        });
        self.metrics.planned(&plan);
        self.metrics.set(key, plan.efficiency);
        for event in &plan.events {
            session.record(endpoints, event);
        }
        Ok(self.writer(session).write(endpoints, &plan).await?)
    }

    /// Deletes the slices of endpoints that are not mirrored.
    async fn clean_up(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let slices = self.slices.of(key, MANAGED_BY);
        session.explain(|| format!("are not mirrored; {} slices are deleted", slices.len()));
        self.metrics.remove(key);
        Ok(self.writer(session).delete_all(key, &slices).await?)
    }

    fn writer<'a>(&'a self, session: &'a Session) -> Writer<'a> {
        Writer { session, own_writes: &self.own_writes, metrics: &self.metrics }
    }
}
