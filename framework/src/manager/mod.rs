//! Starts controllers in order, keeps them running, and stops them in reverse.

mod builder;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use kcm_api::Needs;
use kcm_config::Effective;
use kcm_informers::{ConnectionMonitor, Factory, FactoryOptions};
use tokio_util::sync::CancellationToken;

pub use builder::ManagerBuilder;
pub use stage::Stage;
use stage::Stages;

use crate::client::{ApiError, ClientBuilder, Unreachable, wait_for_api_server};
use crate::clock::Clock;
use crate::controller::{ControllerContext, ControllerDescriptor, Extensions, Registry, Selection, SharedContext};
use crate::discovery::{Discovery, Refresher};
use crate::events::Recorders;
use crate::metrics::Metrics;
use crate::reconcile::NameGenerator;
use crate::supervise::Supervised;

/// Starts controllers, keeps them running and stops them. Made by [`Manager::builder`].
#[must_use = "a manager does nothing until `run`"]
pub struct Manager {
    registry: Registry,
    selection: Selection,
    settings: Effective,
    clients: ClientBuilder,
    monitor: Arc<ConnectionMonitor>,
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
    extensions: Extensions,
}

/// The two requests to stop; either will do.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Drain: let running reconciles finish, then stop.
    pub drain: CancellationToken,
    /// Stop at once.
    pub abort: CancellationToken,
}

impl Stop {
    /// Waits for either request. An abort cancels `drain` too, which is the token that tasks wait for.
    async fn requested(&self) {
        tokio::select! {
            () = self.drain.cancelled() => {}
            () = self.abort.cancelled() => self.drain.cancel(),
        }
    }
}

/// Why a manager could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The API server cannot be reached or used.
    #[error(transparent)]
    ApiServer(#[from] Unreachable),
    /// The API server answers, but does not say what it serves.
    #[error("the API server does not say what it serves")]
    Discovery(#[source] ApiError),
}

/// How long each stage may take to end.
///
/// # Upstream
/// The default of `--controller-shutdown-timeout`.
pub const GRACE: Duration = Duration::from_secs(10);

/// How long the API server has to answer at the start.
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

    /// Starts every stage, runs until `stop`, and stops every stage.
    ///
    /// # Errors
    /// [`ManagerError::ApiServer`] where the API server does not answer or does not accept us; nothing has been
    /// started then. Controllers that fail are tried again and do not end the manager.
    pub async fn run(self, stop: Stop) -> Result<(), ManagerError> {
        let mut stages = Stages::default();
        let metrics = Arc::clone(&self.metrics);
        let started = tokio::select! {
            biased;
            () = stop.requested() => Ok(()),
            started = self.start(&mut stages, &stop.drain) => started,
        };
        if started.is_ok() {
            stop.requested().await;
            tracing::info!("Stopping");
        }
        stages.stop(GRACE, &stop.abort).await;
        metrics.log_longest_waits();
        started
    }

    async fn start(self, stages: &mut Stages, drain: &CancellationToken) -> Result<(), ManagerError> {
        stages.enter(Stage::ApiServer);
        let manager = self.clients.client_for(ClientBuilder::MANAGER);
        wait_for_api_server(&manager, &self.server, API_SERVER_PATIENCE).await?;

        stages.enter(Stage::Context);
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let shared = self.context(stages, drain, &mut rng).await?;

        stages.enter(Stage::Controllers);
        let initialized = initialize(&self.registry, &self.selection, self.start_interval, &shared, &mut rng).await;

        stages.enter(Stage::Informers);
        shared.informers.start();
        let (informers, discovery) = (shared.informers.clone(), shared.discovery.clone());
        stages.spawn(|cancel| async move {
            cancel.run_until_cancelled(follow_discovery(&informers, &discovery)).await;
            informers.shut_down().await;
        });
        shared.informers_started.cancel();

        stages.enter(Stage::Loops);
        for (descriptor, supervised) in initialized {
            stages.spawn(|cancel| supervised.run(descriptor, cancel));
        }
        Ok(())
    }

    async fn context(
        &self,
        stages: &mut Stages,
        drain: &CancellationToken,
        rng: &mut fastrand::Rng,
    ) -> Result<Arc<SharedContext>, ManagerError> {
        let (monitor, prober) = (Arc::clone(&self.monitor), self.clients.kube_client_for(ClientBuilder::PROBE));
        stages.spawn(|cancel| async move {
            cancel.run_until_cancelled(monitor.run(&prober)).await;
        });
        let refresher = Refresher::new(self.clients.client_for(ClientBuilder::MANAGER));
        refresher.refresh().await.map_err(ManagerError::Discovery)?;
        let discovery = refresher.discovery();
        stages.spawn(|cancel| refresher.run(cancel));
        let (events, sender) = Recorders::new(self.clients.clone(), Arc::clone(&self.clock), rng.u64(..));
        stages.spawn(|cancel| sender.run(cancel));
        let informers = Factory::new(FactoryOptions {
            connection: self.clients.connection().clone(),
            metrics: self.metrics.informers(),
            needs: needs(&self.registry, &self.selection, &self.settings),
            ..FactoryOptions::new(self.clients.kube_client_for(ClientBuilder::SHARED_INFORMERS), rng.u64(..))
        });
        Ok(Arc::new(SharedContext {
            clients: self.clients.clone(),
            informers,
            settings: self.settings.clone(),
            clock: Arc::clone(&self.clock),
            events,
            discovery,
            metrics: Arc::clone(&self.metrics),
            names: NameGenerator::seeded(rng.u64(..)),
            resync: jittered(self.min_resync, rng),
            cancel: drain.child_token(),
            informers_started: CancellationToken::new(),
            extensions: self.extensions.clone(),
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

/// What the controllers that will be initialized need of views.
fn needs(registry: &Registry, selection: &Selection, settings: &Effective) -> Needs {
    let is_on = |descriptor: &&ControllerDescriptor| {
        selection.enables(descriptor) && descriptor.gates().iter().all(|gate| settings.enabled(gate))
    };
    registry.iter().filter(is_on).flat_map(|descriptor| descriptor.needed().iter().copied()).collect()
}

/// Initializes the enabled controllers one after another, each after a jittered delay, the first group first.
async fn initialize(
    registry: &Registry,
    selection: &Selection,
    interval: Duration,
    shared: &Arc<SharedContext>,
    rng: &mut fastrand::Rng,
) -> Vec<(ControllerDescriptor, Supervised)> {
    let mut order: Vec<&ControllerDescriptor> = registry.iter().collect();
    order.sort_by_key(|descriptor| (descriptor.group(), descriptor.name()));
    let mut initialized = Vec::new();
    for descriptor in order {
        let controller = descriptor.name();
        if !selection.enables(descriptor) {
            tracing::warn!(controller, "Controller is disabled");
            continue;
        }
        if let Some(gate) = descriptor.gates().iter().find(|gate| !shared.settings.enabled(gate)) {
            tracing::info!(controller, gate = gate.name, "Controller is disabled by a feature gate");
            continue;
        }
        tokio::time::sleep(jittered(interval, rng)).await;
        tracing::info!(controller, "Starting controller");
        let context = ControllerContext::new(descriptor, Arc::clone(shared));
        if let Some(supervised) = Supervised::initialize(descriptor, context).await {
            initialized.push((*descriptor, supervised));
        }
    }
    initialized
}

/// A duration drawn in [`least`, 2 × `least`).
///
/// # Upstream
/// `wait.Jitter` with a factor of 1.
fn jittered(least: Duration, rng: &mut fastrand::Rng) -> Duration {
    least.mul_f64(1.0 + rng.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jittered_delay_is_at_least_the_interval_and_less_than_twice_it() {
        let mut rng = fastrand::Rng::with_seed(7);
        let least = Duration::from_secs(10);
        let drawn: Vec<_> = (0..1000).map(|_| jittered(least, &mut rng)).collect();
        assert!(drawn.iter().all(|delay| (least..least * 2).contains(delay)));
        assert_eq!(jittered(Duration::ZERO, &mut rng), Duration::ZERO);
    }
}
