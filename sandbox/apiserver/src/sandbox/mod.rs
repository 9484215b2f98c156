//! The handle that tests hold.

pub(crate) mod manifests;
pub(crate) mod pods;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::event_view;
use crate::faults::{Cut, Fault};
use crate::json;
use crate::kinds::ScalePaths;
use crate::kinds::{Kinds, NAMESPACES};
use crate::options::SandboxOptions;
use crate::request::FieldManager;
use crate::request::Write;
use crate::request::{Target, Verb};
use crate::server::Server;
use crate::server::admission::Attempt;
use crate::server::delete::{DeleteOptions, Deleted};
use crate::service::SandboxService;
use crate::service::log::Request;
use crate::service::shared::Shared;
use crate::status::Status;
use crate::store::stored::Stored;

/// An API server in this process; cloning yields another handle on the same one.
///
/// Its methods reach the objects directly: no fault hits them and no request is noted, but they mean what the same
/// request would mean, admission included.
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
    /// Starts an API server that has the namespaces of every cluster and nothing else.
    #[must_use]
    pub fn new(options: SandboxOptions) -> Self {
        let server = Server::new(&options);
        let shared = Arc::new(Shared::new(server, &options));
        let now = shared.now();
        shared.change(|state| state.server.create_first_namespaces(now));
        Self { shared }
    }

    /// Looks at what is served.
    pub(crate) fn with_kinds<T>(&self, look: impl FnOnce(&Kinds) -> T) -> T {
        look(&self.shared.lock().server.kinds)
    }

    /// The API as a tower service.
    #[must_use]
    pub fn service(&self) -> SandboxService {
        SandboxService::new(self.shared.clone())
    }

    /// A client of this API server; must be called within a tokio runtime.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Serves one more resource, as a custom resource definition with a status would.
    pub fn register(&self, resource: Resource) {
        self.shared.change_rules(|state| state.server.kinds.register(resource, None));
    }

    /// Serves one more resource as [`Sandbox::register`] does, with a scale.
    pub fn register_scaled(&self, resource: Resource, scale: ScalePaths) {
        self.shared.change_rules(|state| state.server.kinds.register(resource, Some(scale)));
    }

    /// Serves one more resource, as built-in ones are: with strategic merge patches, and puts without a version.
    pub fn register_built_in(&self, resource: Resource, has_status: bool, counts_generation: bool) {
        self.shared.change_rules(|state| state.server.kinds.register_built_in(resource, has_status, counts_generation));
    }

    /// Serves a resource no more: its objects are gone, its watches end.
    pub fn unregister(&self, resource: &Resource) {
        self.shared.change_rules(|state| {
            state.server.kinds.unregister(resource);
            state.server.store.forget(resource);
        });
    }

    /// Warns whoever creates such objects that they are stored and nothing else happens: no controller of theirs runs.
    pub fn unattended(&self, resources: impl IntoIterator<Item = Resource>) {
        let resources = resources.into_iter().collect();
        self.shared.change_rules(|state| state.server.unattended = resources);
    }

    /// Adds a hook that may refuse writes, as admission does; it runs after validation, on direct writes too.
    pub fn admit(&self, hook: impl Fn(&Attempt<'_>) -> Result<(), Status> + Send + Sync + 'static) {
        self.shared.change_rules(|state| state.server.hooks.push(Box::new(hook)));
    }

    /// The faults of this API server.
    #[must_use]
    pub fn faults(&self) -> FaultControls {
        FaultControls { shared: self.shared.clone() }
    }

    /// The requests that came over the service, oldest first; of them the last [`SandboxOptions::request_log`].
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().log.all()
    }

    /// Forgets the requests that came so far.
    pub fn clear_requests(&self) {
        self.shared.lock().log.clear();
    }

    /// How many watches of a resource are open.
    #[must_use]
    pub fn open_watches(&self, resource: &Resource) -> usize {
        self.shared.lock().subscribers(resource)
    }

    /// The version of the last write.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.lock().server.store.version()
    }

    /// The time as objects are stamped now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.now().time
    }

    /// Sends a bookmark on every open watch of a resource that takes them, once it has caught up.
    pub fn bookmark(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.bookmark(resource));
    }

    /// Drops all past events: watches and lists from earlier versions are answered with 410.
    pub fn compact(&self) {
        self.shared.change_rules(|state| state.server.store.compact());
    }

    /// Reads one object.
    #[must_use]
    pub fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<Value> {
        let stored = self.shared.lock().server.store.get(event_view::stored_as(resource), key).cloned();
        stored.map(|object| event_view::outward(resource, Arc::unwrap_or_clone(object.value())))
    }

    /// Reads all objects of a resource, of one namespace where one is given, by namespace and name.
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

    /// Creates an object in the namespace that it names, or in `default`.
    pub fn create(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        let namespace = json::text(&object, &["metadata", "namespace"]).unwrap_or("default").to_owned();
        let target = Target::new(Verb::Create, resource, Some(namespace), None, None);
        let object = event_view::inward(resource, object);
        self.write(&target, |server, write| server.create(write, server.reader(&target)?(object)?))
    }

    /// Puts an object.
    pub fn update(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        self.put(resource, None, object)
    }

    /// Puts an object's status.
    pub fn update_status(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        self.put(resource, Some("status"), object)
    }

    /// Merges a JSON merge patch into an object.
    pub fn patch(&self, resource: &Resource, key: &ObjectKey, merge_patch: &Value) -> Result<Value, Status> {
        self.merge(resource, key, None, merge_patch)
    }

    /// Merges a JSON merge patch into an object, through its status subresource.
    pub fn patch_status(&self, resource: &Resource, key: &ObjectKey, merge_patch: &Value) -> Result<Value, Status> {
        self.merge(resource, key, Some("status"), merge_patch)
    }

    /// Deletes an object as a client without wishes does: it may stay for its grace period or its finalizers.
    ///
    /// Returns the object as long as it is still there.
    pub fn delete(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Value>, Status> {
        self.delete_with(resource, key, &DeleteOptions::default())
    }

    /// Deletes an object without grace, as a kubelet does once a pod has stopped; finalizers still hold it.
    ///
    /// Returns the object as long as it is still there.
    pub fn delete_now(&self, resource: &Resource, key: &ObjectKey) -> Result<Option<Value>, Status> {
        self.delete_with(resource, key, &DeleteOptions { grace: Some(0), ..DeleteOptions::default() })
    }

    /// Creates a namespace.
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

/// Makes things go wrong, and right again.
///
/// What concerns watches and lists is set by resource; whoever watches it is concerned.
#[derive(Clone)]
pub struct FaultControls {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for FaultControls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultControls").finish_non_exhaustive()
    }
}

impl FaultControls {
    /// Adds a fault of requests.
    #[expect(clippy::must_use_candidate, reason = "the fault is at work whether or not anybody counts its hits")]
    pub fn inject(&self, fault: Fault) -> InjectedFault {
        let id = self.shared.change_rules(|state| state.faults.inject(fault));
        InjectedFault { shared: self.shared.clone(), id }
    }

    /// Keeps the watches of a resource from saying anything until they are released; no event gets lost.
    ///
    /// A watch that is held for longer than the window lasts is cut off when it is released.
    pub fn hold_watches(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.of(resource).held = true);
    }

    /// Ends [`FaultControls::hold_watches`].
    pub fn release_watches(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.of(resource).held = false);
    }

    /// Delivers events of a resource so long after they happened, in their order; zero ends it.
    pub fn delay_events(&self, resource: &Resource, delay: Duration) {
        self.shared.change_rules(|state| state.faults.of(resource).delay = delay);
    }

    /// Hides the next `count` events of a resource from all watches; bookmarks go on as if they had been sent.
    pub fn drop_events(&self, resource: &Resource, count: usize) {
        self.shared.change_rules(|state| state.faults.of(resource).drop_next = count);
    }

    /// Ends the watches of a resource that are open now.
    pub fn cut_watches(&self, resource: &Resource, how: Cut) {
        self.shared.change_rules(|state| state.faults.cut(resource, how));
    }

    /// Ends the next watch of a resource after `events` events, initial ones and bookmarks included.
    pub fn cut_next_watch(&self, resource: &Resource, events: usize, how: Cut) {
        self.shared.change_rules(|state| state.faults.of(resource).cut_next = Some((events, how)));
    }

    /// Makes the watches of a resource that are open now say nothing ever again, without ending.
    pub fn silence_watches(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.silence(resource));
    }

    /// Serves lists and initial events of a resource as they are now, where the request allows an old state
    /// (`resourceVersion=0`, or a version that is not newer).
    pub fn freeze_lists(&self, resource: &Resource) {
        self.shared.change_rules(|state| {
            let version = state.server.store.version();
            state.faults.of(resource).stale = Some(version);
        });
    }

    /// Ends [`FaultControls::freeze_lists`].
    pub fn thaw_lists(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.of(resource).stale = None);
    }

    /// Removes all faults; what has been cut, silenced or dropped stays so.
    pub fn clear(&self) {
        self.shared.change_rules(|state| state.faults.clear());
    }
}

/// A fault at work. Dropping this does not remove it.
#[derive(Clone)]
pub struct InjectedFault {
    shared: Arc<Shared>,
    id: u64,
}

impl std::fmt::Debug for InjectedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InjectedFault").field("id", &self.id).finish_non_exhaustive()
    }
}

impl InjectedFault {
    /// How many requests matched, those included that were let pass.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.shared.lock().faults.counts(self.id).0
    }

    /// How many requests were hit.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.shared.lock().faults.counts(self.id).1
    }

    /// Ends the fault.
    pub fn remove(&self) {
        self.shared.change_rules(|state| state.faults.remove(self.id));
    }
}
