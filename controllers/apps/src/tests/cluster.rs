//! A manager with chosen controllers on an API server in the process, for tests. Time is paused.

use std::ops::Deref;

use jiff::Timestamp;
use kcm_framework::ControllerDescriptor;
use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{EVENTS, PODS, Request, Sandbox, SandboxOptions};
use kcm_testing::{TestCluster, TestEnvironment};
use serde_json::Value;

/// The namespace of all test objects.
pub(crate) const NAMESPACE: &str = "shop";

/// The time at which every test starts.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T12:00:00Z".parse().expect("must be a time")
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

/// An API server and a manager on it, which stops on drop.
pub(crate) struct Cluster {
    running: TestCluster,
    identity: &'static str,
    component: &'static str,
}

impl Deref for Cluster {
    type Target = TestCluster;
    fn deref(&self) -> &Self::Target {
        &self.running
    }
}

impl Cluster {
    /// Starts controllers on an API server that `prepare` has filled, and waits until the resources are watched.
    ///
    /// The first controller is the one under test.
    pub(crate) async fn start(
        controllers: &[ControllerDescriptor],
        watched: &[Resource],
        prepare: impl FnOnce(&Sandbox) + 'static,
    ) -> Self {
        Self::start_in(environment(controllers).prepare(prepare), controllers, watched).await
    }

    /// As [`start`](Self::start), in an environment of these controllers.
    pub(crate) async fn start_in(
        environment: TestEnvironment,
        controllers: &[ControllerDescriptor],
        watched: &[Resource],
    ) -> Self {
        let cluster = environment.start().await;
        let tested = controllers.first().expect("a controller is tested");
        cluster.watches(watched).await;
        Self {
            running: cluster,
            identity: tested.account().expect("it acts as a service account"),
            component: tested.event_component,
        }
    }

    pub(crate) fn object(&self, resource: &Resource, name: &str) -> Value {
        self.sandbox().get(resource, &key(name)).expect("the object must be there")
    }

    pub(crate) fn pods(&self) -> Vec<Value> {
        self.sandbox().list(&PODS, Some(NAMESPACE))
    }

    pub(crate) fn pod_keys(&self) -> Vec<ObjectKey> {
        self.pods().iter().map(|pod| key(pod["metadata"]["name"].as_str().expect("pods have names"))).collect()
    }

    /// Type, reason and message of the events of the controller under test.
    pub(crate) fn events(&self) -> Vec<(String, String, String)> {
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let mut events = self.sandbox().list(&EVENTS, Some(NAMESPACE));
        events.retain(|event| event["source"]["component"] == self.component);
        events.iter().map(|event| (text(event, "type"), text(event, "reason"), text(event, "message"))).collect()
    }

    /// The requests of the controller under test, other than for events, by method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Request> {
        let mut requests = self.requests_of(self.identity);
        requests.retain(|request| request.method.contains(method));
        requests
    }

    /// The bodies of the requests of a method.
    pub(crate) fn bodies(&self, method: &str) -> Vec<Value> {
        let parse = |request: Request| serde_json::from_str(&request.body).expect("bodies are JSON");
        self.requests(method).into_iter().map(parse).collect()
    }
}

/// The object without the fields that the API server sets.
pub(crate) fn as_sent(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("fixtures have metadata");
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
        metadata.remove(field);
    }
    object
}

/// The environment of a test of these controllers: its namespace, at its time.
pub(crate) fn environment(controllers: &[ControllerDescriptor]) -> TestEnvironment {
    let options = SandboxOptions { start: now(), ..SandboxOptions::default() };
    TestEnvironment::new(controllers.iter().copied()).sandbox_options(options).namespace(NAMESPACE)
}
