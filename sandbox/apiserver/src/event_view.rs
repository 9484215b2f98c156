//! Conversion between events of `events.k8s.io` and of the core group, in which they are stored. Pure.
//!
//! ```text
//! body ──▶ to_core ──▶ store (core/v1) ──▶ from_core ──▶ answer, event of a watch, object of a table
//! ```
//!
//! The two forms differ only in field names, so patches and applied configurations convert like whole objects.
//!
//! # Upstream
//! `pkg/apis/events/v1/conversion.go`

use std::sync::Arc;

use kcm_api::Resource;
use serde_json::Value;

use crate::json;
use crate::kinds::EVENTS;
use crate::status::Status;
use crate::store::stored::Stored;

/// The resource `events` of `events.k8s.io`.
pub(crate) const EVENTS_VIEW: Resource = Resource::namespaced("events.k8s.io", "v1", "events", "Event");

static STORED: Resource = EVENTS;

/// Field names in the core group, and in `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

pub(crate) fn is_view(resource: &Resource) -> bool {
    *resource == EVENTS_VIEW
}

/// Returns the resource under which objects of this resource are stored.
pub(crate) fn stored_as(resource: &Resource) -> &Resource {
    if is_view(resource) { &STORED } else { resource }
}

/// Converts an object of a resource to its stored form.
pub(crate) fn inward(resource: &Resource, mut sent: Value) -> Value {
    if is_view(resource) {
        rename(&mut sent, |core, view| (view, core));
        say_version(&mut sent, &EVENTS);
    }
    sent
}

/// Converts a stored object to the form of a resource.
pub(crate) fn outward(resource: &Resource, mut stored: Value) -> Value {
    if is_view(resource) && stored.get("kind").is_none_or(|kind| kind == "Event") {
        rename(&mut stored, |core, view| (core, view));
        // `events.k8s.io` omits them if they are empty.
        for field in ["reportingController", "reportingInstance"] {
            if stored.get(field).is_some_and(|value| value == "") {
                json::set(&mut stored, &[field], None);
            }
        }
        say_version(&mut stored, &EVENTS_VIEW);
    }
    stored
}

/// Like [`outward`], without a copy if nothing changes.
pub(crate) fn shown(resource: &Resource, stored: Arc<Stored>) -> Arc<Stored> {
    if !is_view(resource) {
        return stored;
    }
    let object = Arc::new(outward(resource, Value::clone(&stored.value())));
    Arc::new(Stored::new(&object))
}

/// Converts an error so that it names the requested resource.
pub(crate) fn refusal(resource: &Resource, mut status: Status) -> Status {
    if !is_view(resource) {
        return status;
    }
    if let Some(details) = status.details.as_deref_mut().filter(|details| details.group.is_empty()) {
        details.group = resource.group.to_string();
        for (core, view) in [("events \"", "events.events.k8s.io \""), ("Event \"", "Event.events.k8s.io \"")] {
            if status.message.contains(core) {
                status.message = status.message.replacen(core, view, 1);
            }
        }
    }
    status
}

/// Returns the stored path of a field that a field selector names.
///
/// # Upstream
/// `AddFieldLabelConversionsForEvent`
pub(crate) fn selectable(path: &str) -> Option<&'static str> {
    let paths = [
        ("metadata.name", "metadata.name"),
        ("metadata.namespace", "metadata.namespace"),
        ("reason", "reason"),
        ("regarding.apiVersion", "involvedObject.apiVersion"),
        ("regarding.fieldPath", "involvedObject.fieldPath"),
        ("regarding.kind", "involvedObject.kind"),
        ("regarding.name", "involvedObject.name"),
        ("regarding.namespace", "involvedObject.namespace"),
        ("regarding.resourceVersion", "involvedObject.resourceVersion"),
        ("regarding.uid", "involvedObject.uid"),
        ("reportingController", "reportingComponent"),
        ("type", "type"),
    ];
    paths.into_iter().find(|(known, _)| *known == path).map(|(_, stored)| stored)
}

fn rename(event: &mut Value, from_and_to: impl Fn(&'static str, &'static str) -> (&'static str, &'static str)) {
    let Some(fields) = event.as_object_mut() else { return };
    for (core, view) in NAMES {
        let (from, to) = from_and_to(core, view);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

fn say_version(event: &mut Value, resource: &Resource) {
    if event.get("apiVersion").is_some() {
        json::set(event, &["apiVersion"], Some(resource.api_version().into()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_survives_a_round_trip() {
        let stored = json!({
            "kind": "Event", "apiVersion": "v1", "metadata": { "name": "e" }, "involvedObject": { "name": "web" },
            "message": "m", "source": { "component": "c" }, "firstTimestamp": null, "lastTimestamp": null, "count": 2,
            "reportingComponent": "c", "reportingInstance": "i", "eventTime": null, "series": { "count": 2 },
        });
        let view = outward(&EVENTS_VIEW, stored.clone());
        assert_eq!((&view["note"], &view["regarding"]["name"]), (&json!("m"), &json!("web")));
        assert_eq!((&view["apiVersion"], view.get("message")), (&json!("events.k8s.io/v1"), None));
        assert_eq!(inward(&EVENTS_VIEW, view), stored);
        assert_eq!(outward(&EVENTS, stored.clone()), stored);
    }
}
