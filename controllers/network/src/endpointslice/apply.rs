//! The requests of a reconcile.

use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;

use super::metrics::Metrics;
use super::plan::FamilyPlan;
use crate::shared::slices::{Draft, Operation, SliceWriter, WriteError};

pub(super) struct Writer<'a> {
    pub(super) slices: SliceWriter<'a>,
    pub(super) metrics: &'a Metrics,
    /// Whether the service is terminating: the garbage collector deletes its slices, and no slice is created.
    pub(super) is_terminating: bool,
}

impl Writer<'_> {
    /// Creates, updates and deletes the slices of one family, up to the first error. If a slice cannot be created because the
    /// namespace is terminating, nothing else is written.
    pub(super) async fn write(&self, plan: &FamilyPlan) -> Result<(), WriteError> {
        if !self.is_terminating {
            for draft in &plan.slices.create {
                match self.slices.create(plan.family, draft).await {
                    Ok(()) => self.metrics.changed(Operation::Create),
                    Err(error) if error.is_namespace_terminating() => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        for draft in &plan.slices.update {
            self.update(draft).await?;
        }
        for slice in &plan.slices.delete {
            self.delete(slice).await?;
        }
        Ok(())
    }

    async fn update(&self, draft: &Draft) -> Result<(), WriteError> {
        if let Some(slice) = &draft.existing {
            self.slices.update(slice, draft).await?;
            self.metrics.changed(Operation::Update);
        }
        Ok(())
    }

    /// Deletes a slice of a family that the service does not have.
    pub(super) async fn delete_foreign(&self, slice: &Arc<EndpointSlice>) -> Result<(), WriteError> {
        self.slices.delete_foreign(slice).await?;
        self.metrics.changed(Operation::Delete);
        Ok(())
    }

    async fn delete(&self, slice: &Arc<EndpointSlice>) -> Result<(), WriteError> {
        self.slices.delete(slice).await?;
        self.metrics.changed(Operation::Delete);
        Ok(())
    }
}
