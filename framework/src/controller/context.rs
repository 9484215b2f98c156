//! The context of a controller: clients, informers, settings and everything else that its `InitFunc` uses.

use std::any::{Any, TypeId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kcm_api::{Need, Needs, Part, PartReader, UndeclaredPart};
use kcm_client::clock::Clock;
use kcm_client::{ApiClient, BoxError, ClientBuilder, ClientLimits};
use kcm_config::{Effective, Gate, Row, Setting, Workers};
use kcm_informers::{Factory, Registrations};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::SettingsInUse;
use crate::discovery::Discovery;
use crate::events::{Recorder, Recorders};
use crate::explain::Journal;
use crate::first_failure::FirstFailure;
use crate::live_settings::{LiveSettings, WorkerCount};
use crate::loop_builder::{ControlLoopBuilder, LoopEnvironment};
use crate::metrics::Metrics;
use crate::queue_key::QueueKey;
use crate::reconcile::{DeclaredWrites, LoopContext, NameGenerator};
use crate::scale_client::ScaleClient;

/// The part of the context that all controllers of a manager share.
pub(crate) struct SharedContext {
    /// The builder of clients, one per identity.
    pub(crate) clients: ClientBuilder,
    pub(crate) informers: Factory,
    /// Parts that the informers decode beyond the fields of views.
    pub(crate) needs: Needs,
    /// The merged settings of the start.
    pub(crate) settings: Effective,
    /// The settings as they were last reloaded.
    pub(crate) live_settings: LiveSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) events: Recorders,
    /// The resources that the API server serves.
    pub(crate) discovery: Discovery,
    pub(crate) metrics: Arc<Metrics>,
    /// The decisions about keys.
    pub(crate) journal: Arc<Journal>,
    /// The generator of names for new objects.
    pub(crate) names: NameGenerator,
    /// The resync period of event handlers, drawn once in [min, 2 × min).
    pub(crate) resync: Duration,
    /// Cancelled when the manager begins to stop.
    pub(crate) cancel: CancellationToken,
    /// Cancelled when the informers of all controllers have been started.
    pub(crate) informers_started: CancellationToken,
    /// Values that a host passes to its own controllers.
    pub(crate) extensions: Extensions,
    /// The record of failures of controllers.
    pub(crate) failures: FirstFailure,
}

/// Values by type, which a host passes to its own controllers. Clones share one set.
#[derive(Clone, Default)]
pub struct Extensions(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extensions").field("values", &self.0.lock().len()).finish()
    }
}

impl Extensions {
    /// Adds the value of its type. Returns `true` if there was none before.
    pub fn insert<T: Send + Sync + 'static>(&self, value: T) -> bool {
        self.0.lock().insert(TypeId::of::<T>(), Arc::new(value)).is_none()
    }

    /// The value of that type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.0.lock().get(&TypeId::of::<T>()).cloned()?;
        value.downcast().ok()
    }
}

/// The context of one controller; cheap to clone.
///
/// All controllers of a manager share one cache per kind and one connection pool.
#[derive(Clone)]
pub struct ControllerContext {
    controller: &'static str,
    identity: &'static str,
    event_component: &'static str,
    client_limits: ClientLimits,
    needs: Needs,
    settings: SettingsInUse,
    informers: Factory,
    registrations: Registrations,
    shared: Arc<SharedContext>,
}

/// The fields of the descriptor that the context of its controller uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescriptorParts {
    /// Canonical name of the controller.
    pub(crate) controller: &'static str,
    /// Client identity of the controller.
    pub(crate) identity: &'static str,
    /// The component that its events name as their source.
    pub(crate) event_component: &'static str,
    /// The rate limit of its requests.
    pub(crate) client_limits: ClientLimits,
    /// Parts of views that it needs.
    pub(crate) needs: &'static [Need],
    /// The rows of its settings.
    pub(crate) settings: &'static [Row],
}

impl ControllerContext {
    /// The context of one controller.
    pub(crate) fn new(descriptor: DescriptorParts, shared: Arc<SharedContext>) -> Self {
        let registrations = Registrations::new();
        let informers = shared.informers.with_registrations(&registrations);
        Self {
            controller: descriptor.controller,
            identity: descriptor.identity,
            event_component: descriptor.event_component,
            client_limits: descriptor.client_limits,
            needs: descriptor.needs.iter().copied().collect(),
            settings: SettingsInUse::new(descriptor.controller, descriptor.settings, &shared.live_settings),
            informers,
            registrations,
            shared,
        }
    }

    /// The registrations of the controller with its informers.
    pub(crate) const fn registrations(&self) -> &Registrations {
        &self.registrations
    }

    /// The record of failures of controllers.
    pub(crate) fn failures(&self) -> &FirstFailure {
        &self.shared.failures
    }

    /// The controller's canonical name.
    #[must_use]
    pub const fn controller(&self) -> &'static str {
        self.controller
    }

    /// A client with the identity of this controller: its User-Agent, and its rate limiter with the
    /// [limits](crate::ControllerDescriptor::client_limits) of the descriptor.
    ///
    /// A reconcile writes through its [`Session`](crate::Session) instead, which tracks its writes. It shares the rate
    /// limiter.
    #[must_use]
    pub fn client(&self) -> ApiClient {
        self.client_with(self.client_limits)
    }

    /// A client with the identity of this controller and other limits, for requests that upstream sends through a
    /// client of its own. Clients with the same limits share a rate limiter.
    #[must_use]
    pub fn client_with(&self, limits: ClientLimits) -> ApiClient {
        self.shared.clients.named_client_for(self.identity, self.controller, limits)
    }

    /// A client with the identity of this controller and a rate limiter that only clients of that name share, for
    /// requests that upstream sends through a client of its own with the limits of the settings.
    #[must_use]
    pub fn named_client(&self, name: &str) -> ApiClient {
        let name = format!("{}/{name}", self.controller);
        self.shared.clients.named_client_for(self.identity, &name, ClientLimits::OfSettings)
    }

    /// The builder of clients of other identities, for controllers that use several.
    #[must_use]
    pub fn clients(&self) -> &ClientBuilder {
        &self.shared.clients
    }

    /// The informers, shared by all controllers.
    #[must_use]
    pub const fn informers(&self) -> &Factory {
        &self.informers
    }

    /// Reads a part of the objects of informers.
    ///
    /// # Errors
    /// The [`needs`](crate::ControllerDescriptor::needs) of the controller's descriptor lack the part, so informers may not
    /// decode it.
    pub fn part<P: Part>(&self) -> Result<PartReader<P>, UndeclaredPart> {
        self.needs.reader()
    }

    /// The value of a setting: of the start of the manager or, if a reload enabled this controller, of that reload.
    ///
    /// # Errors
    /// The [`settings`](crate::ControllerDescriptor::settings) of no descriptor have its row, or its value does not fit
    /// `T`. Or the setting does not belong to this controller, and the reload that enabled the controller has changed
    /// it: then the controller is not started.
    pub fn get<T: DeserializeOwned>(&self, setting: &Setting<T>) -> Result<T, BoxError> {
        self.settings.read(setting)
    }

    /// Returns a function that returns the current number of workers of a setting, which may be reloaded. For limits
    /// that follow the number of workers.
    pub fn live(&self, workers: &Setting<Workers>) -> impl Fn() -> usize + Send + Sync + 'static {
        let count = WorkerCount::Setting { flag: workers.name(), settings: self.shared.live_settings.clone() };
        move || count.get()
    }

    /// Returns `true` if a feature gate is on.
    #[must_use]
    pub fn gate(&self, gate: &Gate) -> bool {
        self.settings.gate(gate)
    }

    /// The changed settings and feature gates because of which the controller must not start.
    pub(crate) fn outdated_settings(&self, required_gates: &[Gate]) -> BTreeSet<String> {
        self.settings.outdated(required_gates)
    }

    /// The wall clock; timers use tokio's.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// The event recorder of this controller: its events name the
    /// [component](crate::ControllerDescriptor::event_component) of the descriptor as their source.
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        self.shared.events.recorder(self.event_component, || self.client_with(ClientLimits::OfSettings))
    }

    /// Discovery: the resources that the API server serves, and the resource of a kind.
    #[must_use]
    pub fn discovery(&self) -> &Discovery {
        &self.shared.discovery
    }

    /// The scale client of this controller, which sends through its [`client`](Self::client).
    #[must_use]
    pub fn scale_client(&self) -> ScaleClient {
        ScaleClient::new(self.client(), self.discovery().clone())
    }

    /// Waits until the informers of all controllers have been started.
    pub fn informers_started(&self) -> impl Future<Output = ()> + use<> {
        self.shared.informers_started.clone().cancelled_owned()
    }

    /// The resync period of event handlers.
    #[must_use]
    pub fn resync_period(&self) -> Duration {
        self.shared.resync
    }

    /// Cancelled when the manager begins to stop.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.shared.cancel
    }

    /// The metrics of the manager. A controller registers its own metrics here.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// A value that the host passes to its own controllers.
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.shared.extensions.get()
    }

    /// Describes a loop of this controller. `name` is the label `name` of its queue and names the loop in all logs and
    /// metrics. If upstream has the queue, use upstream's name.
    pub fn control_loop<K: QueueKey>(&self, name: &'static str) -> ControlLoopBuilder<K> {
        let shared = &self.shared;
        let context = LoopContext {
            name,
            writes: DeclaredWrites::Anything,
            names: shared.names.clone(),
            clock: Arc::clone(&shared.clock),
            recorder: self.recorder(),
            journal: Arc::clone(&shared.journal),
            failures: shared.failures.clone(),
        };
        ControlLoopBuilder::new(
            name,
            LoopEnvironment {
                controller: self.controller,
                informers: self.informers.clone(),
                resync_period: shared.resync,
                api: self.client(),
                live: shared.clients.client_for(ClientBuilder::MANAGER),
                metrics: Arc::clone(&shared.metrics),
                context,
                settings: shared.live_settings.clone(),
            },
        )
    }
}

impl std::fmt::Debug for ControllerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerContext").field("controller", &self.controller).finish_non_exhaustive()
    }
}
