//! The view of a ControllerRevision.

use serde_json::value::RawValue;

use crate::documented::Documented;
use crate::resource::Resource;

/// A controller revision, whole: its number is put, and its data becomes pods as it stands.
pub type ControllerRevision = Documented<ControllerRevisionView>;

crate::view! {
    /// Fields of a ControllerRevision that decisions read, without its data.
    pub struct ControllerRevisionView {
        resource: Resource::namespaced("apps", "v1", "controllerrevisions", "ControllerRevision");

        /// `revision`: the order of the revisions of one owner.
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
