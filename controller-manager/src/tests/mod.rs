//! The endpoints of a manager with the built-in controllers, which rolls out a deployment.

mod debug;
mod metrics;
mod network_metrics;
mod upstream_metrics;
mod workload_metrics;

use std::sync::Arc;
use std::time::Duration;

use kcm_config::{Loaded, Sources};
use kcm_controllers as _;
use kcm_framework::api::views::Deployment;
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_framework::{Manager, ManagerHandle, Metrics, Registry, Selection, Stop};
use kcm_sandbox_apiserver::Sandbox;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// A manager that runs; dropped, it ends.
struct Running {
    metrics: Arc<Metrics>,
    handle: ManagerHandle,
    sandbox: Sandbox,
    _tasks: JoinSet<()>,
}

fn web() -> ObjectKey {
    ObjectKey::namespaced("default", "web")
}

/// A manager that has created the replica set and the pods of the deployment `web`.
async fn running() -> Running {
    running_of(&["*"]).await
}

/// A manager that runs these controllers.
async fn running_of(controllers: &[&str]) -> Running {
    running_with(controllers, &[]).await
}

/// A manager that runs these controllers with arguments.
async fn running_with(controllers: &[&str], arguments: &[&str]) -> Running {
    let sandbox = Sandbox::default();
    let registry = Registry::linked().expect("the built-in controllers are linked");
    let table = crate::settings::table(&registry, &[]).expect("the rows make a table");
    let sources = Sources::default().arguments(arguments.iter().copied());
    let Ok(Loaded::Settings(settings)) = table.load(&sources) else { panic!("the arguments are valid") };
    let selection = Selection::parse(controllers.iter().copied(), &registry, &[]).expect("they are linked");
    let manager = Manager::builder(registry, *settings)
        .selection(selection)
        .seed(1)
        .build(sandbox.client(), "https://sandbox:443");
    let (metrics, handle) = (Arc::clone(manager.metrics()), manager.handle());
    crate::runtime::process_metrics::register(&metrics, Handle::current(), crate::heartbeat::Heartbeat::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ended = manager.run(Stop::default()).await;
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    });
    sandbox.create(&Deployment::RESOURCE, deployment).expect("it can be created");
    tokio::time::sleep(Duration::from_secs(5)).await;
    Running { metrics, handle, sandbox, _tasks: tasks }
}
