//! The events of the garbage collector.

use kcm_framework::Recorder;
use kcm_framework::api::ResourceVersion;
use kcm_framework::events::{Event, EventText, ObjectReference};

use super::graph::Identity;

/// An object names an owner in another namespace, or is cluster-scoped and names a namespaced owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidNamespace {
    /// The owner, as the dependent names it.
    pub(super) owner: Identity,
}

impl Event for InvalidNamespace {
    fn text(&self) -> EventText<'_> {
        let namespace = self.owner.namespace.as_deref().unwrap_or_default();
        let message = format!("ownerRef {} does not exist in namespace {namespace:?}", self.owner);
        EventText::warning("OwnerRefInvalidNamespace", message)
    }
}

/// Records that `dependent` names an owner in another namespace.
pub(super) fn record_invalid_namespace(recorder: &Recorder, dependent: &Identity, owner: Identity) {
    let regarding = ObjectReference {
        api_version: dependent.api_version.to_string(),
        kind: dependent.kind.to_string(),
        namespace: dependent.namespace.as_deref().unwrap_or_default().to_owned(),
        name: dependent.name.to_string(),
        uid: dependent.uid.clone(),
        resource_version: ResourceVersion::default(),
        field_path: String::new(),
    };
    let event = InvalidNamespace { owner };
    let EventText { type_, reason, message } = event.text();
    recorder.event(&regarding, type_, &*reason, message);
}
