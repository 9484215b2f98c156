//! [`DirectClient`]: a client without HTTP, for the simulated kubelets, scheduler and controllers in this process.
//!
//! It reads stored objects without copying them. Its writes behave like the same request: validation, defaults,
//! admission and managed fields apply. Faults do not affect it, and its calls are not logged in
//! [`Sandbox::requests`](crate::Sandbox::requests).

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::json;
use crate::kinds::PODS;
use crate::request::FieldManager;
use crate::request::{Target, Verb, Write};
use crate::sandbox::Sandbox;
use crate::status::Status;

pub use crate::json::labels_of;
pub use crate::request::Now;
pub use crate::server::delete::{DeleteOptions, Propagation};
pub use crate::server::expiry::EVENT_LIFE;
pub use crate::store::storage::{Event, EventKind, TooOld};
pub use crate::store::stored::Stored;

/// All objects of a sandbox at one resource version.
pub type Objects = BTreeMap<Resource, BTreeMap<ObjectKey, Arc<Stored>>>;

/// A client of a sandbox without HTTP.
#[derive(Debug, Clone)]
pub struct DirectClient {
    sandbox: Sandbox,
    field_manager: FieldManager<'static>,
}

impl DirectClient {
    /// A client of this sandbox under the sandbox's own field manager.
    #[must_use]
    pub fn new(sandbox: &Sandbox) -> Self {
        Self { sandbox: sandbox.clone(), field_manager: FieldManager::DIRECT }
    }

    /// Returns the client with another field manager, which owns the fields that it writes.
    #[must_use]
    pub fn by(&self, manager: &'static str) -> Self {
        Self { sandbox: self.sandbox.clone(), field_manager: FieldManager { name: manager, ..FieldManager::DIRECT } }
    }

    /// Returns the time of a request that is sent now.
    #[must_use]
    pub fn now(&self) -> Now {
        self.sandbox.shared.now()
    }

    /// Returns the instant `at` after the start of the sandbox.
    #[must_use]
    pub fn instant(&self, at: std::time::Duration) -> tokio::time::Instant {
        self.sandbox.shared.instant(at)
    }

    /// Returns a receiver that is notified of every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.sandbox.shared.subscribe()
    }

    /// Notifies all receivers without a change.
    pub fn notify(&self) {
        self.sandbox.shared.change(|_| ());
    }

    /// Returns up to `limit` events after a resource version, oldest first.
    pub fn events_after(&self, version: u64, limit: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        Ok(self.sandbox.shared.lock().server.store.events_after(version)?.take(limit).cloned().collect())
    }

    /// Returns all objects and their resource version.
    #[must_use]
    pub fn snapshot(&self) -> (u64, Objects) {
        let state = self.sandbox.shared.lock();
        let store = &state.server.store;
        let mut objects = Objects::new();
        for kind in state.server.kinds.iter() {
            let all: BTreeMap<_, _> =
                store.list(&kind.resource, None).map(|(key, object)| (key.clone(), object.clone())).collect();
            if !all.is_empty() {
                objects.insert(kind.resource.clone(), all);
            }
        }
        (store.version(), objects)
    }

    /// Reports whether a resource is served.
    #[must_use]
    pub fn serves(&self, resource: &Resource) -> bool {
        self.sandbox.shared.lock().server.kinds.get(resource).is_some()
    }

    /// Returns the stored object, if it exists.
    #[must_use]
    pub fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        let stored = self.sandbox.shared.lock().server.store.get(resource, key).cloned();
        stored.map(|object| object.value())
    }

    /// Creates an object in the namespace that it names.
    pub fn create(&self, resource: &Resource, object: Value) -> Result<Arc<Value>, Status> {
        let namespace = json::text(&object, &["metadata", "namespace"]).map(str::to_owned);
        let target = Target::new(Verb::Create, resource, namespace, None, None);
        self.sandbox.perform(&target, self.field_manager, |server, write| server.create(write, object))
    }

    /// Updates an object to the result of `edit` and returns the stored object; `None` leaves it unchanged.
    pub fn edit(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Option<&str>,
        edit: impl FnOnce(&Value) -> Option<Value>,
    ) -> Result<Option<Arc<Value>>, Status> {
        let target = Target::of(Verb::Patch, resource, key, subresource);
        let mut changed = false;
        let object = self.sandbox.perform(&target, self.field_manager, |server, write| {
            let stored = server.store.value(resource, key);
            let Some(old) = stored else { return Err(Status::not_found(resource, key.name())) };
            match edit(&old) {
                // Most calls change nothing and skip validation.
                None => Ok(old),
                Some(new) => {
                    changed = true;
                    server.patch(write, |_| Ok(new))
                }
            }
        })?;
        Ok(changed.then_some(object))
    }

    /// Patches an object with a JSON merge patch.
    pub fn merge(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Option<&str>,
        merge_patch: &Value,
    ) -> Result<(), Status> {
        let edited = self.edit(resource, key, subresource, |old| {
            let mut new = old.clone();
            json::merge(&mut new, merge_patch);
            Some(new)
        });
        edited.map(drop)
    }

    /// Deletes an object as a DELETE request does.
    pub fn delete(&self, resource: &Resource, key: &ObjectKey, options: &DeleteOptions) -> Result<(), Status> {
        let target = Target::of(Verb::Delete, resource, key, None);
        let write = Write { target: &target, dry_run: false, field_manager: self.field_manager, now: self.now() };
        self.sandbox.shared.change(|state| state.server.delete(write, options)).map(drop)
    }

    /// Evicts a pod; a pod disruption budget may refuse. A pod that is not found counts as evicted.
    pub fn evict(&self, pod: &ObjectKey, uid: &str) -> Result<(), Status> {
        let target = Target::of(Verb::Create, &PODS, pod, Some("eviction"));
        let eviction = json!({
            "metadata": { "name": pod.name() }, "deleteOptions": { "preconditions": { "uid": uid } },
        });
        match self.sandbox.perform(&target, self.field_manager, |server, write| server.evict(write, &eviction)) {
            Err(status) if status.code == 404 => Ok(()),
            other => other.map(drop),
        }
    }

    /// Binds a pod to a node.
    pub fn bind(&self, resource: &Resource, pod: &ObjectKey, node: &str) -> Result<(), Status> {
        let target = Target::of(Verb::Create, resource, pod, Some("binding"));
        let binding = json!({ "metadata": { "name": pod.name() }, "target": { "kind": "Node", "name": node } });
        self.sandbox.perform(&target, self.field_manager, |server, write| server.bind(write, &binding)).map(drop)
    }
}
