//! Metrics by upstream's names, kept in one registry.
//!
//! The help of a metric that upstream has begins with upstream's stability, as `[ALPHA]`.

mod at_scrape;
mod connection;
mod controllers;
mod exposition;
mod families;
mod gates;
mod health;
mod informers;
mod queues;
mod requests;
mod takeovers;
mod version;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use kcm_client::{ClientMetrics, ExecPluginMetrics};
use kcm_config::Effective;
use kcm_informers::{Connection, MetricsOf};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::family;
use prometheus_client::registry::Registry;

use connection::ConnectionMetrics;
use exposition::Family;
pub use exposition::{ExpositionOptions, Format, NotAMetricLabel};
use families::ByName;
pub use families::{
    Counters, DEFAULT_BUCKETS, FloatGauges, Gauges, Histograms, Labeled, MetricError, OfBuckets, Stability,
    exponential_buckets,
};
use health::HealthMetrics;
use informers::InformerMetrics;
pub use prometheus_client::metrics::{counter::Counter, gauge::Gauge, histogram::Histogram};
use queues::QueueMetrics;
use requests::RequestMetrics;
pub(crate) use takeovers::TakeoverMetrics;

/// All metrics of one manager; no globals, so that two managers in one process do not mix theirs.
pub struct Metrics {
    registry: Mutex<Registry>,
    queues: QueueMetrics,
    informers: InformerMetrics,
    requests: RequestMetrics,
    exec_plugins: ExecPluginMetrics,
    connection: ConnectionMetrics,
    reconciles: family::Family<ReconcileLabels, Counter>,
    loop_failures: family::Family<LoopLabels, Counter>,
    task_panics: family::Family<TaskLabels, Counter>,
    events_dropped: family::Family<DropLabels, Counter>,
    health: HealthMetrics,
    options: Mutex<ExpositionOptions>,
    /// The metrics that controllers registered, by type.
    of_controllers: Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
    /// The metrics of controllers, by name.
    by_name: Mutex<ByName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: &'static str,
    name: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoopLabels {
    controller: String,
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DropLabels {
    component: String,
    reason: &'static str,
}

impl Metrics {
    /// An empty registry with the framework's own metrics.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::default();
        let queues = QueueMetrics::default();
        queues.register(&mut registry);
        let informers = InformerMetrics::default();
        informers.register(&mut registry);
        let requests = RequestMetrics::default();
        requests.register(&mut registry);
        let exec_plugins = ExecPluginMetrics::default();
        exec_plugins.register(&mut registry);
        let connection = ConnectionMetrics::default();
        connection.register(&mut registry);
        let reconciles = family::Family::default();
        registry.register(
            "controller_reconciles",
            "Reconciles by controller, loop and result: success, panic, unreachable, or the class of the error",
            reconciles.clone(),
        );
        let loop_failures = family::Family::default();
        registry.register(
            "controller_loop_failures",
            "Loops of controllers that failed or panicked and were started again",
            loop_failures.clone(),
        );
        let task_panics = family::Family::default();
        registry.register(
            "manager_task_panics",
            "Tasks of the manager that panicked and were started again",
            task_panics.clone(),
        );
        let events_dropped = family::Family::default();
        registry.register(
            "manager_events_dropped",
            "Events that were not sent, by component and reason: queue_full, stopped, rate_limited, rejected or given_up",
            events_dropped.clone(),
        );
        version::register(&mut registry);
        let registry = Mutex::new(registry);
        let of_controllers = Mutex::default();
        Arc::new(Self {
            registry,
            queues,
            informers,
            requests,
            exec_plugins,
            connection,
            reconciles,
            loop_failures,
            task_panics,
            events_dropped,
            health: HealthMetrics::default(),
            options: Mutex::default(),
            of_controllers,
            by_name: Mutex::default(),
        })
    }

    /// Registers the metrics of a controller, a type of its own, and returns them.
    ///
    /// They are registered once: another call for the type, for example by a controller that is initialized again,
    /// returns the metrics of the first call.
    pub fn register<M: Clone + Send + Sync + 'static>(&self, register: impl FnOnce(&mut Registry) -> M) -> M {
        let mut of_controllers = self.of_controllers.lock();
        let known = of_controllers.get(&TypeId::of::<M>()).and_then(|known| known.downcast_ref::<M>());
        if let Some(known) = known {
            return known.clone();
        }
        let registered = register(&mut self.registry.lock());
        of_controllers.insert(TypeId::of::<M>(), Box::new(registered.clone()));
        registered
    }

    /// Shows the feature gates of `settings` and the versions that decide them from now on.
    pub(crate) fn show_gates(&self, settings: &Effective) {
        /// Registers them once.
        #[derive(Clone)]
        struct OfGates;
        self.register(|registry| {
            gates::register(settings, registry);
            version::register_versions(settings.gates().versions(), registry);
            OfGates
        });
    }

    /// Adds metrics that are computed at each scrape.
    pub(crate) fn register_collector(&self, collector: impl Collector) {
        self.registry.lock().register_collector(Box::new(collector));
    }

    /// Shows which controllers run from now on: `states` returns the name of each that is or was started, and whether it
    /// runs.
    pub(crate) fn show_controllers(&self, states: impl Fn() -> Vec<(&'static str, bool)> + Send + Sync + 'static) {
        /// Registers them once.
        #[derive(Clone)]
        struct OfControllers;
        self.register(|registry| {
            controllers::register(states, registry);
            OfControllers
        });
    }

    /// Sets the metrics that a scrape shows.
    pub fn set_exposition(&self, options: ExpositionOptions) {
        *self.options.lock() = options;
    }

    /// Returns the body of `/metrics`: all metrics that the [options](ExpositionOptions) show, sorted by name.
    #[must_use]
    pub fn expose(&self, format: Format) -> Vec<u8> {
        let mut families = Family::read(&self.encode());
        self.options.lock().apply(&mut families);
        exposition::write(&families, format)
    }

    /// Returns the body of `/metrics/slis`: the results of the health checks.
    #[must_use]
    pub fn expose_slis(&self, format: Format) -> Vec<u8> {
        exposition::write(&Family::read(&self.health.encode()), format)
    }

    /// Counts the result of a health check, such as `leaderElection`, for a path, such as `healthz`.
    pub fn health_checked(&self, name: &str, path: &'static str, is_healthy: bool) {
        self.health.checked(name, path, is_healthy);
    }

    /// All metrics as `prometheus_client` writes them: `OpenMetrics`, unsorted.
    #[must_use]
    pub fn encode(&self) -> String {
        self.queues.refresh();
        self.connection.refresh();
        self.exec_plugins.refresh();
        let mut out = String::new();
        if text::encode(&mut out, &self.registry.lock()).is_err() {
            // Writing to a string fails only if a metric of a plugin fails.
            out.clear();
            let _written = writeln!(out, "# a metric could not be written");
        }
        out
    }

    /// Logs the longest wait of each queue at shutdown, because a scrape may have missed it.
    pub(crate) fn log_longest_waits(&self) {
        for (queue, waited) in self.queues.longest_waits() {
            tracing::info!(queue, longest_wait_seconds = waited.as_secs_f64(), "Longest wait of a key");
        }
    }

    /// The metrics of one queue, for [`kcm_workqueue::QueueOptions`].
    pub(crate) const fn queues(&self) -> &QueueMetrics {
        &self.queues
    }

    /// Shows the state of `connection` from now on.
    pub(crate) fn show(&self, connection: &Connection) {
        self.connection.show(connection);
    }

    /// The metrics of the informers of one factory.
    pub(crate) fn informers(&self) -> Arc<MetricsOf> {
        let informers = self.informers.clone();
        Arc::new(move |resource| Arc::new(informers.of(resource)))
    }

    /// The metrics of the requests to one host, for [`ClientBuilder`](crate::client::ClientBuilder).
    #[must_use]
    pub fn requests_to(&self, host: &str) -> Arc<dyn ClientMetrics> {
        Arc::new(self.requests.to(host.to_owned()))
    }

    /// The metrics of exec plugins, for [`connect_with_metrics`](crate::client::connect_with_metrics).
    #[must_use]
    pub const fn exec_plugins(&self) -> &ExecPluginMetrics {
        &self.exec_plugins
    }

    pub(crate) fn reconciled(&self, controller: &'static str, name: &'static str, result: &'static str) {
        self.reconciles.get_or_create(&ReconcileLabels { controller, name, result }).inc();
    }

    /// Counts a panic of a task that belongs to no controller and is started again.
    pub fn task_panicked(&self, task: &'static str) {
        self.task_panics.get_or_create(&TaskLabels { task }).inc();
    }

    pub(crate) fn events_dropped(&self, component: &str, reason: &'static str, events: usize) {
        let labels = DropLabels { component: component.to_owned(), reason };
        self.events_dropped.get_or_create(&labels).inc_by(u64::try_from(events).unwrap_or(u64::MAX));
    }

    pub(crate) fn loop_failed(&self, controller: &str, name: &'static str) {
        self.loop_failures.get_or_create(&LoopLabels { controller: controller.to_owned(), name }).inc();
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Greetings(Counter);

    #[test]
    fn metrics_that_are_registered_again_are_those_of_the_first_time() {
        let metrics = Metrics::new();
        for _ in 0..2 {
            let greetings = metrics.register(|registry| {
                let counter = Counter::default();
                registry.register("greetings", "Greetings sent", counter.clone());
                Greetings(counter)
            });
            greetings.0.inc();
        }
        let text = metrics.encode();
        assert_eq!(
            text.lines().filter(|line| line.starts_with("greetings")).collect::<Vec<_>>(),
            ["greetings_total 2"]
        );
    }
}
