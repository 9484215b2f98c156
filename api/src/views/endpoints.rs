//! The view of an Endpoints object.

use crate::documented::Documented;
use crate::resource::Resource;

/// Endpoints with their JSON. The controller updates the whole object; subsets are read from the JSON to compare them.
pub type Endpoints = Documented<EndpointsView>;

crate::view! {
    /// Metadata of an Endpoints object, which event mapping reads.
    pub struct EndpointsView {
        resource: Resource::namespaced("", "v1", "endpoints", "Endpoints");
    }
}
