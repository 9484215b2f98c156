//! The API as the parts of the cluster use it: in process, with the semantics of requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::apply::Author;
use crate::kinds::PODS;
use crate::object;
use crate::patch;
use crate::sandbox::{Sandbox, target, target_of};
use crate::server::delete::DeleteOptions;
use crate::server::{Now, Write};
use crate::service::request::Verb;
use crate::status::Status;
use crate::store::storage::{Event, TooOld};
use crate::store::stored::Stored;

/// All objects of a sandbox at one version.
pub(crate) type Objects = BTreeMap<Resource, BTreeMap<ObjectKey, Arc<Stored>>>;

/// Objects of a sandbox, read without copying and written with all that a request would go through, but for faults.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    sandbox: Sandbox,
    author: Author<'static>,
}

impl Api {
    pub(crate) fn new(sandbox: &Sandbox) -> Self {
        Self { sandbox: sandbox.clone(), author: Author::DIRECT }
    }

    /// The same API as used by the program of this name: it owns the fields that it writes.
    #[must_use]
    pub(crate) fn by(&self, manager: &'static str) -> Self {
        Self { sandbox: self.sandbox.clone(), author: Author { manager, ..Author::DIRECT } }
    }

    pub(crate) fn now(&self) -> Now {
        self.sandbox.shared.now()
    }

    /// The moment that lies `at` after the sandbox was made.
    pub(crate) fn instant(&self, at: std::time::Duration) -> tokio::time::Instant {
        self.sandbox.shared.instant(at)
    }

    /// Rings after every change.
    pub(crate) fn bell(&self) -> watch::Receiver<()> {
        self.sandbox.shared.listen()
    }

    /// Wakes whoever listens.
    pub(crate) fn ring(&self) {
        self.sandbox.shared.change(|_| ());
    }

    /// Up to `limit` events after a version, oldest first.
    pub(crate) fn events_after(&self, version: u64, limit: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        Ok(self.sandbox.shared.lock().server.store.events_after(version)?.take(limit).cloned().collect())
    }

    /// Everything there is, and its version.
    pub(crate) fn everything(&self) -> (u64, Objects) {
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

    /// Whether a resource is served.
    pub(crate) fn serves(&self, resource: &Resource) -> bool {
        self.sandbox.shared.lock().server.kinds.get(resource).is_some()
    }

    pub(crate) fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        let stored = self.sandbox.shared.lock().server.store.get(resource, key).cloned();
        stored.map(|object| object.value())
    }

    pub(crate) fn create(&self, resource: &Resource, object: Value) -> Result<Arc<Value>, Status> {
        let namespace = object::text(&object, &["metadata", "namespace"]).map(str::to_owned);
        let target = target(Verb::Create, resource, namespace, None, None);
        self.sandbox.perform(&target, self.author, |server, write| server.create(write, object))
    }

    /// Replaces an object by what `edit` makes of it and returns it; `None` leaves it as it is.
    pub(crate) fn edit(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Option<&str>,
        edit: impl FnOnce(&Value) -> Option<Value>,
    ) -> Result<Option<Arc<Value>>, Status> {
        let target = target_of(Verb::Patch, resource, key, subresource);
        let mut changed = false;
        let object = self.sandbox.perform(&target, self.author, |server, write| {
            let stored = server.store.value(resource, key);
            let Some(old) = stored else { return Err(Status::not_found(resource, key.name())) };
            match edit(&old) {
                // Most looks at an object change nothing: they stay clear of validation.
                None => Ok(old),
                Some(new) => {
                    changed = true;
                    server.patch(write, |_| Ok(new))
                }
            }
        })?;
        Ok(changed.then_some(object))
    }

    /// Lays a JSON merge patch over an object.
    pub(crate) fn merge(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Option<&str>,
        merge_patch: &Value,
    ) -> Result<(), Status> {
        let edited = self.edit(resource, key, subresource, |old| {
            let mut new = old.clone();
            patch::merge(&mut new, merge_patch);
            Some(new)
        });
        edited.map(drop)
    }

    pub(crate) fn delete(&self, resource: &Resource, key: &ObjectKey, options: &DeleteOptions) -> Result<(), Status> {
        let target = target_of(Verb::Delete, resource, key, None);
        let write = Write { target: &target, dry_run: false, author: self.author, now: self.now() };
        self.sandbox.shared.change(|state| state.server.delete(write, options)).map(drop)
    }

    /// Asks a pod to leave its node; a budget may refuse.
    pub(crate) fn evict(&self, pod: &ObjectKey, uid: &str) -> Result<(), Status> {
        let target = target_of(Verb::Create, &PODS, pod, Some("eviction"));
        let eviction = json!({
            "metadata": { "name": pod.name() }, "deleteOptions": { "preconditions": { "uid": uid } },
        });
        match self.sandbox.perform(&target, self.author, |server, write| server.evict(write, &eviction)) {
            Err(status) if status.code == 404 => Ok(()),
            other => other.map(drop),
        }
    }

    pub(crate) fn bind(&self, resource: &Resource, pod: &ObjectKey, node: &str) -> Result<(), Status> {
        let target = target_of(Verb::Create, resource, pod, Some("binding"));
        let binding = json!({ "metadata": { "name": pod.name() }, "target": { "kind": "Node", "name": node } });
        self.sandbox.perform(&target, self.author, |server, write| server.bind(write, &binding)).map(drop)
    }
}
