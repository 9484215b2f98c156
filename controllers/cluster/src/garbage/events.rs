//! The events of the garbage collector.

use kcm_api::ResourceVersion;
use kcm_framework::Recorder;
use kcm_framework::events::{EventDetails, EventType, ObjectReference};

use super::graph::Identity;

/// A reference names an owner in another namespace, or a namespaced owner of a cluster-scoped object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidNamespace {
    /// The owner, as the dependent names it.
    pub(super) owner: Identity,
}

impl EventDetails for InvalidNamespace {
    fn event_type(&self) -> EventType {
        EventType::Warning
    }

    fn reason(&self) -> &'static str {
        "OwnerRefInvalidNamespace"
    }

    fn message(&self) -> String {
        let namespace = self.owner.namespace.as_deref().unwrap_or_default();
        format!("ownerRef {} does not exist in namespace {namespace:?}", self.owner)
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
    recorder.event(&regarding, event.event_type(), event.reason(), event.message());
}
