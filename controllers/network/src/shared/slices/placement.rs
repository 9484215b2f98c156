//! Slices to write, and the desired endpoints that existing slices have.

use std::collections::HashMap;
use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;

use super::content::{Endpoint, EndpointPort, ExistingSlice, Identity};

/// A slice to create, or to update.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// The slice that is updated; absent if one is created.
    pub(crate) existing: Option<Arc<EndpointSlice>>,
    /// Its ports, if they are new to the slice.
    pub(crate) ports: Option<Vec<EndpointPort>>,
    /// All of its endpoints.
    pub(crate) endpoints: Vec<Endpoint>,
}

impl Draft {
    /// A new slice.
    pub(crate) const fn new(ports: Vec<EndpointPort>, endpoints: Vec<Endpoint>) -> Self {
        Self { existing: None, ports: Some(ports), endpoints }
    }

    /// An update of the endpoints of a slice.
    pub(crate) const fn update(slice: Arc<EndpointSlice>, endpoints: Vec<Endpoint>) -> Self {
        Self { existing: Some(slice), ports: None, endpoints }
    }

    /// Turns the creation of a slice into an update of a slice that would be deleted.
    pub(crate) fn instead_of(self, slice: Arc<EndpointSlice>) -> Self {
        Self { existing: Some(slice), ..self }
    }
}

impl From<ExistingSlice> for Draft {
    /// An update that keeps the endpoints.
    fn from(slice: ExistingSlice) -> Self {
        Self::update(slice.object, slice.endpoints)
    }
}

/// Returns, for each endpoint of each slice, the index of the same desired endpoint. If several slices have the endpoint,
/// the first counts.
pub(crate) fn matches<'a>(existing: &'a [ExistingSlice], desired: &'a [Endpoint]) -> Vec<Vec<Option<usize>>> {
    let mut places: HashMap<Identity<'a>, usize> =
        desired.iter().enumerate().map(|(place, endpoint)| (endpoint.identity(), place)).collect();
    let mut matches = Vec::with_capacity(existing.len());
    for slice in existing {
        matches.push(slice.endpoints.iter().map(|endpoint| places.remove(&endpoint.identity())).collect());
    }
    matches
}
