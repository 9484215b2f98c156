//! The port as clients find it, on 127.0.0.1.

pub(crate) mod any_certificate;
pub(crate) mod authority;
mod certificates;
mod client;
mod hostile;
mod memory;
mod metrics_and_debug;
mod mutations;
mod port;
mod silent;
mod targets;
mod ui;

use std::sync::Arc;

use kcm_config::{Effective, Loaded, Sources, Table, generic};
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{ControllerDescriptor, Loops, Manager, Registry};
use kcm_sandbox_apiserver::Sandbox;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::health::Check;
use super::{Bound, Serving, ServingOptions, ServingState};
use client::Client;

pub(super) fn settings(arguments: &[&str]) -> Effective {
    let table = Table::new(generic::rows()).expect("the rows make a table");
    match table.load(&Sources::default().arguments(arguments.iter().copied())) {
        Ok(Loaded::Settings(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

/// State of a program with these settings.
pub(super) fn state(settings: &Effective) -> ServingState {
    let controller = ControllerDescriptor::new("test-controller", |_| Ok(Loops::none("as the test wants it")));
    let registry = Registry::of([controller]).expect("it is one controller");
    let manager = Manager::builder(registry, settings.clone()).build(Sandbox::default().client(), "https://127.0.0.1");
    ServingState {
        settings: settings.clone(),
        metrics: Arc::clone(manager.metrics()),
        manager: manager.handle(),
        live: Vec::new(),
        ready: Vec::new(),
        leases: Box::new(|| json!([])),
        profiler: None,
        started: SystemClock.now(),
        set_verbosity: Box::new(|_| {}),
    }
}

/// A port that is served, and a client of it.
pub(super) struct Port {
    pub(super) serving: Serving,
    pub(super) client: Client,
}

impl Port {
    /// A port with these settings, which are without an API server.
    pub(super) async fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, Vec::new()).await
    }

    /// A port with these settings and checks of health.
    pub(super) async fn start_with(arguments: &[&str], live: Vec<Check>) -> Self {
        let (bound, state) = bound(arguments, live);
        let client = Client::of(bound.address());
        let serving = bound.serve(state, 1).await.expect("it can be served");
        Self { serving, client }
    }
}

/// A port that is bound on 127.0.0.1, and the state that it will show.
fn bound(arguments: &[&str], live: Vec<Check>) -> (Bound, ServingState) {
    let arguments = [&["--secure-port=1", "--bind-address=127.0.0.1"], arguments].concat();
    let settings = settings(&arguments);
    let mut options = ServingOptions::of(&settings).expect("they are supported").expect("there is a port");
    // Any free one.
    options.address.set_port(0);
    let bound = Bound::bind(options, Arc::new(SystemClock)).expect("a port is free");
    (bound, ServingState { live, ..state(&settings) })
}

/// A port that is served by the runtime of the test, whose time may be paused.
pub(super) struct InProcess {
    pub(super) client: Client,
    _task: JoinSet<()>,
}

impl InProcess {
    pub(super) async fn start(arguments: &[&str]) -> Self {
        let (bound, state) = bound(arguments, Vec::new());
        let client = Client::of(bound.address());
        let (started, start) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(async move { drop(bound.run(state, 1, CancellationToken::new(), started).await) });
        start.await.expect("it can be served");
        Self { client, _task: task }
    }
}
