//! The view of a `ControllerRevision`.

use serde_json::value::RawValue;

use crate::documented::Documented;
use crate::resource::Resource;

/// A `ControllerRevision` with its JSON. The controller updates its number, and copies its data into pods.
pub type ControllerRevision = Documented<ControllerRevisionView>;

crate::view! {
    /// Fields of a `ControllerRevision` that decisions read, without its data.
    pub struct ControllerRevisionView {
        resource: Resource::namespaced("apps", "v1", "controllerrevisions", "ControllerRevision");

        /// `revision`: position in the order of an owner's revisions.
        pub revision: i64 = "revision" @ 3;
    }
}

impl ControllerRevision {
    /// `data`, byte for byte as the API server returns it.
    #[must_use]
    pub fn data(&self) -> Option<&RawValue> {
        self.raw(&["data"])
    }
}
