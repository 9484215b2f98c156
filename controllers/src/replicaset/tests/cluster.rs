//! The controller as the manager runs it, on an API server in this process. Time is paused: waiting costs nothing.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_config::{Outcome, Sources, Table};
use kcm_framework::client::{ClientBuilder, Limits, UserAgent};
use kcm_framework::clock::SimulatedClock;
use kcm_framework::{Manager, Metrics, Registry, Selection, Stop};
use kcm_sandbox::{EVENTS, PODS, REPLICA_SETS, Request, Sandbox, SandboxOptions};
use serde_json::Value;
use tokio::task::JoinSet;

use super::fixtures::{NAMESPACE, PodBuilder, ReplicaSetBuilder, key, now};
use crate::replicaset::DESCRIPTOR;
use crate::replicaset::settings::ROWS;

/// Longer than any back-off that a test waits for.
const PATIENCE: Duration = Duration::from_mins(10);

/// An API server and the controller on it, which stops when this is dropped.
pub(crate) struct Cluster {
    pub(crate) sandbox: Sandbox,
    metrics: Arc<Metrics>,
    _manager: JoinSet<()>,
}

impl Cluster {
    /// Starts the controller on an API server that `prepare` has been given first.
    pub(crate) async fn start(prepare: impl FnOnce(&Sandbox)) -> Self {
        let sandbox = Sandbox::new(SandboxOptions { start: now(), ..SandboxOptions::default() });
        sandbox.create_namespace(NAMESPACE).expect("the namespace must be new");
        prepare(&sandbox);
        let metrics = Metrics::new();
        let manager = manager(&sandbox, Arc::clone(&metrics));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { manager.run(Stop::default()).await.expect("the sandbox must answer") });
        let cluster = Self { sandbox, metrics, _manager: tasks };
        cluster
            .until("the informers watch", |sandbox| {
                sandbox.open_watches(&PODS) > 0 && sandbox.open_watches(&REPLICA_SETS) > 0
            })
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

    pub(crate) fn create(&self, replica_set: &ReplicaSetBuilder) -> Value {
        create_replica_set(&self.sandbox, replica_set)
    }

    pub(crate) fn replica_set(&self, name: &str) -> Value {
        self.sandbox.get(&REPLICA_SETS, &key(name)).expect("the replica set must be there")
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.replica_set(name)["status"].clone()
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        self.sandbox.list(&PODS, Some(NAMESPACE))
    }

    pub(crate) fn pod_keys(&self) -> Vec<ObjectKey> {
        self.pods().iter().map(|pod| key(pod["metadata"]["name"].as_str().expect("pods have names"))).collect()
    }

    /// Type, reason, text and count of the events of the namespace.
    pub(crate) fn events(&self) -> Vec<(String, String, String)> {
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let events = self.sandbox.list(&EVENTS, Some(NAMESPACE));
        events.iter().map(|event| (text(event, "type"), text(event, "reason"), text(event, "message"))).collect()
    }

    /// What the controller itself asked of the API server, other than events, by method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Request> {
        let mut requests = self.sandbox.requests();
        requests.retain(|request| {
            let agent = request.headers.get("user-agent").and_then(|value| value.to_str().ok()).unwrap_or_default();
            agent.ends_with("/replicaset-controller")
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

pub(crate) fn create_replica_set(sandbox: &Sandbox, replica_set: &ReplicaSetBuilder) -> Value {
    sandbox.create(&REPLICA_SETS, as_sent(replica_set.0.clone())).expect("the replica set must be valid")
}

/// Creates a pod with a spec that the API server admits, and puts it into its phase.
pub(crate) fn create_pod(sandbox: &Sandbox, pod: &PodBuilder) -> Value {
    let pod = pod.clone().with("/spec", "containers", serde_json::json!([{ "name": "main", "image": "image" }])).0;
    let phase = pod["status"]["phase"].as_str().expect("fixtures have a phase").to_owned();
    let created = sandbox.create(&PODS, as_sent(pod)).expect("the pod must be valid");
    let meta = &created["metadata"];
    let key = |field: &str| meta[field].as_str().expect("pods have names and namespaces").to_owned();
    let key = ObjectKey::namespaced(key("namespace"), key("name"));
    sandbox.set_pod_phase(&key, &phase).expect("the pod must be there")
}

/// The object without what the API server gives it.
fn as_sent(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("fixtures have metadata");
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
        metadata.remove(field);
    }
    object
}

fn manager(sandbox: &Sandbox, metrics: Arc<Metrics>) -> Manager {
    let table = Table::new(ROWS.iter().copied()).expect("the rows must make a table");
    let Ok(Outcome::Settings(settings)) = table.load(&Sources::default()) else { panic!("the defaults must be valid") };
    let registry = Registry::of([DESCRIPTOR]).expect("the descriptor must be valid");
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
