//! Hints: from where traffic should come to an endpoint.

pub(super) mod allocation;
pub(super) mod distribution;
pub(super) mod topology;

use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;

use crate::shared::slices::{Draft, ExistingSlice};

/// The slices of one family of a service: what is written, and what stays as it is.
#[derive(Debug, Default)]
pub(super) struct FamilySlices {
    /// Slices to create.
    pub(super) create: Vec<Draft>,
    /// Slices to update.
    pub(super) update: Vec<Draft>,
    /// Slices to delete.
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    /// Slices that stay as they are.
    pub(super) unchanged: Vec<ExistingSlice>,
}

impl FamilySlices {
    /// The slices that are written.
    fn written(&mut self) -> impl Iterator<Item = &mut Draft> {
        self.create.iter_mut().chain(&mut self.update)
    }

    /// Moves those of the unchanged slices to the updated ones that have to change.
    fn update_where(&mut self, has_to_change: impl FnMut(&mut ExistingSlice) -> bool) {
        let changed: Vec<ExistingSlice> = self.unchanged.extract_if(.., has_to_change).collect();
        self.update.extend(changed.into_iter().map(Draft::from));
    }

    /// Takes away all hints.
    pub(super) fn remove_hints(&mut self) {
        self.update_where(|slice| slice.endpoints.iter().any(|endpoint| endpoint.hints.is_some()));
        for endpoint in self.written().flat_map(|draft| &mut draft.endpoints) {
            endpoint.hints = None;
        }
    }
}
