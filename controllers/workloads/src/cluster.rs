//! Controllers as the manager runs them, on an API server in this process. Time is paused: waiting costs nothing.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::{ObjectKey, Resource};
use kcm_config::{Outcome, Sources, Table};
use kcm_framework::client::{ClientBuilder, Limits, UserAgent};
use kcm_framework::clock::SimulatedClock;
use kcm_framework::{ControllerDescriptor, Manager, Metrics, Registry, Selection, Stop};
use kcm_sandbox_apiserver::{EVENTS, PODS, Request, Sandbox, SandboxOptions};
use serde_json::Value;
use tokio::task::JoinSet;

/// The namespace of everything.
pub(crate) const NAMESPACE: &str = "shop";

/// Longer than any back-off that a test waits for.
const PATIENCE: Duration = Duration::from_mins(10);

/// The time at which every test begins.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T12:00:00Z".parse().expect("must be a time")
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

/// An API server and controllers on it, which stop when this is dropped.
pub(crate) struct Cluster {
    pub(crate) sandbox: Sandbox,
    metrics: Arc<Metrics>,
    controller: &'static str,
    _manager: JoinSet<()>,
}

impl Cluster {
    /// Starts controllers on an API server that `prepare` has been given first, and waits until these are watched.
    ///
    /// The first controller is the one that is tested.
    pub(crate) async fn start(
        controllers: &[ControllerDescriptor],
        watched: &[Resource],
        prepare: impl FnOnce(&Sandbox),
    ) -> Self {
        let sandbox = Sandbox::new(SandboxOptions { start: now(), ..SandboxOptions::default() });
        sandbox.create_namespace(NAMESPACE).expect("the namespace must be new");
        prepare(&sandbox);
        let metrics = Metrics::new();
        let manager = manager(controllers, &sandbox, Arc::clone(&metrics));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { manager.run(Stop::default()).await.expect("the sandbox must answer") });
        let controller = controllers.first().expect("a controller must be tested").name();
        let cluster = Self { sandbox, metrics, controller, _manager: tasks };
        cluster
            .until("the informers watch", |sandbox| watched.iter().all(|resource| sandbox.open_watches(resource) > 0))
            .await;
        cluster
    }

    /// Waits until `holds`.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Sandbox) -> bool) {
        let waiting = async {
            while !holds(&self.sandbox) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let requests = self.requests("").into_iter().map(|request| format!("{request:?}")).collect::<Vec<_>>();
            panic!("it never came true that {what}; requests:\n{}", requests.join("\n"));
        }
    }

    /// Lets everything happen that happens within a while, short of a recheck or a long back-off.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    pub(crate) fn object(&self, resource: &Resource, name: &str) -> Value {
        self.sandbox.get(resource, &key(name)).expect("the object must be there")
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        self.sandbox.list(&PODS, Some(NAMESPACE))
    }

    pub(crate) fn pod_keys(&self) -> Vec<ObjectKey> {
        self.pods().iter().map(|pod| key(pod["metadata"]["name"].as_str().expect("pods have names"))).collect()
    }

    /// Type, reason and text of the controller's events in the namespace.
    pub(crate) fn events(&self) -> Vec<(String, String, String)> {
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let mut events = self.sandbox.list(&EVENTS, Some(NAMESPACE));
        events.retain(|event| event["source"]["component"] == self.controller);
        events.iter().map(|event| (text(event, "type"), text(event, "reason"), text(event, "message"))).collect()
    }

    /// What the controller itself asked of the API server, other than events, by method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Request> {
        let mut requests = self.sandbox.requests();
        requests.retain(|request| {
            let agent = request.headers.get("user-agent").and_then(|value| value.to_str().ok()).unwrap_or_default();
            agent.rsplit('/').next() == Some(self.controller)
                && request.method.contains(method)
                && !request.path.ends_with("/events")
                && !request.path.contains("/events/")
        });
        requests
    }

    /// The bodies of the requests of a method.
    pub(crate) fn bodies(&self, method: &str) -> Vec<Value> {
        let parse = |request: Request| serde_json::from_str(&request.body).expect("bodies are JSON");
        self.requests(method).into_iter().map(parse).collect()
    }

    pub(crate) fn metrics(&self) -> String {
        self.metrics.encode()
    }
}

/// The object without what the API server gives it.
pub(crate) fn as_sent(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("fixtures have metadata");
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
        metadata.remove(field);
    }
    object
}

fn manager(controllers: &[ControllerDescriptor], sandbox: &Sandbox, metrics: Arc<Metrics>) -> Manager {
    let rows = controllers.iter().flat_map(|controller| controller.rows().iter().copied());
    let table = Table::new(rows).expect("the rows must make a table");
    let Ok(Outcome::Settings(settings)) = table.load(&Sources::default()) else { panic!("the defaults must be valid") };
    let registry = Registry::of(controllers.iter().copied()).expect("the descriptors must be valid");
    let selection = Selection::parse(["*"], &registry, &[]).expect("the star is always known");
    let user_agent = UserAgent::new("kube-controller-manager", "v1.36.3", "0000000");
    Manager {
        registry,
        selection,
        settings: *settings,
        clients: ClientBuilder::new(sandbox.client(), user_agent, Limits::UNLIMITED),
        server: "the sandbox".to_owned(),
        clock: Arc::new(SimulatedClock::starting_at(sandbox.now())),
        metrics,
        seed: 1,
        start_interval: Duration::ZERO,
        min_resync: Duration::from_hours(12),
        extensions: kcm_framework::Extensions::default(),
    }
}
