//! What the sessions of one loop share.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{Document, KnownView, Meta, ObjectKey, Resource};

use super::{NameGenerator, Outcome, Session};
use crate::client::{ApiError, Payload, Subresource, Written};
use crate::clock::Clock;
use crate::events::{EventDetails, ObjectReference, Recorder};

/// What the sessions of one loop share beside clients and caches.
pub(crate) struct LoopContext {
    /// The generator of names for new objects.
    pub(crate) names: NameGenerator,
    /// The wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The recorder of the controller.
    pub(crate) recorder: Recorder,
}

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
    pub fn record_for(&self, resource: &Resource, object: &Meta, event: &impl EventDetails) {
        let regarding = ObjectReference::of(resource, object);
        self.recorder().event(&regarding, event.event_type(), event.reason(), event.message());
    }

    /// The event recorder of the controller.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.context().recorder
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
