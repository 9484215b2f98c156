//! [`Sandbox`]: the handle of an in-process API server.

pub(crate) mod fault_controls;
pub(crate) mod manifests;
pub(crate) mod pods;

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::clock::{ManualClock, SandboxClock};
use crate::event_view;
use crate::json;
use crate::kinds::ScalePaths;
use crate::kinds::{Kinds, NAMESPACES};
use crate::options::SandboxOptions;
use crate::request::FieldManager;
use crate::request::Write;
use crate::request::{Target, Verb};
use crate::sandbox::fault_controls::FaultControls;
use crate::server::admission::Attempt;
use crate::server::delete::{DeleteOptions, Deleted};
use crate::server::{PathHandler, Server};
use crate::service::SandboxService;
use crate::service::exchange::{Exchanged, exchange};
use crate::service::log::Request;
use crate::service::shared::Shared;
use crate::status::Status;
use crate::store::storage::TooOld;
use crate::store::stored::Stored;

/// An in-process API server; clones are handles of the same server.
///
/// Its methods access the store directly: faults do not apply and requests are not logged. Otherwise they behave like
/// the same request, including admission.
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new(SandboxOptions::default())
    }
}

impl Sandbox {
    /// Starts an API server that contains only the initial namespaces.
    #[must_use]
    pub fn new(options: SandboxOptions) -> Self {
        Self::on(options, SandboxClock::tokio())
    }

    /// Starts an API server like [`Sandbox::new`] whose time is `clock`. Use [`Sandbox::exchange`] and [`DirectClient`] on it:
    /// delays of faults and streams of watches follow tokio's clock.
    ///
    /// [`DirectClient`]: crate::direct::DirectClient
    #[must_use]
    pub fn with_clock(options: SandboxOptions, clock: ManualClock) -> Self {
        Self::on(options, SandboxClock::manual(clock))
    }

    fn on(options: SandboxOptions, clock: SandboxClock) -> Self {
        let server = Server::new(&options);
        let shared = Arc::new(Shared::new(server, &options, clock));
        let now = shared.now();
        shared.change(|state| state.server.create_first_namespaces(now));
        Self { shared }
    }

    /// Performs a request at once and returns its whole response, or the watch that it opens.
    ///
    /// It needs no runtime. Faults apply except for their delays. A read of a version that is not reached yet fails
    /// at once.
    #[must_use]
    pub fn exchange(&self, request: http::Request<bytes::Bytes>) -> Exchanged {
        exchange(&self.shared, request)
    }

    /// Returns an API server of its own with the same objects, past events, kinds and hooks, whose time is `clock`.
    ///
    /// `clock` is advanced to the time of this one. Both servers number, name and time their next writes alike. What the
    /// one does afterwards, the other does not see. Injected faults, logged requests and open watches are not
    /// copied. Hooks and path handlers are the same closures, so they must not change anything.
    #[must_use]
    pub fn fork(&self, clock: ManualClock) -> Self {
        Self { shared: Arc::new(self.shared.fork(clock)) }
    }

    /// Reads the served kinds.
    pub(crate) fn with_kinds<T>(&self, look: impl FnOnce(&Kinds) -> T) -> T {
        look(&self.shared.lock().server.kinds)
    }

    /// Returns the API as a tower service.
    #[must_use]
    pub fn service(&self) -> SandboxService {
        SandboxService::new(self.shared.clone())
    }

    /// Returns a client of this API server.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Adds a resource, as a custom resource definition with a status subresource does.
    pub fn register(&self, resource: Resource) {
        self.shared.change_rules(|state| state.server.kinds.register(resource, None));
    }

    /// Adds a resource like [`Sandbox::register`], with a scale subresource.
    pub fn register_scaled(&self, resource: Resource, scale: ScalePaths) {
        self.shared.change_rules(|state| state.server.kinds.register(resource, Some(scale)));
    }

    /// Adds a resource that behaves like a built-in one: strategic merge patch, and updates without a `resourceVersion`.
    pub fn register_built_in(&self, resource: Resource, has_status: bool, counts_generation: bool) {
        self.shared.change_rules(|state| state.server.kinds.register_built_in(resource, has_status, counts_generation));
    }

    /// Serves the API `metrics.k8s.io`, as metrics-server does: what pods use follows the annotations
    /// [`USAGE_CPU`](crate::USAGE_CPU) and [`USAGE_MEMORY`](crate::USAGE_MEMORY) of each pod.
    pub fn serve_usage(&self) {
        self.shared.change_rules(|state| state.server.kinds.register_usage());
    }

    /// Serves every path that begins with `prefix` and belongs to no kind, as an aggregated API does. `handler` takes the path
    /// as it was requested and returns a parameter of the query by its name; without a response the request hangs.
    pub fn serve_path(
        &self,
        prefix: &str,
        handler: impl Fn(&str, &dyn Fn(&str) -> Option<String>) -> Option<Result<Value, Status>> + Send + Sync + 'static,
    ) {
        let handler: PathHandler =
            Arc::new(move |path, query| handler(path, &|name| query.get(name).map(str::to_owned)));
        self.shared.change_rules(|state| state.server.aggregated.push((prefix.to_owned(), handler)));
    }

    /// Removes a resource: its objects are deleted and its watches end.
    pub fn unregister(&self, resource: &Resource) {
        self.shared.change_rules(|state| {
            state.server.kinds.unregister(resource);
            state.server.store.forget(resource);
        });
    }

    /// Marks resources whose controllers do not run: creating such an object returns a warning that it is only stored.
    pub fn mark_unreconciled(&self, resources: impl IntoIterator<Item = Resource>) {
        let resources = resources.into_iter().collect();
        self.shared.change_rules(|state| state.server.unreconciled = resources);
    }

    /// Adds an admission hook, which may reject writes; it runs after validation, also for direct writes.
    pub fn admit(&self, hook: impl Fn(&Attempt<'_>) -> Result<(), Status> + Send + Sync + 'static) {
        self.shared.change_rules(|state| state.server.hooks.push(Arc::new(hook)));
    }

    /// Returns the fault controls of this API server.
    #[must_use]
    pub fn faults(&self) -> FaultControls {
        FaultControls { shared: self.shared.clone() }
    }

    /// Returns the last [`SandboxOptions::request_log`] requests that came over the service, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().log.all()
    }

    /// Clears the request log.
    pub fn clear_requests(&self) {
        self.shared.lock().log.clear();
    }

    /// Returns the number of open watches of a resource.
    #[must_use]
    pub fn open_watches(&self, resource: &Resource) -> usize {
        self.shared.lock().subscribers(resource)
    }

    /// Returns the resource version of the last write.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.lock().server.store.version()
    }

    /// Returns the current time, as used for object timestamps.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.now().time
    }

    /// Sends a bookmark on every open watch of a resource that allows bookmarks, after its pending events.
    pub fn bookmark(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.bookmark(resource));
    }

    /// Drops all past events: watches and lists from earlier resource versions get 410 (Gone).
    pub fn compact(&self) {
        self.shared.change_rules(|state| state.server.store.compact());
    }

    /// Sets the storage back to an earlier version, as a restore of etcd from a backup does without `--bump-revision`.
    /// Versions are given a second time. Call it while the API server is [stopped](FaultControls::stop_api_server).
    ///
    /// # Errors
    /// If the past events after `version` are not kept any more.
    pub fn restore(&self, version: u64) -> Result<(), TooOld> {
        let mut restored = Ok(());
        self.shared.change_rules(|state| restored = state.server.store.restore(version));
        restored
    }

    /// Returns a copy of an object, if it exists.
    #[must_use]
    pub fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<Value> {
        let stored = self.shared.lock().server.store.get(event_view::stored_as(resource), key).cloned();
        stored.map(|object| event_view::outward(resource, Arc::unwrap_or_clone(object.value())))
    }

    /// Lists the objects of a resource, in one namespace if given, sorted by namespace and name.
    #[must_use]
    pub fn list(&self, resource: &Resource, namespace: Option<&str>) -> Vec<Value> {
        let state = self.shared.lock();
        let stored: Vec<Arc<Stored>> = state
            .server
            .store
            .list(event_view::stored_as(resource), namespace)
            .map(|(_, object)| object.clone())
            .collect();
        drop(state);
        stored.into_iter().map(|object| event_view::outward(resource, Arc::unwrap_or_clone(object.value()))).collect()
    }

    /// Creates an object in its `metadata.namespace`, or in `default`.
    pub fn create(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        let namespace = json::text(&object, &["metadata", "namespace"]).unwrap_or("default").to_owned();
        let target = Target::new(Verb::Create, resource, Some(namespace), None, None);
        let object = event_view::inward(resource, object);
        self.write(&target, |server, write| server.create(write, server.reader(&target)?(object)?))
    }

    /// Replaces an object, as PUT does.
    pub fn update(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        self.put(resource, None, object)
    }

    /// Updates the status of an object.
    pub fn update_status(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        self.put(resource, Some("status"), object)
    }

    /// Applies a JSON merge patch to an object.
    pub fn patch(&self, resource: &Resource, key: &ObjectKey, merge_patch: &Value) -> Result<Value, Status> {
        self.merge(resource, key, None, merge_patch)
    }

    /// Applies a JSON merge patch to the status subresource of an object.
    pub fn patch_status(&self, resource: &Resource, key: &ObjectKey, merge_patch: &Value) -> Result<Value, Status> {
        self.merge(resource, key, Some("status"), merge_patch)
    }

    /// Deletes an object with default options: it may remain for its grace period or its finalizers.
    ///
    /// Returns the object if it still exists.
    pub fn delete(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Value>, Status> {
        self.delete_with(resource, key, &DeleteOptions::default())
    }

    /// Deletes an object with grace period 0, as a kubelet does after a pod has stopped; finalizers still apply.
    ///
    /// Returns the object if it still exists.
    pub fn delete_now(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Value>, Status> {
        self.delete_with(resource, key, &DeleteOptions { grace: Some(0), ..DeleteOptions::default() })
    }

    /// Creates a namespace of this name.
    pub fn create_namespace(&self, name: &str) -> Result<Value, Status> {
        self.create(&NAMESPACES, json!({ "metadata": { "name": name } }))
    }

    pub(crate) fn bind(&self, resource: &Resource, key: &ObjectKey, node: &str) -> Result<Value, Status> {
        let target = Target::of(Verb::Create, resource, key, Some("binding"));
        self.write(&target, |server, write| {
            server.bind(write, &json!({ "metadata": { "name": key.name() }, "target": { "name": node } }))
        })
    }

    fn put(&self, resource: &Resource, subresource: Option<&str>, object: Value) -> Result<Value, Status> {
        let namespace = json::text(&object, &["metadata", "namespace"]).unwrap_or("default").to_owned();
        let name = json::name(&object).to_owned();
        let target = Target::new(Verb::Update, resource, Some(namespace), Some(name), subresource);
        let object = event_view::inward(resource, object);
        self.write(&target, |server, write| {
            server.update(write, server.reader(&target)?(object)?).map(|(_, stored)| stored)
        })
    }

    fn merge(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Option<&str>,
        merge_patch: &Value,
    ) -> Result<Value, Status> {
        let target = Target::of(Verb::Patch, resource, key, subresource);
        let merge_patch = event_view::inward(resource, merge_patch.clone());
        self.write(&target, |server, write| {
            let read = server.reader(&target)?;
            server.patch(write, |old| {
                let mut patched = old.clone();
                json::merge(&mut patched, &merge_patch);
                read(patched)
            })
        })
    }

    fn delete_with(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Option<Value>, Status> {
        let target = Target::of(Verb::Delete, resource, key, None);
        let write =
            Write { target: &target, dry_run: false, field_manager: FieldManager::DIRECT, now: self.shared.now() };
        match self.shared.change(|state| state.server.delete(write, options))? {
            Deleted::Gone(_) => Ok(None),
            Deleted::Terminating(object) => Ok(Some(Value::clone(&object))),
        }
    }

    fn write(
        &self,
        target: &Target,
        write: impl FnOnce(&mut Server, Write<'_>) -> Result<Arc<Value>, Status>,
    ) -> Result<Value, Status> {
        let written = self.perform(target, FieldManager::DIRECT, write);
        written.map(|object| event_view::outward(&target.resource, Value::clone(&object)))
    }

    pub(crate) fn perform(
        &self,
        target: &Target,
        field_manager: FieldManager<'_>,
        write: impl FnOnce(&mut Server, Write<'_>) -> Result<Arc<Value>, Status>,
    ) -> Result<Arc<Value>, Status> {
        let request = Write { target, dry_run: false, field_manager, now: self.shared.now() };
        self.shared.change(|state| write(&mut state.server, request))
    }
}
