//! The order of a reconcile: observe, plan, write.

use std::sync::Arc;

use kcm_api::views::{EndpointSlice, Endpoints, EndpointsView, Service};
use kcm_api::{KnownView as _, ObjectKey, OwnerReference};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;
use tokio::time::Instant;

use super::MANAGED_BY;
use super::event_mapping::is_mirrored;
use super::metrics::Metrics;
use super::plan::{Plan, annotations_of, labels_of, plan};
use crate::shared::slices::{
    ExistingSlice, InvalidSlice, Operation, OwnWrites, OwnerName, SliceOwner, SliceWriter, SlicesOfServices,
    WriteError, delete_slice,
};
use crate::shared::subsets::subsets_in;

/// Reconciles endpoints.
pub(super) struct Reconciler {
    pub(super) endpoints: Informer<Endpoints>,
    pub(super) services: Informer<Service>,
    pub(super) slices: SlicesOfServices,
    pub(super) own_writes: Arc<OwnWrites>,
    pub(super) metrics: Metrics,
    pub(super) max_endpoints: usize,
}

/// Why endpoints could not be mirrored.
#[derive(Debug, thiserror::Error)]
pub(super) enum MirrorError {
    /// The subsets are not what the API server should send.
    #[error("cannot read the subsets of the endpoints")]
    InvalidSubsets(#[source] serde_json::Error),
    /// A slice is not what the API server should send.
    #[error(transparent)]
    InvalidSlice(#[from] InvalidSlice),
    /// A slice could not be written.
    #[error("cannot mirror the endpoints")]
    Write(#[from] WriteError),
}

impl From<MirrorError> for ReconcileError {
    fn from(error: MirrorError) -> Self {
        let class = match &error {
            MirrorError::InvalidSubsets(_) | MirrorError::InvalidSlice(_) => Class::Terminal,
            MirrorError::Write(error) => error.class(),
        };
        Self::new(class, error)
    }
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let start = Instant::now();
        let result = self.sync(key, session).await;
        self.metrics.synced(start.elapsed());
        result?;
        Ok(())
    }
}

impl Reconciler {
    async fn sync(&self, key: &ObjectKey, session: &Session) -> Result<(), MirrorError> {
        let slices = self.slices.of(key, MANAGED_BY);
        let Some(endpoints) = self.to_mirror(key) else {
            session.explain(|| format!("are not mirrored; {} slices are deleted", slices.len()));
            self.metrics.remove(key);
            return self.clean_up(key, &slices, session).await;
        };
        let slices = slices.into_iter().filter(|slice| !slice.metadata.is_terminating()).map(ExistingSlice::read);
        let slices = slices.collect::<Result<_, _>>()?;
        let subsets = subsets_in(&endpoints.document).map_err(MirrorError::InvalidSubsets)?;
        let plan = plan(&endpoints, subsets, slices, self.max_endpoints);
        session.explain(|| {
            let (create, update, delete) = (plan.create.len(), plan.update.len(), plan.delete.len());
            format!("creates {create}, updates {update} and deletes {delete} slices")
        });
        self.metrics.planned(&plan);
        self.metrics.set(key, plan.efficiency);
        for event in &plan.events {
            session.record(&*endpoints, event);
        }
        self.write(&endpoints, &plan, session).await
    }

    /// The endpoints, where they are mirrored: they have a service that selects no pods.
    fn to_mirror(&self, key: &ObjectKey) -> Option<Arc<Endpoints>> {
        let endpoints = self.endpoints.get(key).filter(|endpoints| is_mirrored(endpoints))?;
        let service = self.services.get(key)?;
        service.selector.is_empty().then_some(endpoints)
    }

    /// Deletes all mirrored slices; returns the first error after trying all.
    async fn clean_up(
        &self,
        key: &ObjectKey,
        slices: &[Arc<EndpointSlice>],
        session: &Session,
    ) -> Result<(), MirrorError> {
        let mut first = Ok(());
        for slice in slices.iter().filter(|slice| !slice.metadata.is_terminating()) {
            let result = delete_slice(session, &self.own_writes, slice).await;
            if first.is_ok() {
                first = result.map_err(|source| {
                    let owner = OwnerName { kind: EndpointsView::RESOURCE.kind.to_string(), key: key.clone() };
                    MirrorError::Write(WriteError::Delete { owner, slice: slice.metadata.key.clone(), source })
                });
            }
        }
        first
    }

    /// Creates, updates and deletes slices, up to the first error. In a terminating namespace, where nothing can be
    /// created, nothing else is done either.
    async fn write(&self, endpoints: &Endpoints, plan: &Plan, session: &Session) -> Result<(), MirrorError> {
        let (key, uid) = (&endpoints.metadata.key, &endpoints.metadata.uid);
        let owner = SliceOwner {
            reference: OwnerReference::controller_of(const { &EndpointsView::RESOURCE }, key.name(), uid),
            key,
            labels: labels_of(endpoints),
            annotations: Some(annotations_of(endpoints)),
        };
        let writer = SliceWriter { session, owner: &owner, own_writes: &self.own_writes, trigger: None };
        if !endpoints.metadata.is_terminating() {
            for (family, draft) in &plan.create {
                match writer.create(*family, draft).await {
                    Ok(()) => self.metrics.changed(Operation::Create),
                    Err(error) if error.is_namespace_terminating() => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        for draft in &plan.update {
            if let Some(slice) = &draft.existing {
                writer.update(slice, draft).await?;
                self.metrics.changed(Operation::Update);
            }
        }
        for slice in &plan.delete {
            writer.delete(slice).await?;
            self.metrics.changed(Operation::Delete);
        }
        Ok(())
    }
}
