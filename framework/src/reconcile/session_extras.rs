//! What a session offers beside its client: the time, the event recorder, and requests in fewer words.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{Document, Documented, KnownView, Meta, ObjectKey, Resource, View};
use kcm_client::{ApiError, Patch, Payload, Subresource, Written};
use kcm_informers::Informer;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Outcome, Session};
use crate::events::{EventDetails, EventType, ObjectReference, Recorder};

impl Session {
    /// The current time, for what is written into the API and compared with it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.context().clock.now()
    }

    /// The outcome of a reconcile whose key is to be reconciled again at a time, at once if that is past.
    pub fn requeue_at(&self, at: Timestamp) -> Outcome {
        Outcome::requeue_after(Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO))
    }

    /// Records an event about an object of a kind that is known at compile time.
    ///
    /// Never waits, and never fails: see [`Recorder`].
    pub fn record<V: KnownView>(&self, object: &V, event: &impl EventDetails) {
        self.record_for(const { &V::RESOURCE }, object.meta(), event);
    }

    /// Records an event about an object of any resource.
    ///
    /// A warning while the [fence](crate::client::Fence) is closed is not recorded: what fails is that this manager may not
    /// write, and another does its work.
    pub fn record_for(&self, resource: &Resource, object: &Meta, event: &impl EventDetails) {
        let regarding = ObjectReference::of(resource, object);
        let message = event.message();
        self.notes().recorded(event.reason(), &message);
        if event.event_type() == EventType::Warning && self.api().fence().is_closed() {
            return;
        }
        self.recorder().event(&regarding, event.event_type(), event.reason(), message);
    }

    /// Says in a sentence what this reconcile decides and why, for people who ask for an
    /// [explanation](crate::explain) of the key: "creates 2 pods: 5 are wanted and 3 are active".
    ///
    /// Writes, events and errors are noted without that. `decision` is not called where nothing is explained.
    pub fn explain<D: Into<Cow<'static, str>>>(&self, decision: impl FnOnce() -> D) {
        self.notes().words(decision);
    }

    /// The event recorder of the controller.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.context().recorder
    }

    /// Merges `changes` into an object of a cache, as a JSON merge patch.
    ///
    /// The patch carries the uid of the object, so that it never changes an object recreated under the same name.
    ///
    /// # Errors
    /// As those of [`patch`](Self::patch).
    pub async fn merge_patch<V: KnownView>(&self, object: &V, changes: Value) -> Result<Written, ApiError> {
        let patch = Patch::Merge(Payload::json(&with_uid(changes, object.meta())));
        self.patch(const { &V::RESOURCE }, &object.meta().key, Subresource::None, patch).await
    }

    /// Merges `status` into the status of an object of any resource, as a JSON merge patch with the uid of the object.
    ///
    /// # Errors
    /// As those of [`patch`](Self::patch).
    pub async fn merge_status(
        &self,
        resource: &Resource,
        object: &Meta,
        status: &impl Serialize,
    ) -> Result<Written, ApiError> {
        let patch = Patch::Merge(Payload::json(&with_uid(json!({ "status": status }), object)));
        self.patch(resource, &object.key, Subresource::Status, patch).await
    }

    /// Applies `configuration` to the object `key` by server-side apply; see [`Patch::apply`].
    ///
    /// # Errors
    /// As those of [`patch`](Self::patch).
    pub async fn apply(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        field_manager: &str,
        configuration: &impl Serialize,
    ) -> Result<Written, ApiError> {
        self.patch(resource, key, Subresource::None, Patch::apply(field_manager, configuration)).await
    }

    /// Applies `configuration` to the object `key`, as [`apply`](Self::apply) does, where the cached object is not as
    /// configured; returns the cached object, which is absent before it is created.
    ///
    /// It compares [all fields of the configuration](Document::is_configured). So whatever another client changes in them
    /// is applied again, and at rest no request is sent. A field that an earlier configuration had and this one lacks is
    /// removed when the object is applied the next time for another reason.
    ///
    /// # Errors
    /// As those of [`patch`](Self::patch).
    pub async fn ensure_applied<V: View>(
        &self,
        objects: &Informer<Documented<V>>,
        key: &ObjectKey,
        field_manager: &str,
        configuration: &Value,
    ) -> Result<Option<Arc<Documented<V>>>, ApiError> {
        let cached = objects.get(key);
        if !cached.as_ref().is_some_and(|cached| cached.document.is_configured(configuration)) {
            self.apply(objects.resource(), key, field_manager, configuration).await?;
        }
        Ok(cached)
    }

    /// Adds a finalizer to an object of a cache. Returns false, without a request, where the object has it.
    ///
    /// The patch carries the uid and the version of the object, so that finalizers which another client adds or removes
    /// meanwhile are not lost.
    ///
    /// # Errors
    /// As those of [`patch`](Self::patch); a conflict where the object has changed.
    pub async fn add_finalizer(&self, resource: &Resource, object: &Meta, finalizer: &str) -> Result<bool, ApiError> {
        let finalizers: Vec<&str> = object.finalizers.iter().map(|name| &**name).collect();
        if finalizers.contains(&finalizer) {
            return Ok(false);
        }
        self.set_finalizers(resource, object, [finalizers, vec![finalizer]].concat()).await
    }

    /// Removes a finalizer from an object of a cache. Returns false, without a request, where the object lacks it.
    ///
    /// # Errors
    /// As those of [`add_finalizer`](Self::add_finalizer).
    pub async fn remove_finalizer(
        &self,
        resource: &Resource,
        object: &Meta,
        finalizer: &str,
    ) -> Result<bool, ApiError> {
        let others: Vec<&str> =
            object.finalizers.iter().map(|name| &**name).filter(|name| *name != finalizer).collect();
        if others.len() == object.finalizers.len() {
            return Ok(false);
        }
        self.set_finalizers(resource, object, others).await
    }

    async fn set_finalizers(&self, resource: &Resource, object: &Meta, names: Vec<&str>) -> Result<bool, ApiError> {
        let metadata = json!({ "resourceVersion": object.resource_version, "finalizers": names });
        let patch = Patch::Merge(Payload::json(&with_uid(json!({ "metadata": metadata }), object)));
        self.patch(resource, &object.key, Subresource::None, patch).await?;
        Ok(true)
    }

    /// Updates the object or a subresource to `document`, which carries the resource version that it is based on.
    ///
    /// # Errors
    /// As those of [`put`](Self::put).
    pub async fn put_document(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
        document: &Document,
    ) -> Result<Written, ApiError> {
        self.put(resource, key, subresource, Payload::raw(document.as_str().to_owned())).await
    }
}

/// The patch with the uid of the object; what is no patch of an object stays as it is, for the API server to refuse.
fn with_uid(mut changes: Value, object: &Meta) -> Value {
    if let Value::Object(fields) = &mut changes
        && let Value::Object(metadata) = fields.entry("metadata").or_insert_with(|| json!({}))
    {
        metadata.insert("uid".to_owned(), json!(object.uid));
    }
    changes
}

#[cfg(test)]
mod tests {
    use kcm_api::{PartialObjectMeta, View as _};

    use super::*;

    #[test]
    fn a_merge_patch_carries_the_uid_beside_what_it_changes() {
        let object = PartialObjectMeta::decode(r#"{"metadata":{"name":"a","uid":"u"}}"#).unwrap();
        for (changes, patch) in [
            (json!({ "spec": { "replicas": 1 } }), json!({ "spec": { "replicas": 1 }, "metadata": { "uid": "u" } })),
            (json!({ "metadata": { "labels": null } }), json!({ "metadata": { "labels": null, "uid": "u" } })),
            (json!({ "metadata": null }), json!({ "metadata": null })),
            (json!([]), json!([])),
        ] {
            assert_eq!(with_uid(changes, object.meta()), patch);
        }
    }
}
