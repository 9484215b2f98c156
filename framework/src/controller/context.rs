//! What a controller is given to work with.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_config::{Effective, Gate};
use kcm_informers::{Factory, HandlerRegistrations};
use kcm_workqueue::{Queue, QueueOptions};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::Running;
use crate::client::{ApiClient, ClientBuilder};
use crate::clock::Clock;
use crate::discovery::Discovery;
use crate::error::BoxError;
use crate::events::{Recorder, Recorders};
use crate::metrics::Metrics;
use crate::queue_key::QueueKey;
use crate::reconcile::{NameGenerator, Reconcile, ReconcileLoop};

/// What all controllers of one manager share.
pub(crate) struct SharedContext {
    /// Makes clients, one identity each.
    pub(crate) clients: ClientBuilder,
    /// The caches.
    pub(crate) informers: Factory,
    /// The merged settings.
    pub(crate) settings: Effective,
    /// The wall clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Where events are sent.
    pub(crate) events: Recorders,
    /// What the API server serves.
    pub(crate) discovery: Discovery,
    /// The metrics.
    pub(crate) metrics: Arc<Metrics>,
    /// NameGenerator for new objects.
    pub(crate) names: NameGenerator,
    /// How often subscribers see again what has not changed, drawn once in [min, 2 × min).
    pub(crate) resync: Duration,
    /// Cancelled when the manager begins to stop.
    pub(crate) cancel: CancellationToken,
    /// Cancelled — that is, reached — when the informers of all controllers have been started.
    pub(crate) informers_started: CancellationToken,
    /// Values that a host hands to its own controllers.
    pub(crate) extensions: Extensions,
}

/// Values by their type: what a host hands to controllers that know it. Clones are one set.
#[derive(Clone, Default)]
pub struct Extensions(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extensions").field("values", &self.0.lock().len()).finish()
    }
}

impl Extensions {
    /// Puts the one value of its type; returns whether there was none before.
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

/// What one controller is given to work with; cheap to clone.
///
/// The shared parts are shared by all controllers of the process: one cache per kind, one connection pool.
#[derive(Clone)]
pub struct ControllerContext {
    controller: &'static str,
    identity: &'static str,
    informers: Factory,
    subscriptions: HandlerRegistrations,
    shared: Arc<SharedContext>,
}

impl ControllerContext {
    /// The context of one controller.
    pub(crate) fn new(controller: &'static str, identity: &'static str, shared: Arc<SharedContext>) -> Self {
        let subscriptions = HandlerRegistrations::new();
        let informers = shared.informers.with_registrations(&subscriptions);
        Self { controller, identity, informers, subscriptions, shared }
    }

    /// What the controller has subscribed to.
    pub(crate) const fn subscriptions(&self) -> &HandlerRegistrations {
        &self.subscriptions
    }

    /// The controller's canonical name.
    #[must_use]
    pub const fn controller(&self) -> &'static str {
        self.controller
    }

    /// A client with this controller's identity: its User-Agent and a token bucket of its own.
    ///
    /// Writes of a reconcile go through its [`Session`](crate::Session) instead, which remembers them.
    #[must_use]
    pub fn client(&self) -> ApiClient {
        self.shared.clients.client_for(self.identity)
    }

    /// Makes clients of other identities, for controllers that act under several.
    #[must_use]
    pub fn clients(&self) -> &ClientBuilder {
        &self.shared.clients
    }

    /// The caches, shared by all controllers.
    #[must_use]
    pub const fn informers(&self) -> &Factory {
        &self.informers
    }

    /// A section of the settings, as its rows name it: `ReplicaSetController`.
    ///
    /// # Errors
    /// The section does not fit `T`: a row of the controller and the type that it reads do not agree.
    pub fn settings<T: DeserializeOwned>(&self, section: &str) -> Result<T, BoxError> {
        Ok(self.shared.settings.section(section)?)
    }

    /// Whether a feature gate is on.
    #[must_use]
    pub fn gate(&self, gate: &Gate) -> bool {
        self.shared.settings.enabled(gate)
    }

    /// The wall clock; timers use tokio's.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Records events in the name of this controller, in the background.
    #[must_use]
    pub fn recorder(&self) -> Recorder {
        self.shared.events.recorder(self.controller, self.identity)
    }

    /// What the API server serves, and which resource a kind is.
    #[must_use]
    pub fn discovery(&self) -> &Discovery {
        &self.shared.discovery
    }

    /// Ends when the informers of all controllers have been started.
    pub fn informers_started(&self) -> impl Future<Output = ()> + use<> {
        self.shared.informers_started.clone().cancelled_owned()
    }

    /// How often subscribers see again what has not changed.
    #[must_use]
    pub fn resync_period(&self) -> Duration {
        self.shared.resync
    }

    /// Cancelled when the manager begins to stop.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.shared.cancel
    }

    /// The metrics of the manager, to which a controller may add its own.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// A value that the host has put for controllers that know it.
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.shared.extensions.get()
    }

    /// A queue with its metrics. `name` is the label `name` of the metrics: upstream's, where upstream has the queue.
    #[must_use]
    pub fn queue<K: QueueKey>(&self, name: &'static str) -> Queue<K> {
        let metrics = self.shared.metrics.queues();
        let queue = Queue::new(QueueOptions { metrics: metrics.of(name), ..QueueOptions::named(name) });
        let asked = queue.clone();
        metrics.ask(name, move || asked.unfinished_work());
        queue
    }

    /// A reconcile loop over `queue`, with one worker until told otherwise.
    pub fn reconcile_loop<R: Reconcile>(&self, queue: Queue<R::Key>, reconciler: R) -> ReconcileLoop<R> {
        ReconcileLoop {
            controller: self.controller,
            queue,
            reconciler,
            api: self.client(),
            live: self.shared.clients.client_for(ClientBuilder::MANAGER),
            names: self.shared.names.clone(),
            metrics: Arc::clone(&self.shared.metrics),
            workers: 1,
            caches: Vec::new(),
            primary: None,
        }
    }
}

impl std::fmt::Debug for ControllerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerContext").field("controller", &self.controller).finish_non_exhaustive()
    }
}
