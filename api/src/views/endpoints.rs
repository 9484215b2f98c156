//! The view of an Endpoints object.

use crate::documented::Documented;
use crate::resource::Resource;

/// Endpoints, whole: they are put, and their subsets are read from their JSON when they are compared.
pub type Endpoints = Documented<EndpointsView>;

crate::view! {
    /// Metadata of an Endpoints object, which event mapping reads.
    pub struct EndpointsView {
        resource: Resource::namespaced("", "v1", "endpoints", "Endpoints");
    }
}
