//! A manager with any controllers over a sandbox, and one controller that most tests share.

mod sets;
mod warnings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_config::{Loaded, Sources, Table, generic};
use kcm_framework::client::Limits;
use kcm_framework::clock::SimulatedClock;
use kcm_framework::discovery::Discovery;
use kcm_framework::{
    BoxError, ControllerContext, ControllerDescriptor, ControllerState, Extensions, GRACE, Loops, Manager,
    ManagerError, ManagerHandle, Metrics, Registry, Selection, Stop,
};
use kcm_sandbox_apiserver::Sandbox;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use sets::{CONTROLLER, Options, PARTS, SETS, Turn, World, key, part, sandbox, set};
pub(crate) use warnings::Warnings;

/// The result of an `InitFunc`.
pub(crate) type Initialized = Result<Loops, BoxError>;

type Init = Box<dyn Fn(ControllerContext) -> BoxFuture<'static, Initialized> + Send + Sync>;

/// Longer than anything that a test waits for.
const PATIENCE: Duration = Duration::from_hours(24);

/// The closures behind the descriptors of a test: an `InitFunc` is a plain function and captures nothing.
#[derive(Default)]
struct Inits(BTreeMap<&'static str, Init>);

/// A descriptor for [`Setup::controller`].
pub(crate) const fn descriptor(name: &'static str) -> ControllerDescriptor {
    ControllerDescriptor::new_async(name, |context| {
        let inits = context.extension::<Inits>().expect("the setup must have put them there");
        (inits.0[context.controller()])(context.clone())
    })
}

/// A manager to be.
pub(crate) struct Setup {
    sandbox: Sandbox,
    client: kube::Client,
    descriptors: Vec<ControllerDescriptor>,
    inits: Inits,
    selected: Vec<&'static str>,
    arguments: Vec<&'static str>,
    start_interval: Duration,
    min_resync: Duration,
    grace: Duration,
    ends_on_failure: bool,
    discovery: Option<Discovery>,
}

impl Setup {
    pub(crate) fn on(sandbox: &Sandbox) -> Self {
        Self {
            sandbox: sandbox.clone(),
            client: sandbox.client(),
            descriptors: Vec::new(),
            inits: Inits::default(),
            selected: vec!["*"],
            arguments: Vec::new(),
            start_interval: Duration::ZERO,
            min_resync: Duration::from_hours(12),
            grace: GRACE,
            ends_on_failure: false,
            discovery: None,
        }
    }

    pub(crate) fn controller<F>(
        mut self,
        descriptor: ControllerDescriptor,
        init: impl Fn(ControllerContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Initialized> + Send + 'static,
    {
        self.inits.0.insert(descriptor.name, Box::new(move |context| Box::pin(init(context))));
        self.descriptors.push(descriptor);
        self
    }

    /// Goes to the API server through another client.
    pub(crate) fn client(mut self, client: kube::Client) -> Self {
        self.client = client;
        self
    }

    /// Replaces the manager's own discovery.
    pub(crate) fn discovery(mut self, discovery: Discovery) -> Self {
        self.discovery = Some(discovery);
        self
    }

    pub(crate) fn select(mut self, items: &[&'static str]) -> Self {
        self.selected = items.to_vec();
        self
    }

    pub(crate) fn argument(mut self, argument: &'static str) -> Self {
        self.arguments.push(argument);
        self
    }

    pub(crate) const fn start_interval(mut self, interval: Duration) -> Self {
        self.start_interval = interval;
        self
    }

    pub(crate) const fn min_resync(mut self, period: Duration) -> Self {
        self.min_resync = period;
        self
    }

    pub(crate) const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    pub(crate) const fn ends_on_failure(mut self) -> Self {
        self.ends_on_failure = true;
        self
    }

    pub(crate) fn manager(self) -> Manager {
        let rows = self.descriptors.iter().flat_map(|descriptor| descriptor.settings.iter().copied());
        let table = Table::new(generic::rows().chain(rows)).unwrap();
        let Ok(Loaded::Settings(settings)) = table.load(&Sources::default().arguments(self.arguments)) else {
            panic!("the arguments of a test must be valid")
        };
        let registry = Registry::of(self.descriptors).unwrap();
        let selection = Selection::parse(self.selected, &registry, &[]).unwrap();
        let extensions = Extensions::default();
        extensions.insert(self.inits);
        let mut builder = Manager::builder(registry, *settings);
        if let Some(discovery) = self.discovery {
            builder = builder.discovery(discovery);
        }
        builder
            .selection(selection)
            .limits(Limits::UNLIMITED)
            .clock(SimulatedClock::starting_at(self.sandbox.now()))
            .seed(1)
            .start_interval(self.start_interval)
            .min_resync(self.min_resync)
            .grace(self.grace)
            .end_on_controller_failure(self.ends_on_failure)
            .extensions(extensions)
            .build(self.client, "sandbox:443")
    }

    pub(crate) fn start(self) -> Started {
        let manager = self.manager();
        let (metrics, handle) = (Arc::clone(manager.metrics()), manager.handle());
        let (stop, since) = (Stop::default(), Instant::now());
        let mut task = JoinSet::new();
        task.spawn(manager.run(stop.clone()));
        Started { stop, metrics, handle, since, task }
    }
}

/// A manager that runs; dropped, it ends.
pub(crate) struct Started {
    pub(crate) stop: Stop,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) handle: ManagerHandle,
    pub(crate) since: Instant,
    task: JoinSet<Result<(), ManagerError>>,
}

impl Started {
    /// Waits for the end.
    pub(crate) async fn ended(&mut self) -> Result<(), ManagerError> {
        self.task.join_next().await.expect("a manager ends once").expect("a manager must not panic")
    }

    /// The state of that controller.
    pub(crate) fn state(&self, controller: &str) -> ControllerState {
        self.handle.controller(controller).expect("the setup must have the controller").state
    }

    /// Returns `true` if the metrics have this line.
    pub(crate) fn has_metric(&self, line: &str) -> bool {
        self.metrics.encode().lines().any(|written| written == line)
    }
}

/// Lets everything happen that happens without waiting.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Waits until `holds` returns `true`.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            settle().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never came true that {what}");
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
