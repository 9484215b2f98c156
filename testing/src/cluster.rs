//! [`TestCluster`]: an in-process API server with a manager.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::client::Limits;
use kcm_framework::clock::SimulatedClock;
use kcm_framework::{Manager, ManagerBuilder, ManagerError, Metrics, Stop};
use kcm_sandbox_apiserver::{Request, Resource, Sandbox};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::TestEnvironment;
use crate::error_log::ErrorLog;
use crate::manager_client::{self, Writes};

/// An API server and a manager on it. Dropping it stops both, and fails the test if the manager logged errors.
pub struct TestCluster {
    sandbox: Sandbox,
    writes: Arc<Writes>,
    running: Arc<Running>,
    stop: Stop,
    manager: JoinSet<Result<(), ManagerError>>,
    errors: ErrorLog,
}

/// The current manager; a killed one is replaced during the test.
#[derive(Default)]
struct Running {
    kill: Notify,
    metrics: Mutex<Option<Arc<Metrics>>>,
    started: Mutex<u64>,
}

/// Longer than the maximum back-off of a controller.
const PATIENCE: Duration = Duration::from_mins(20);

/// Polling interval of conditions.
const TICK: Duration = Duration::from_millis(5);

impl TestEnvironment {
    /// Starts the API server, prepares it, and starts the manager on it.
    ///
    /// # Panics
    /// If descriptors, settings or preparations are refused, and outside of a current-thread tokio runtime.
    #[expect(clippy::unused_async, reason = "it must be called within a runtime, and may wait for one in future")]
    pub async fn start(mut self) -> TestCluster {
        TestCluster::start(self.sandbox(), self)
    }
}

impl TestCluster {
    fn start(sandbox: Sandbox, environment: TestEnvironment) -> Self {
        let errors = ErrorLog::capture(environment.allowed_errors.clone());
        let registry = environment.registry();
        let selection = environment.selection(&registry);
        let builder = Manager::builder(registry, environment.settings())
            .selection(selection)
            .limits(Limits::UNLIMITED)
            .clock(SimulatedClock::starting_at(sandbox.now()))
            .extensions(environment.extensions);
        let (writes, running, stop) = (Arc::<Writes>::default(), Arc::<Running>::default(), Stop::default());
        let mut manager = JoinSet::new();
        manager.spawn(run(
            sandbox.clone(),
            builder,
            environment.options.seed,
            Arc::clone(&writes),
            Arc::clone(&running),
            stop.clone(),
        ));
        Self { sandbox, writes, running, stop, manager, errors }
    }

    /// Returns the API server: objects, requests and faults.
    #[must_use]
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the metrics of the running manager in the text format; empty before it starts.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.running.metrics.lock().as_ref().map(|metrics| metrics.encode()).unwrap_or_default()
    }

    /// Waits until `holds` returns true, as Gomega's `Eventually`.
    ///
    /// # Panics
    /// If it does not hold within 20 minutes of the test's time; the message lists the requests of the manager.
    pub async fn eventually(&self, what: &str, mut holds: impl FnMut(&Sandbox) -> bool) {
        let waiting = async {
            while !holds(&self.sandbox) {
                sleep(TICK).await;
            }
        };
        if timeout(PATIENCE, waiting).await.is_err() {
            let requests = self.sandbox.requests();
            let lines: Vec<String> = requests
                .iter()
                .map(|request| {
                    let status = request.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
                    format!("{:?} {} {} {status}", request.at, request.method, request.path)
                })
                .collect();
            panic!("it never held that {what}; requests:\n{}", lines.join("\n"));
        }
    }

    /// Asserts that a condition holds for a duration, as Gomega's `Consistently`.
    ///
    /// # Panics
    /// As soon as it does not hold.
    pub async fn consistently(&self, what: &str, duration: Duration, mut holds: impl FnMut(&Sandbox) -> bool) {
        let end = tokio::time::Instant::now() + duration;
        loop {
            assert!(holds(&self.sandbox), "it did not hold that {what}");
            let now = tokio::time::Instant::now();
            if now >= end {
                return;
            }
            sleep(TICK.max((end - now) / 100)).await;
        }
    }

    /// Waits until the manager watches each of these resources, so that what the test writes next is an event and not
    /// part of a list.
    pub async fn watches(&self, resources: &[Resource]) {
        let what =
            format!("the manager watches {}", resources.iter().map(|one| &*one.plural).collect::<Vec<_>>().join(", "));
        self.eventually(&what, |sandbox| resources.iter().all(|resource| sandbox.open_watches(resource) > 0)).await;
    }

    /// Advances the time. With paused time this takes no real time, and all timers fire in order.
    pub async fn advance(&self, duration: Duration) {
        sleep(duration).await;
    }

    /// Advances the time by half a second, so that pending work without a long delay completes.
    pub async fn settle(&self) {
        self.advance(Duration::from_millis(500)).await;
    }

    /// The requests of one identity (the name of a controller, or of a shared client), in order, without events.
    #[must_use]
    pub fn requests_of(&self, identity: &str) -> Vec<Request> {
        let mut requests = self.sandbox.requests();
        requests.retain(|request| {
            let agent = request.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
            let is_event = request.path.ends_with("/events") || request.path.contains("/events/");
            agent.and_then(|agent| agent.rsplit('/').next()) == Some(identity) && !is_event
        });
        requests
    }

    /// Kills the manager as SIGKILL would, between two polls of its tasks, and starts another on the same API server.
    pub fn kill(&self) {
        self.running.kill.notify_one();
    }

    /// Returns the number of started managers: one, plus one per kill.
    #[must_use]
    pub fn managers_started(&self) -> u64 {
        *self.running.started.lock()
    }

    /// Stops the manager, and waits until it has drained.
    ///
    /// # Errors
    /// The error of [`Manager::run`].
    ///
    /// # Panics
    /// If the manager panicked.
    pub async fn stop(mut self) -> Result<(), ManagerError> {
        self.stop.drain.cancel();
        self.ended().await
    }

    /// Waits for the manager to end by itself.
    ///
    /// # Errors
    /// The error of [`Manager::run`].
    ///
    /// # Panics
    /// If the manager panicked, or has ended before.
    pub async fn ended(&mut self) -> Result<(), ManagerError> {
        let ended = self.manager.join_next().await.expect("a manager ends once");
        ended.unwrap_or_else(|error| panic!("the manager panicked: {error}"))
    }

    /// Takes the logged errors that are not allowed, one line each; they no longer fail the test.
    #[must_use]
    pub fn take_errors(&self) -> Vec<String> {
        self.errors.take()
    }

    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }
}

/// Runs managers, one after the other, until one ends without being killed.
async fn run(
    sandbox: Sandbox,
    builder: ManagerBuilder,
    seed: u64,
    writes: Arc<Writes>,
    running: Arc<Running>,
    stop: Stop,
) -> Result<(), ManagerError> {
    loop {
        let number = {
            let mut started = running.started.lock();
            *started += 1;
            *started
        };
        // Like a new process: its own seed, and counters at zero.
        let metrics = Metrics::new();
        *running.metrics.lock() = Some(Arc::clone(&metrics));
        let client = manager_client::connect(&sandbox, Arc::clone(&writes));
        let manager = builder.clone().metrics(metrics).seed(seed + number).build(client, "sandbox:443");
        tokio::select! {
            biased;
            () = running.kill.notified() => {}
            () = writes.killed() => {}
            ended = manager.run(stop.clone()) => return ended,
        }
    }
}
