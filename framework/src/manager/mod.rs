//! Starts controllers in order, keeps them running, and stops them in reverse.
//!
//! # Guarantees
//!
//! - *The handle shows the state of each controller*, and how often each loop has failed and why.
//! - *The health check and the debug page of a controller are behind the handle*, while the controller is initialized.
//! - *A panic in a task of the manager is counted, and the task goes on*.
//! - *A manager may wait with its loops until it leads*, and *no write passes its closed fence*.

mod builder;
mod handle;
mod metrics;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use kcm_api::Needs;
use kcm_client::clock::Clock;
use kcm_client::{ApiError, ClientBuilder, Unreachable, wait_for_api_server};
use kcm_config::Effective;
use kcm_informers::{ConnectionMonitor, Factory, FactoryOptions};
use tokio_util::sync::CancellationToken;

pub use builder::ManagerBuilder;
pub use handle::{ManagerHandle, UnusableConnection};
pub use stage::Stage;
use stage::Stages;

use crate::controller::{ControllerDescriptor, Extensions, Registry, SharedContext};
use crate::discovery::{Discovery, Refresher};
use crate::events::Recorders;
use crate::explain::Journal;
use crate::first_failure::{ControllerFailure, FirstFailure};
use crate::metrics::{Metrics, TakeoverMetrics};
use crate::reconcile::NameGenerator;
use crate::supervise::{ControllerState, Controls, Supervisor, Turns, jittered};
use crate::takeover::prove_takeovers;

/// Starts controllers, keeps them running and stops them. Made by [`Manager::builder`].
#[must_use = "a manager does nothing until `run`"]
pub struct Manager {
    registry: Registry,
    handle: ManagerHandle,
    settings: Effective,
    clients: ClientBuilder,
    /// The monitor of each connection, by the name of its task.
    monitors: Vec<(&'static str, Arc<ConnectionMonitor>)>,
    /// The URL of the API server, for errors.
    server: String,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    /// Delays, names and jitter derive from it.
    seed: u64,
    /// The least delay before each controller's initialization; the delay is drawn from [it, 2 × it).
    start_interval: Duration,
    /// The least resync period; the period is drawn once from [it, 2 × it).
    min_resync: Duration,
    /// Time for which each stage may take to stop.
    grace: Duration,
    /// The failure that ends the manager.
    failures: FirstFailure,
    extensions: Extensions,
    journal: Arc<Journal>,
    /// The discovery that replaces the manager's own.
    discovery: Option<Discovery>,
}

/// The two requests to stop. Either request stops the manager.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Drain: let running reconciles finish, then stop.
    pub drain: CancellationToken,
    /// Abort: stop without waiting for running reconciles.
    pub abort: CancellationToken,
}

impl Stop {
    /// Waits for either request. An abort cancels `drain` too, which is the token that tasks wait for.
    async fn requested(&self) {
        tokio::select! {
            biased;
            () = self.drain.cancelled() => {}
            () = self.abort.cancelled() => self.drain.cancel(),
        }
    }
}

/// The reason why a manager could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The API server cannot be reached or used.
    #[error(transparent)]
    ApiServer(#[from] Unreachable),
    /// The API server responds, but its resources cannot be discovered.
    #[error("cannot discover what the API server serves")]
    Discovery(#[source] ApiError),
    /// A controller failed, and failures [end the manager](ManagerBuilder::end_on_controller_failure).
    #[error("the controller {controller} failed in {what}: {reason}")]
    ControllerFailed {
        /// Canonical name of the controller.
        controller: &'static str,
        /// The part of it that failed.
        what: String,
        /// The error, or the message of the panic.
        reason: String,
    },
}

impl ManagerError {
    /// Returns `true` if a controller failed, and not the start of the manager.
    #[must_use]
    pub const fn is_controller_failure(&self) -> bool {
        matches!(self, Self::ControllerFailed { .. })
    }
}

impl From<ControllerFailure> for ManagerError {
    fn from(ControllerFailure { controller, what, reason }: ControllerFailure) -> Self {
        Self::ControllerFailed { controller, what, reason }
    }
}

/// Time for which the start waits for a response of the API server.
///
/// # Upstream
/// `WaitForAPIServer` in `k8s.io/controller-manager/app`.
pub const API_SERVER_PATIENCE: Duration = Duration::from_secs(10);

impl Manager {
    /// The options of a manager of the controllers in `registry`, with their settings.
    pub fn builder(registry: Registry, settings: Effective) -> ManagerBuilder {
        ManagerBuilder::new(registry, settings)
    }

    /// The metrics of this manager and its controllers.
    #[must_use]
    pub const fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The handle of this manager, which reads its state and changes it while it runs.
    #[must_use]
    pub fn handle(&self) -> ManagerHandle {
        self.handle.clone()
    }

    /// The clients of this manager and its controllers.
    #[must_use]
    pub const fn clients(&self) -> &ClientBuilder {
        &self.clients
    }

    /// Checks that the API server responds and can be discovered, as the manager does first when it runs.
    ///
    /// # Errors
    /// As [`run`](Self::run), if the API server does not respond.
    pub async fn probe(&self) -> Result<(), ManagerError> {
        let manager = self.clients.client_for(ClientBuilder::MANAGER);
        wait_for_api_server(&manager, &self.server, API_SERVER_PATIENCE).await?;
        if self.discovery.is_some() {
            return Ok(());
        }
        Refresher::new(manager).refresh().await.map_err(ManagerError::Discovery)
    }

    /// Starts every stage, runs until `stop`, and stops every stage.
    ///
    /// # Errors
    /// [`ManagerError::ApiServer`] if the API server does not respond or refuses access; nothing has been started then.
    /// [`ManagerError::ControllerFailed`] if a controller fails and the manager is set to end then; otherwise failed
    /// controllers are restarted.
    pub async fn run(self, stop: Stop) -> Result<(), ManagerError> {
        let handle = self.handle();
        let mut stages = Stages::new(handle.panics().clone());
        let (metrics, failures, grace) = (Arc::clone(&self.metrics), self.failures.clone(), self.grace);
        let mut ended = tokio::select! {
            biased;
            () = stop.requested() => Ok(()),
            failure = failures.first() => Err(failure.into()),
            started = self.start(&mut stages, &stop.drain) => started,
        };
        if ended.is_ok() {
            tokio::select! {
                biased;
                () = stop.requested() => {}
                failure = failures.first() => ended = Err(failure.into()),
            }
            tracing::info!("Stopping");
        }
        stages.stop(grace, &stop.abort).await;
        handle.ended();
        metrics.log_longest_waits();
        ended
    }

    async fn start(self, stages: &mut Stages, drain: &CancellationToken) -> Result<(), ManagerError> {
        let handle = self.handle.clone();
        let enter = |stages: &mut Stages, stage| {
            stages.enter(stage);
            handle.enter(stage);
        };
        enter(stages, Stage::ApiServer);
        let manager = self.clients.client_for(ClientBuilder::MANAGER);
        wait_for_api_server(&manager, &self.server, API_SERVER_PATIENCE).await?;

        enter(stages, Stage::Context);
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let shared = self.context(stages, drain, &mut rng).await?;

        enter(stages, Stage::Controllers);
        let turns = Turns::new(self.start_interval, rng.u64(..));
        self.start_controllers(stages, &shared, &turns).await;
        // By then every controller has been initialized, or initializes in the background.
        drop(turns.next().await);

        enter(stages, Stage::Informers);
        shared.informers.start();
        let (informers, discovery) = (shared.informers.clone(), shared.discovery.clone());
        stages.spawn(Stage::Informers, "informers", move |cancel| {
            let (informers, discovery) = (informers.clone(), discovery.clone());
            async move {
                cancel.run_until_cancelled(follow_discovery(&informers, &discovery)).await;
                informers.shut_down().await;
            }
        });

        let (informers, takeovers) = (shared.informers.clone(), handle.controls().takeovers());
        let expected = handle.controls().expects_takeover();
        let metrics = shared.metrics.register(TakeoverMetrics::register);
        stages.spawn(Stage::Informers, "takeovers", move |cancel| {
            let (informers, takeovers, metrics) = (informers.clone(), takeovers.clone(), metrics.clone());
            let expected = expected.clone();
            async move {
                cancel.run_until_cancelled(prove_takeovers(&informers, takeovers, expected, &metrics)).await;
            }
        });

        enter(stages, Stage::Lease);
        enter(stages, Stage::Loops);
        shared.informers_started.cancel();
        Ok(())
    }

    /// Starts a supervisor for each controller, in the order of groups and names. Enabled controllers have their turns
    /// one after another.
    async fn start_controllers(&self, stages: &mut Stages, shared: &Arc<SharedContext>, turns: &Turns) {
        let mut order: Vec<_> = self.registry.iter().collect();
        order.sort_by_key(|descriptor| (descriptor.start_group, descriptor.name));
        for descriptor in order {
            let controller = descriptor.name;
            let Some(record) = self.handle.record(controller) else { continue };
            if let Some(gate) = descriptor.required_gates.iter().find(|gate| !shared.settings.enabled(gate)) {
                tracing::info!(controller, gate = gate.name, "Controller is disabled by a feature gate");
                record.enter(ControllerState::Disabled(format!("the feature gate {} is off", gate.name)));
                continue;
            }
            let controls = Arc::clone(self.handle.controls());
            let is_enabled = controls.enables(descriptor);
            let mut supervisor = Supervisor::new(*descriptor, shared, Arc::clone(record), controls, turns);
            if is_enabled {
                supervisor = supervisor.in_turn(turns.next().await);
            }
            let supervisor = Arc::new(supervisor);
            stages.spawn(Stage::Loops, controller, move |cancel| Arc::clone(&supervisor).run(cancel));
        }
    }

    /// Discovers the resources that the API server serves, and starts to do so periodically.
    async fn discover(&self, stages: &mut Stages) -> Result<Refresher, ManagerError> {
        let client = self.clients.named_client_for(ClientBuilder::DISCOVERY, "", ClientBuilder::DISCOVERY_LIMITS);
        let refresher = Refresher::new(client);
        refresher.refresh().await.map_err(ManagerError::Discovery)?;
        let running = refresher.clone();
        stages.spawn(Stage::Context, "discovery", move |cancel| running.clone().run(cancel));
        Ok(refresher)
    }

    async fn context(
        &self,
        stages: &mut Stages,
        drain: &CancellationToken,
        rng: &mut fastrand::Rng,
    ) -> Result<Arc<SharedContext>, ManagerError> {
        let probers = [Some(self.clients.kube_client_for(ClientBuilder::PROBE)), self.clients.separate_probe()];
        for ((task, monitor), prober) in self.monitors.iter().zip(probers.into_iter().flatten()) {
            let monitor = Arc::clone(monitor);
            stages.spawn(Stage::Context, task, move |cancel| {
                let (monitor, prober) = (Arc::clone(&monitor), prober.clone());
                async move {
                    cancel.run_until_cancelled(monitor.run(&prober)).await;
                }
            });
        }
        let (discovery, refresher) = if let Some(discovery) = &self.discovery {
            (discovery.clone(), None)
        } else {
            let refresher = self.discover(stages).await?;
            (refresher.discovery(), Some(refresher))
        };
        let (clock, panics) = (Arc::clone(&self.clock), self.handle.panics().clone());
        let (events, sender) = Recorders::new(clock, panics, Arc::clone(&self.metrics), rng.u64(..));
        let sender = Arc::new(sender);
        stages.spawn(Stage::Context, "events", move |cancel| Arc::clone(&sender).run(cancel));
        let needs = needs(&self.registry, self.handle.controls(), &self.settings);
        let informers = Factory::new(FactoryOptions {
            connection: self.clients.connection().clone(),
            metrics: self.metrics.informers(),
            needs: needs.clone(),
            moments: self.handle.controls().moments().clone(),
            ..FactoryOptions::new(self.clients.informer_client(), rng.u64(..))
        });
        if let Some(refresher) = refresher {
            refresher.believe(&informers);
        }
        self.handle.started(informers.clone(), discovery.clone());
        Ok(Arc::new(SharedContext {
            clients: self.clients.clone(),
            informers,
            needs,
            settings: self.settings.clone(),
            live_settings: self.handle.live_settings().clone(),
            clock: Arc::clone(&self.clock),
            events,
            discovery,
            metrics: Arc::clone(&self.metrics),
            journal: Arc::clone(&self.journal),
            names: NameGenerator::seeded(rng.u64(..)),
            resync: jittered(self.min_resync, rng),
            cancel: drain.child_token(),
            informers_started: CancellationToken::new(),
            extensions: self.extensions.clone(),
            failures: self.failures.clone(),
        }))
    }
}

/// Applies to the informers what discovery finds; never returns.
async fn follow_discovery(informers: &Factory, discovery: &Discovery) {
    let mut changes = discovery.changes();
    while changes.changed().await.is_ok() {
        informers.apply_discovery(|resource| discovery.is_available(resource));
    }
    std::future::pending::<()>().await;
}

/// Parts of views that the controllers enabled at the start need.
fn needs(registry: &Registry, controls: &Controls, settings: &Effective) -> Needs {
    let is_on = |descriptor: &&ControllerDescriptor| {
        controls.enables(descriptor) && descriptor.required_gates.iter().all(|gate| settings.enabled(gate))
    };
    registry.iter().filter(is_on).flat_map(|descriptor| descriptor.needs.iter().copied()).collect()
}
