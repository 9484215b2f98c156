//! The verbs of a session for objects of known kinds, the time, events and explanations.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{Document, Documented, KnownView, Meta, ObjectKey, PartialObjectMeta, Resource, Uid, View};
use kcm_client::{ApiError, Deleted, Patch, Payload, ResponseExt as _, Written};
use kcm_informers::Informer;
use serde::Serialize;
use serde_json::Value;

use super::Session;
use super::delete::Delete;
use crate::events::{Event, EventText, EventType, ObjectReference, Recorder};

impl Session {
    /// The current wall time, for times that are written to the API or compared with them.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.context().clock.now()
    }

    /// Reconciles the key again at a time at the latest, at once if that is past; `None` sets no time.
    ///
    /// See [`requeue_after`](Self::requeue_after) for the guarantees.
    pub fn requeue_by(&self, at: impl Into<Option<Timestamp>>) {
        if let Some(at) = at.into() {
            self.requeue_after(Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO));
        }
    }

    /// Reads an object from the API server; `None` if it does not exist.
    pub async fn live<V: KnownView>(&self, key: &ObjectKey) -> Result<Option<V>, ApiError> {
        self.api().get(const { &V::RESOURCE }, key).await.ignore_not_found()
    }

    /// Reads the metadata of an object of the kind `V` from the API server; `None` if it does not exist. An object whose
    /// other fields cannot be decoded counts.
    pub async fn live_meta<V: KnownView>(&self, key: &ObjectKey) -> Result<Option<PartialObjectMeta>, ApiError> {
        self.api().get(const { &V::RESOURCE }, key).await.ignore_not_found()
    }

    /// Reads the object of a cache from the API server; `None` if it does not exist, or was recreated under the same name.
    pub async fn live_as<V: KnownView>(&self, cached: &V) -> Result<Option<V>, ApiError> {
        let cached = cached.meta();
        let live = self.live::<V>(&cached.key).await?;
        Ok(live.filter(|live| live.meta().uid == cached.uid))
    }

    /// Creates the object `key`, whose name `object` carries; see [`SessionOf::create`](super::SessionOf::create).
    ///
    /// # Errors
    /// [`ApiError::is_already_exists`] if the name is taken, [`ApiError::is_probably_created`] if an earlier attempt of this
    /// request may have taken it, [`ApiError::is_namespace_terminating`] if nothing can be created in the namespace.
    pub async fn create<V: KnownView>(&self, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).create(key, object).await
    }

    /// Updates `object` to `document`, which carries the resource version that it is based on.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if the object has another version.
    pub async fn update<V: KnownView>(&self, object: &V, document: &Document) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).update(&object.meta().key, payload(document)).await
    }

    /// Updates the status of `object` to the status in `document`, as [`update`](Self::update) does the object.
    pub async fn update_status<V: KnownView>(&self, object: &V, document: &Document) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).update_status(&object.meta().key, payload(document)).await
    }

    /// Patches `object` with a patch of any type.
    pub async fn patch<V: KnownView>(&self, object: &V, patch: Patch) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).patch(&object.meta().key, patch).await
    }

    /// Patches the status of `object`.
    pub async fn patch_status<V: KnownView>(&self, object: &V, patch: Patch) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).patch_status(&object.meta().key, patch).await
    }

    /// Merges `changes` into an object of a cache, as a JSON merge patch.
    ///
    /// The patch carries the uid of the object, so that it never changes an object recreated under the same name.
    pub async fn merge_patch<V: KnownView>(&self, object: &V, changes: Value) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).merge_patch(object.meta(), changes).await
    }

    /// Applies `configuration` to the object `key` by server-side apply; see [`Patch::apply`].
    pub async fn apply<V: KnownView>(
        &self,
        key: &ObjectKey,
        field_manager: &str,
        configuration: &impl Serialize,
    ) -> Result<Written, ApiError> {
        self.of(const { &V::RESOURCE }).apply(key, field_manager, configuration).await
    }

    /// Deletes `object`. An object that does not exist any more is no error.
    ///
    /// The uid of the object is a precondition, so that an object recreated under the same name is kept.
    ///
    /// # Errors
    /// [`ApiError::is_other_object`] if it was recreated.
    pub async fn delete<V: KnownView>(&self, object: &V, how: Delete) -> Result<Deleted, ApiError> {
        let meta = object.meta();
        self.delete_named::<V>(&meta.key, &meta.uid, how).await
    }

    /// Deletes the object `key` if it has this uid, as [`delete`](Self::delete) does.
    pub async fn delete_named<V: KnownView>(
        &self,
        key: &ObjectKey,
        uid: &Uid,
        how: Delete,
    ) -> Result<Deleted, ApiError> {
        self.of(const { &V::RESOURCE }).delete(key, uid, &how).await
    }

    /// Adds a finalizer to an object of a cache; see [`SessionOf::add_finalizer`](super::SessionOf::add_finalizer).
    pub async fn add_finalizer<V: KnownView>(&self, object: &V, finalizer: &str) -> Result<bool, ApiError> {
        self.of(const { &V::RESOURCE }).add_finalizer(object.meta(), finalizer).await
    }

    /// Removes a finalizer from an object of a cache; see
    /// [`SessionOf::remove_finalizer`](super::SessionOf::remove_finalizer).
    pub async fn remove_finalizer<V: KnownView>(&self, object: &V, finalizer: &str) -> Result<bool, ApiError> {
        self.of(const { &V::RESOURCE }).remove_finalizer(object.meta(), finalizer).await
    }

    /// Applies `configuration` to the object `key`, as [`SessionOf::apply`](super::SessionOf::apply) does, if the cached
    /// object is not as configured; returns the cached object, which is absent before it is created.
    ///
    /// It compares [all fields of the configuration](Document::is_configured). So a change of these fields by another client
    /// is undone, and at rest no request is sent. A field that an earlier configuration had and this one lacks is removed
    /// when the object is applied the next time for another reason.
    pub async fn ensure_applied<V: View>(
        &self,
        objects: &Informer<Documented<V>>,
        key: &ObjectKey,
        field_manager: &str,
        configuration: &Value,
    ) -> Result<Option<Arc<Documented<V>>>, ApiError> {
        let cached = objects.get(key);
        if !cached.as_ref().is_some_and(|cached| cached.document.is_configured(configuration)) {
            self.of(objects.resource()).apply(key, field_manager, configuration).await?;
        }
        Ok(cached)
    }

    /// Records an event about an object of a kind that is known at compile time.
    ///
    /// Never waits, and never fails: see [`Recorder`].
    pub fn record<V: KnownView>(&self, object: &V, event: &impl Event) {
        self.record_for(const { &V::RESOURCE }, object.meta(), event);
    }

    /// Records an event about an object of any resource.
    ///
    /// A warning while the [fence](crate::client::Fence) is closed is not recorded: this manager may not write, and
    /// another manager does its work.
    pub fn record_for(&self, resource: &Resource, object: &Meta, event: &impl Event) {
        let EventText { type_, reason, message } = event.text();
        self.notes().recorded(&reason, &message);
        if type_ == EventType::Warning && self.api().fence().is_closed() {
            return;
        }
        self.recorder().event(&ObjectReference::of(resource, object), type_, &*reason, message);
    }

    /// Records in a sentence the decision of this reconcile and its reason, for the [explanation](crate::explain) of
    /// the key: "creates 2 pods: 5 are wanted and 3 are active".
    ///
    /// Writes, events and errors are noted without it. `decision` is called only if the key is explained.
    pub fn explain<D: Into<Cow<'static, str>>>(&self, decision: impl FnOnce() -> D) {
        self.notes().words(decision);
    }

    /// Logs and explains that the object of the key is invalid, so that the reconcile does nothing until it changes:
    /// `return Ok(session.wait_for_change("its selector is invalid", error))`.
    ///
    /// For fields that cannot be valid by a retry. Without this call, an error is retried with back-off.
    pub fn wait_for_change(&self, reason: &'static str, error: &dyn fmt::Display) {
        tracing::error!(%error, reason, "The object is invalid; not reconciled until it changes");
        self.explain(|| format!("does nothing until the object changes: {reason}"));
    }

    /// The event recorder of the controller.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.context().recorder
    }
}

fn payload(document: &Document) -> Payload {
    Payload::raw(document.as_str().to_owned())
}
