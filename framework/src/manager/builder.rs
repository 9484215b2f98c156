//! The options of a manager.

use std::sync::Arc;
use std::time::Duration;

use crate::user_agent::user_agent;
use http::Uri;
use kcm_client::clock::{Clock, SystemClock};
use kcm_client::{ClientBuilder, ClientProvider, Limits, UserAgent};
use kcm_config::Effective;
use kcm_informers::Connection;

use super::metrics::ManagerMetrics;
use super::{Manager, ManagerHandle};
use crate::controller::{ControllerDescriptor, Extensions, Registry, Selection};
use crate::discovery::Discovery;
use crate::explain::{DEFAULT_MEMORY, Journal};
use crate::first_failure::FirstFailure;
use crate::live_settings::LiveSettings;
use crate::metrics::{ExpositionOptions, Metrics};
use crate::supervise::{ControllerMetrics, Controls, GRACE};

/// Configures a [`Manager`]. Made by [`Manager::builder`]; [`build`](Self::build) takes the connection.
///
/// Every option has a default, so a caller names what differs: a host its limits and clock, a test its seed.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct ManagerBuilder {
    registry: Registry,
    settings: Effective,
    selection: Selection,
    limits: Limits,
    user_agent: UserAgent,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    seed: Option<u64>,
    start_interval: Duration,
    min_resync: Duration,
    grace: Duration,
    ends_on_failure: bool,
    extensions: Extensions,
    explain_memory: usize,
    exposition: ExpositionOptions,
    discovery: Option<Discovery>,
}

/// # Upstream
/// The default of `--min-resync-period`.
const MIN_RESYNC: Duration = Duration::from_hours(12);

impl ManagerBuilder {
    pub(super) fn new(registry: Registry, settings: Effective) -> Self {
        Self {
            registry,
            settings,
            selection: Selection::default(),
            limits: Limits::default(),
            user_agent: user_agent(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::new(),
            seed: None,
            start_interval: Duration::ZERO,
            min_resync: MIN_RESYNC,
            grace: GRACE,
            ends_on_failure: false,
            extensions: Extensions::default(),
            explain_memory: DEFAULT_MEMORY,
            exposition: ExpositionOptions::default(),
            discovery: None,
        }
    }

    /// Runs the controllers that `selection` enables. The default is `*`: all controllers that are on by default.
    pub fn selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Limits the requests of each identity. The default is upstream's, 20 a second with a burst of 30.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sends this User-Agent, to which each identity appends its name.
    pub fn user_agent(self, user_agent: UserAgent) -> Self {
        Self { user_agent, ..self }
    }

    /// Takes wall time from `clock`. The default is the clock of the machine.
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Records metrics in `metrics`. The default is a registry of the manager's own.
    pub fn metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Derives delays, names and jitter from `seed`. The default is drawn from the clock and the process id, because
    /// replicas that start together must not draw the same delays.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Waits before each controller's initialization, for a duration drawn from [`interval`, 2 × `interval`). The
    /// default is not to wait.
    pub fn start_interval(self, interval: Duration) -> Self {
        Self { start_interval: interval, ..self }
    }

    /// Resyncs caches at a period drawn once from [`period`, 2 × `period`). The default is upstream's, 12 hours.
    pub fn min_resync(self, period: Duration) -> Self {
        Self { min_resync: period, ..self }
    }

    /// Gives running reconciles `grace` to finish when a controller or the manager stops. The default is upstream's,
    /// [`GRACE`].
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Ends the manager when a controller fails: when its initialization or a loop of it fails or panics, or a reconcile
    /// panics. By default the failed part is tried again with back-off.
    ///
    /// # Upstream
    /// A panic or a failed start of a controller ends the process.
    pub fn end_on_controller_failure(self, ends: bool) -> Self {
        Self { ends_on_failure: ends, ..self }
    }

    /// Passes these values to the controllers.
    pub fn extensions(self, extensions: Extensions) -> Self {
        Self { extensions, ..self }
    }

    /// Adds one value to the extensions; the last of a type counts.
    pub fn extension<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Selects the metrics of a scrape by `options`. The default shows all metrics that are not hidden.
    pub fn exposition(self, options: ExpositionOptions) -> Self {
        Self { exposition: options, ..self }
    }

    /// Keeps the last decisions about keys within so many bytes, to [explain](crate::explain) them; 0 keeps none. The
    /// default is [`DEFAULT_MEMORY`].
    pub fn explain_memory(self, bytes: usize) -> Self {
        Self { explain_memory: bytes, ..self }
    }

    /// Takes the resources that the API server serves from `discovery`, and does not discover them. The default is to
    /// discover them every [30 seconds](crate::discovery::REFRESH_EVERY).
    ///
    /// For simulations, in which discovery is most of a start: see [`Discovery::fixed`].
    pub fn discovery(self, discovery: Discovery) -> Self {
        Self { discovery: Some(discovery), ..self }
    }

    /// The settings of the manager.
    #[must_use]
    pub const fn settings(&self) -> &Effective {
        &self.settings
    }

    /// All controllers, enabled or not.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The controllers that the selection enables, sorted by name. A feature gate may still keep one from starting.
    pub fn enabled(&self) -> impl Iterator<Item = &ControllerDescriptor> {
        self.registry.iter().filter(|controller| self.selection.enables(controller))
    }

    /// A manager that is ready to run against the API server that the clients of `provider` reach: a kube client, or
    /// a provider with credentials for each identity.
    ///
    /// `server` is the URL of that API server: it appears in errors, and its host and port as the label `host` of
    /// request metrics.
    pub fn build(self, provider: impl ClientProvider, server: impl Into<String>) -> Manager {
        let server = server.into();
        let requests = self.metrics.requests_to(&host_of(&server));
        let draw = || self.clock.now().as_microsecond().cast_unsigned() ^ u64::from(std::process::id());
        let seed = self.seed.unwrap_or_else(draw);
        let (connection, monitor) = Connection::new(seed);
        self.metrics.show(&connection);
        let mut monitors = vec![("connection", Arc::new(monitor))];
        let separate = provider.separate_probe().map(|_| connection.dependent(seed.rotate_left(32)));
        let separate = separate.map(|(separate, monitor)| {
            monitors.push(("connection of service accounts", Arc::new(monitor)));
            separate
        });
        let (agent, limits) = (self.user_agent, self.limits);
        let clients = ClientBuilder::over_connections(connection, separate.clone(), provider, agent, limits, requests);
        let names = self.registry.iter().map(|descriptor| descriptor.name).collect();
        let controls = Controls::new(names, self.selection, self.grace);
        let live_settings = LiveSettings::new(self.settings.clone());
        let handle = ManagerHandle::new(&self.registry, controls, live_settings, &clients, separate, &self.metrics);
        self.metrics.register_collector(ManagerMetrics::of(&handle));
        self.metrics.register_collector(ControllerMetrics::of(handle.records()));
        self.metrics.show_gates(&self.settings);
        self.metrics.set_exposition(self.exposition);
        Manager {
            clients,
            handle,
            monitors,
            server,
            seed,
            registry: self.registry,
            settings: self.settings,
            clock: self.clock,
            metrics: self.metrics,
            start_interval: self.start_interval,
            min_resync: self.min_resync,
            grace: self.grace,
            failures: FirstFailure::new(self.ends_on_failure),
            extensions: self.extensions,
            journal: Journal::new(self.explain_memory),
            discovery: self.discovery,
        }
    }
}

/// Host and port of a URL; what is not a URL stands for itself.
fn host_of(server: &str) -> String {
    let url = server.parse::<Uri>().ok();
    url.as_ref().and_then(Uri::authority).map_or_else(|| server.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_metrics_name_the_host_and_port_of_the_server() {
        for (server, host) in [
            ("https://10.0.0.1:6443/", "10.0.0.1:6443"),
            ("https://[::1]:6443/k8s", "[::1]:6443"),
            ("sandbox:443", "sandbox:443"),
            ("the sandbox", "the sandbox"),
        ] {
            assert_eq!(host_of(server), host);
        }
    }
}
