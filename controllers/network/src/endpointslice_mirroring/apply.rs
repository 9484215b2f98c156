//! The requests of a reconcile.

use std::sync::Arc;

use kcm_framework::Session;
use kcm_framework::api::views::{EndpointSlice, Endpoints};
use kcm_framework::api::{KnownView as _, ObjectKey, OwnerReference};

use super::metrics::Metrics;
use super::plan::{Plan, annotations_of, labels_of};
use crate::shared::slices::{Operation, OwnWrites, OwnerName, SliceOwner, SliceWriter, WriteError, delete_slice};

pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) own_writes: &'a OwnWrites,
    pub(super) metrics: &'a Metrics,
}

impl Writer<'_> {
    /// Creates, updates and deletes slices, up to the first error. If a slice cannot be created because the namespace is
    /// terminating, nothing else is written.
    pub(super) async fn write(&self, endpoints: &Endpoints, plan: &Plan) -> Result<(), WriteError> {
        let (key, uid) = (&endpoints.metadata.key, &endpoints.metadata.uid);
        let owner = SliceOwner {
            reference: OwnerReference::controller_of(const { &Endpoints::RESOURCE }, key.name(), uid),
            key,
            labels: labels_of(endpoints),
            annotations: Some(annotations_of(endpoints)),
        };
        let slices = SliceWriter { session: self.session, owner: &owner, own_writes: self.own_writes, trigger: None };
        if !endpoints.metadata.is_terminating() {
            for (family, draft) in &plan.create {
                match slices.create(*family, draft).await {
                    Ok(()) => self.metrics.changed(Operation::Create),
                    Err(error) if error.is_namespace_terminating() => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        for draft in &plan.update {
            if let Some(slice) = &draft.existing {
                slices.update(slice, draft).await?;
                self.metrics.changed(Operation::Update);
            }
        }
        for slice in &plan.delete {
            slices.delete(slice).await?;
            self.metrics.changed(Operation::Delete);
        }
        Ok(())
    }

    /// Deletes all mirrored slices of endpoints; returns the first error after trying all.
    pub(super) async fn delete_all(&self, key: &ObjectKey, slices: &[Arc<EndpointSlice>]) -> Result<(), WriteError> {
        let mut first = Ok(());
        for slice in slices.iter().filter(|slice| !slice.metadata.is_terminating()) {
            let deleted = delete_slice(self.session, self.own_writes, slice).await;
            if first.is_ok() {
                first = deleted.map_err(|source| {
                    let owner = OwnerName { kind: Endpoints::RESOURCE.kind.to_string(), key: key.clone() };
                    WriteError::Delete { owner, slice: slice.metadata.key.clone(), source }
                });
            }
        }
        first
    }
}
