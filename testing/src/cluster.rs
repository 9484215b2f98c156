//! [`TestCluster`]: an in-process API server with a manager.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use jiff::SignedDuration;
use kcm_framework::client::{ClientBuilder, Limits};
use kcm_framework::{Format, Manager, ManagerError, ManagerHandle, Metrics, Stop};
use kcm_sandbox_apiserver::{EVENTS, Request, Resource, Sandbox};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::clock::SettableClock;
use crate::environment::TestEnvironment;
use crate::error_log::ErrorLog;
use crate::manager_client::{self, Writes};
use crate::prepared::PreparedManager;

/// An API server and a manager on it. Dropping it stops both, and fails the test if the manager logged errors.
pub struct TestCluster {
    sandbox: Sandbox,
    writes: Arc<Writes>,
    running: Arc<RunningManager>,
    clock: SettableClock,
    started: Instant,
    stop: Stop,
    manager: JoinSet<Result<(), ManagerError>>,
    errors: ErrorLog,
}

/// The current manager; a killed one is replaced during the test.
struct RunningManager {
    kill: Notify,
    current: Mutex<Current>,
}

struct Current {
    metrics: Arc<Metrics>,
    handle: ManagerHandle,
    clients: ClientBuilder,
    /// Number of managers that have been started.
    number: u64,
}

/// Makes managers, one after the other, on one API server.
struct Starter {
    sandbox: Sandbox,
    prepared: PreparedManager,
    clock: SettableClock,
    seed: u64,
    writes: Arc<Writes>,
}

impl Starter {
    /// The manager of that number. Like a new process, it has its own seed, and counters at zero.
    fn manager(&self, number: u64) -> (Manager, Current) {
        let client = manager_client::connect(&self.sandbox, Arc::clone(&self.writes));
        let manager = self.prepared.manager(self.clock.clone(), self.seed + number).build(client, "sandbox:443");
        let metrics = Arc::clone(manager.metrics());
        let (handle, clients) = (manager.handle(), manager.clients().clone());
        (manager, Current { metrics, handle, clients, number })
    }
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
        TestCluster::start(self.sandbox(), &self)
    }
}

impl TestCluster {
    fn start(sandbox: Sandbox, environment: &TestEnvironment) -> Self {
        let errors = ErrorLog::capture(environment.allowed_errors.clone());
        let prepared = environment.prepare_manager();
        let clock = SettableClock::starting_at(sandbox.now());
        let (writes, stop) = (Arc::<Writes>::default(), Stop::default());
        let starter = Starter {
            sandbox: sandbox.clone(),
            prepared,
            clock: clock.clone(),
            seed: environment.options.seed,
            writes: Arc::clone(&writes),
        };
        let (first, current) = starter.manager(1);
        let running = Arc::new(RunningManager { kill: Notify::new(), current: Mutex::new(current) });
        let mut manager = JoinSet::new();
        manager.spawn(run(starter, first, Arc::clone(&running), stop.clone()));
        Self { sandbox, writes, running, clock, started: Instant::now(), stop, manager, errors }
    }

    /// Returns the API server: objects, requests and faults.
    #[must_use]
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the metrics of the current manager in the text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        let metrics = Arc::clone(&self.running.current.lock().metrics);
        metrics.encode()
    }

    /// Returns the response of the current manager to a scrape of `/metrics`.
    #[must_use]
    pub fn scrape(&self, format: Format) -> Vec<u8> {
        let metrics = Arc::clone(&self.running.current.lock().metrics);
        metrics.expose(format)
    }

    /// Returns the handle of the current manager: the state of its controllers, and what can be changed while it runs.
    #[must_use]
    pub fn handle(&self) -> ManagerHandle {
        self.running.current.lock().handle.clone()
    }

    /// Limits the requests of the current manager from now on, as a change of `--kube-api-qps` and `--kube-api-burst` does.
    /// There is no limit before.
    pub fn set_limits(&self, limits: Limits) {
        self.running.current.lock().clients.set_limits(limits);
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
        let end = Instant::now() + duration;
        loop {
            assert!(holds(&self.sandbox), "it did not hold that {what}");
            let now = Instant::now();
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

    /// Sets the wall clock of the managers forward or, by a negative duration, back. Delays and the API server keep their
    /// time.
    pub fn set_clock(&self, by: SignedDuration) {
        self.clock.shift(by);
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

    /// The requests of [`requests_of`](Self::requests_of) that write.
    #[must_use]
    pub fn writes_of(&self, identity: &str) -> Vec<Request> {
        let mut requests = self.requests_of(identity);
        requests.retain(|request| request.method != Method::GET.as_str());
        requests
    }

    /// The bodies of the requests of [`requests_of`](Self::requests_of) with this HTTP method, null where a body is not
    /// JSON.
    #[must_use]
    pub fn bodies_of(&self, identity: &str, method: &str) -> Vec<Value> {
        let mut requests = self.requests_of(identity);
        requests.retain(|request| request.method == method);
        requests.iter().map(|request| serde_json::from_str(&request.body).unwrap_or_default()).collect()
    }

    /// The stored events of one component, as `TYPE REASON MESSAGE` (the form of client-go's `FakeRecorder`), sorted.
    #[must_use]
    pub fn events_of(&self, component: &str) -> Vec<String> {
        let mut events = self.sandbox.list(&EVENTS, None);
        events.retain(|event| event["source"]["component"] == component);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let line = |event: &Value| ["type", "reason", "message"].map(|field| text(event, field)).join(" ");
        let mut lines: Vec<String> = events.iter().map(line).collect();
        lines.sort();
        lines
    }

    /// Time since the start of the cluster.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Kills the manager as SIGKILL would, between two polls of its tasks, and starts another on the same API server.
    pub fn kill(&self) {
        self.running.kill.notify_one();
    }

    /// Returns the number of started managers: one, plus one per kill.
    #[must_use]
    pub fn managers_started(&self) -> u64 {
        self.running.current.lock().number
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
async fn run(starter: Starter, first: Manager, running: Arc<RunningManager>, stop: Stop) -> Result<(), ManagerError> {
    let mut manager = first;
    loop {
        tokio::select! {
            biased;
            () = running.kill.notified() => {}
            () = starter.writes.killed() => {}
            ended = manager.run(stop.clone()) => return ended,
        }
        let number = running.current.lock().number + 1;
        let current;
        (manager, current) = starter.manager(number);
        *running.current.lock() = current;
    }
}
