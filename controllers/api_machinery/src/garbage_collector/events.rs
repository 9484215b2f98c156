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

/// An object may have dependents that are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DependentsUnknown {
    /// Its deletion waits, for this reason.
    Waits(String),
    /// Its deletion goes on, although this reason holds.
    GoesOn(String),
}

impl Event for DependentsUnknown {
    fn text(&self) -> EventText<'_> {
        let message = match self {
            Self::Waits(reason) => {
                format!("the deletion waits, because there may be dependents that are not known: {reason}")
            }
            Self::GoesOn(reason) => {
                format!("the deletion goes on, although there may be dependents that are not known: {reason}")
            }
        };
        EventText::warning("DependentsUnknown", message)
    }
}

/// Records an event about an object of the graph.
pub(super) fn record(recorder: &Recorder, object: &Identity, event: &impl Event) {
    let regarding = ObjectReference {
        api_version: object.api_version.to_string(),
        kind: object.kind.to_string(),
        namespace: object.namespace.as_deref().unwrap_or_default().to_owned(),
        name: object.name.to_string(),
        uid: object.uid.clone(),
        resource_version: ResourceVersion::default(),
        field_path: String::new(),
    };
    let EventText { type_, reason, message } = event.text();
    recorder.event(&regarding, type_, &*reason, message);
}
