//! The builder of a loop.

mod enqueue;
mod event_mapping;
mod handlers;
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_api::{KnownView, ObjectKey, Resource, View};
use kcm_client::{ApiClient, BoxError, RequestOrigin};
use kcm_config::Setting;
use kcm_informers::{Cache, Change, Factory, HandlerOptions, Informer, ListOptions, MultiNamespaceInformer};
use kcm_workqueue::{Queue, QueueOptions, RetryLimits};
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::consistency::Primary;
use crate::control_loop::Loop;
use crate::explain::Triggers;
use crate::live_settings::{LiveSettings, WorkerCount};
use crate::metrics::Metrics;
use crate::queue_key::QueueKey;
use crate::reconcile::{
    DeclaredWrites, Keyless, LoopContext, LoopCore, ObjectSource, OfObjects, Reconcile, ReconcileObject, Session,
    Workers,
};
use event_mapping::controllers;
use handlers::{Target, add_handler, resync_phase};

pub use enqueue::Enqueue;
pub use source::Source;

/// The description of one loop of a controller: for each cache that it reads, what a change enqueues.
///
/// Made by [`ControllerContext::control_loop`](crate::ControllerContext::control_loop). Event handlers, the queue with
/// its limits and metrics, the wait for sync and read-your-own-writes follow from it.
///
/// # Guarantees
/// - *A change of the [primary](Self::primary) resource enqueues its key, and so does a resync.*
/// - *A change of an [owned](Self::owns) resource enqueues its controller, before and after the change*: the primary object
///   that controls it.
/// - *A change of a [watched](Self::watches) resource enqueues what its event mapping returns, at once or later.*
/// - *A list that is repeated enqueues nothing for objects that have not changed.*
/// - *Keys of live changes go before those of the first list*, and of resyncs.
/// - *A loop that does not run drops changes, and enqueues what its caches hold when it starts.* Live changes go first. A
///   standby holds no keys.
/// - *A loop reads [several namespaces](Self::in_namespaces) and no others* as one cache. *Of several namespaces, a write is
///   waited for in its own.*
/// - *No loop takes a key before its caches have synced*, and no key is reconciled again before they show its writes.
/// - *Metrics name the loop*, and so do logs; the logs of its event handlers name controller and loop, as
///   `CONTROLLER/LOOP`.
/// - *[Prepare](Reconcile::prepare) runs after the sync and before the first key, with back-off, and keys wait for its
///   writes.*
/// - *With a [barrier](Self::barrier), no key is taken while any write of the loop is pending.*
/// - *A loop that writes a cached resource without reading it does not start.*
/// - *A write to a resource that the loop does not [declare](Self::writes) is not sent, and is terminal.*
/// - *[Periodic](Self::periodic) work has a session, and waits for its own writes.*
/// - *A [task](Self::task) has a session with the declared writes.*
/// - *A loop that enqueues keys without a reconciler does not start.*
///
/// # Examples
/// ```
/// use kcm_framework::api::views::{Pod, ReplicaSet};
/// use kcm_framework::{BoxError, ControllerContext, Reconcile, Loops};
///
/// fn init(context: &ControllerContext, reconciler: impl Reconcile) -> Result<Loops, BoxError> {
///     let mut sets = context.control_loop("replicaset");
///     let replica_sets = sets.primary::<ReplicaSet>();
///     let pods = sets.owns::<Pod>();
///     # let _caches = (replica_sets, pods);
///     Ok(sets.workers(5).reconcile(reconciler).into())
/// }
/// ```
#[must_use = "a loop does nothing until `reconcile`"]
pub struct ControlLoopBuilder<K: QueueKey = ObjectKey> {
    name: &'static str,
    environment: LoopEnvironment,
    limits: RetryLimits,
    workers: WorkerCount,
    queue: Option<Queue<K>>,
    triggers: Arc<Triggers<K>>,
    caches: Vec<Arc<dyn Cache>>,
    primary: Primary,
    handlers: Vec<AddHandler<K>>,
    writes: BTreeSet<Resource>,
    writes_anything: bool,
    has_barrier: bool,
}

/// A number of workers, or the setting that has it.
#[derive(Debug, Clone, Copy)]
pub struct LoopWorkers(Count);

#[derive(Debug, Clone, Copy)]
enum Count {
    Fixed(usize),
    Of(&'static str),
}

impl From<usize> for LoopWorkers {
    fn from(number: usize) -> Self {
        Self(Count::Fixed(number))
    }
}

impl From<&Setting<kcm_config::Workers>> for LoopWorkers {
    fn from(setting: &Setting<kcm_config::Workers>) -> Self {
        Self(Count::Of(setting.name()))
    }
}

/// The parts of its controller's context that a loop uses.
pub(crate) struct LoopEnvironment {
    pub(crate) controller: &'static str,
    pub(crate) informers: Factory,
    pub(crate) resync_period: Duration,
    pub(crate) api: ApiClient,
    /// The client of live checks.
    pub(crate) live: ApiClient,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) context: LoopContext,
    pub(crate) settings: LiveSettings,
}

/// Adds an event handler that enqueues into the queue of a target.
type AddHandler<K> = Box<dyn FnOnce(&Target<K>) -> Result<(), LoopError> + Send>;

/// A mistake in the description of a loop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum LoopError {
    #[error("the loop {name:?} owns {owned} without a primary resource: call `primary` or `primary_with` as well")]
    OwnsWithoutPrimary { name: &'static str, owned: String },
    #[error(
        "the loop {name:?} writes {resource} without reading its cache, so that it would not wait for its own writes: call \
         `reads` instead of `writes`"
    )]
    WritesUnread { name: &'static str, resource: String },
    #[error(
        "the loop {name:?} takes its number of workers from --{flag}, which is not in the settings of the controller's \
         descriptor: add its row"
    )]
    NoWorkerCount { name: &'static str, flag: &'static str },
    #[error("the loop {name:?} enqueues keys and has no reconciler: end its description with `reconcile`")]
    NoReconciler { name: &'static str },
}

impl<K: QueueKey> ControlLoopBuilder<K> {
    pub(crate) fn new(name: &'static str, environment: LoopEnvironment) -> Self {
        let triggers = Arc::new(Triggers::new(environment.context.journal.is_enabled()));
        Self {
            name,
            environment,
            triggers,
            limits: RetryLimits::default(),
            workers: WorkerCount::Fixed(1),
            queue: None,
            caches: Vec::new(),
            primary: Primary::default(),
            handlers: Vec::new(),
            writes: BTreeSet::new(),
            writes_anything: false,
            has_barrier: false,
        }
    }

    /// Sets the number of keys that are reconciled concurrently: a number, or a setting, whose value is applied while the
    /// loop runs. 1 by default (upstream: `MaxConcurrentReconciles`).
    ///
    /// When a setting is [reloaded](crate::ManagerHandle::reload), more workers start at once; surplus workers end after the
    /// key that they process.
    pub fn workers(self, workers: impl Into<LoopWorkers>) -> Self {
        match workers.into().0 {
            Count::Fixed(number) => Self { workers: WorkerCount::Fixed(number), ..self },
            Count::Of(flag) => {
                let settings = self.environment.settings.clone();
                Self { workers: WorkerCount::Setting { flag, settings }, ..self }
            }
        }
    }

    /// Sets the rate limits of retries, if upstream's differ from the default. They apply to a queue that is created
    /// after this call.
    pub fn retry_limits(self, limits: RetryLimits) -> Self {
        Self { limits, ..self }
    }

    /// Takes no key while any write of the loop is pending, and one key at a time: for loops whose keys share something,
    /// as allocators do.
    pub fn barrier(self) -> Self {
        Self { has_barrier: true, ..self }
    }

    /// The queue, for keys that other loops and tasks enqueue.
    pub fn queue(&mut self) -> Queue<K> {
        let queue = self.queue.get_or_insert_with(|| {
            let metrics = self.environment.metrics.queues();
            let options = QueueOptions { limits: self.limits, ..QueueOptions::named(self.name) };
            let queue = Queue::new(QueueOptions { metrics: metrics.of(self.name), ..options });
            let at_scrape = queue.downgrade();
            metrics.on_scrape(self.name, move || Some(at_scrape.upgrade()?.unfinished_work()));
            queue
        });
        queue.clone()
    }

    /// Reads the resource that keys name: a change enqueues the key of the object, and so does a resync.
    ///
    /// An object recreated under the same name does not wait for writes that were made for the earlier one.
    pub fn primary<V: KnownView>(&mut self) -> Informer<V>
    where
        K: From<ObjectKey>,
    {
        self.primary_for(Source::known())
    }

    /// As [`primary`](Self::primary), for any source.
    pub fn primary_for<V: View>(&mut self, source: Source<V>) -> Informer<V>
    where
        K: From<ObjectKey>,
    {
        self.primary_with(source.resync(), |change: &Change<V>| [K::from(change.key().clone())])
    }

    /// As [`primary_for`](Self::primary_for), with an event mapping of its own: a change enqueues the keys that
    /// `event_mapping` returns. The objects are resynced only if `source` says so. Of several primary sources, each holds
    /// the objects of a namespace.
    ///
    /// Keys may be of another type than [`ObjectKey`]: [`QueueKey::object`] names the object.
    pub fn primary_with<V, I>(
        &mut self,
        source: Source<V>,
        event_mapping: impl Fn(&Change<V>) -> I + Send + 'static,
    ) -> Informer<V>
    where
        V: View,
        I: IntoIterator<Item: Into<Enqueue<K>>>,
    {
        let informer = self.watches_for(source, event_mapping);
        self.keyed_by(&informer);
        informer
    }

    /// Reads a resource that the primary resource owns: a change enqueues the primary object that controls the changed
    /// object, before and after the change.
    ///
    /// An owner that is not in its cache is not enqueued; its own addition enqueues it.
    pub fn owns<V: KnownView>(&mut self) -> Informer<V>
    where
        K: From<ObjectKey>,
    {
        self.owns_for(Source::known())
    }

    /// As [`owns`](Self::owns), for any source.
    pub fn owns_for<V: View>(&mut self, source: Source<V>) -> Informer<V>
    where
        K: From<ObjectKey>,
    {
        let options = self.handler_options(&source);
        let (name, owned) = (self.name, source.resource.to_string());
        let informer = self.reads_for(source);
        let (read, cache) = (informer.clone(), self.add_cache(informer.cache()));
        self.handlers.push(Box::new(move |target| {
            if target.primary.is_empty() {
                return Err(LoopError::OwnsWithoutPrimary { name, owned });
            }
            let owners = Arc::clone(&target.primary);
            add_handler(&read, cache, options, target, move |change| {
                controllers(change, &owners).into_iter().map(K::from)
            });
            Ok(())
        }));
        informer
    }

    /// Reads a resource: a change enqueues the keys that `event_mapping` returns.
    ///
    /// `event_mapping` runs on the task of the informer, for every change and under its lock, so it only computes keys.
    /// It is called while the loop runs, and with every object as added when the loop starts: a mapping that follows the
    /// objects must count an object once that it is shown twice, and is brought up to date in
    /// [`prepare`](Reconcile::prepare).
    pub fn watches<V, I>(&mut self, event_mapping: impl Fn(&Change<V>) -> I + Send + 'static) -> Informer<V>
    where
        V: KnownView,
        I: IntoIterator<Item: Into<Enqueue<K>>>,
    {
        self.watches_for(Source::known(), event_mapping)
    }

    /// As [`watches`](Self::watches), for any source.
    pub fn watches_for<V, I>(
        &mut self,
        source: Source<V>,
        event_mapping: impl Fn(&Change<V>) -> I + Send + 'static,
    ) -> Informer<V>
    where
        V: View,
        I: IntoIterator<Item: Into<Enqueue<K>>>,
    {
        let options = self.handler_options(&source);
        let informer = self.reads_for(source);
        let (read, cache) = (informer.clone(), self.add_cache(informer.cache()));
        self.handlers.push(Box::new(move |target| {
            add_handler(&read, cache, options, target, event_mapping);
            Ok(())
        }));
        informer
    }

    /// Reads a resource whose changes enqueue nothing.
    pub fn reads<V: KnownView>(&mut self) -> Informer<V> {
        self.reads_for(Source::known())
    }

    /// As [`reads`](Self::reads), for any source.
    pub fn reads_for<V: View>(&mut self, source: Source<V>) -> Informer<V> {
        let informer = self.environment.informers.informer_for(source.resource, source.list_options);
        self.add_cache(informer.cache());
        informer
    }

    /// Says that keys name the objects of this informer.
    fn keyed_by<V: View>(&mut self, informer: &Informer<V>) {
        let cache = self.add_cache(informer.cache());
        self.primary.add(cache);
    }

    /// Reads a resource in several namespaces: `read` calls one of the methods above for each, with the list options of the
    /// namespace.
    ///
    /// ```
    /// use kcm_framework::api::views::{Pod, ReplicaSet};
    /// use kcm_framework::{ControlLoopBuilder, Source};
    ///
    /// fn describe(sets: &mut ControlLoopBuilder) {
    ///     let namespaces = ["shop", "warehouse"];
    ///     let replica_sets = sets.in_namespaces(namespaces, |sets, namespace| {
    ///         sets.primary_for(Source::<ReplicaSet>::known().list_options(namespace))
    ///     });
    ///     let pods = sets.in_namespaces(namespaces, |sets, namespace| {
    ///         sets.owns_for(Source::<Pod>::known().list_options(namespace))
    ///     });
    ///     # let _caches = (replica_sets, pods);
    /// }
    /// ```
    pub fn in_namespaces<V: View>(
        &mut self,
        namespaces: impl IntoIterator<Item: Into<String>>,
        mut read: impl FnMut(&mut Self, ListOptions) -> Informer<V>,
    ) -> MultiNamespaceInformer<V> {
        let namespaces: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        namespaces.into_iter().map(|namespace| read(self, ListOptions::namespace(namespace))).collect()
    }

    /// Declares that the loop writes a resource that it does not read. Resources that it reads need no declaration.
    ///
    /// No key waits for these writes. If any cache of the manager holds the resource, the loop does not start: it must
    /// read it as well.
    pub fn writes(mut self, resource: Resource) -> Self {
        self.writes.insert(resource);
        self
    }

    /// Declares that the loop writes any resource, such as resources that it finds by discovery.
    ///
    /// Keys wait for writes to the resources that the loop reads, and for no others.
    pub fn writes_anything(self) -> Self {
        Self { writes_anything: true, ..self }
    }

    /// The loop, which reconciles with `reconciler`; from here on, changes enqueue keys.
    ///
    /// A mistake in the description is an error of the loop when it starts.
    pub fn reconcile<R: Reconcile<K>>(self, reconciler: R) -> Loop {
        self.described(Box::new(reconciler))
    }

    fn described(mut self, reconciler: Box<dyn Reconcile<K>>) -> Loop {
        let queue = self.queue();
        let primary = self.primary.of(&self.caches).into();
        let triggers = Arc::clone(&self.triggers);
        let activity = Activity::default();
        let runs = activity.runs();
        let target = Target { queue: queue.clone(), triggers: Arc::clone(&triggers), primary, activity, runs };
        let added = std::mem::take(&mut self.handlers).into_iter().try_for_each(|add| add(&target));
        let activity = target.activity;
        let check = self.check();
        let (workers, primary, has_barrier) = (self.workers.clone(), self.primary.clone(), self.has_barrier);
        let described = Workers::new(self.core(), queue, triggers, activity, reconciler, primary, has_barrier);
        described.into_loop(workers).checked(move || Ok(added.clone().and_then(|()| check())?))
    }

    fn core(self) -> LoopCore {
        let context = self.context();
        let LoopEnvironment { controller, mut api, mut live, metrics, .. } = self.environment;
        for client in [&mut api, &mut live] {
            client.set_origin(RequestOrigin::of_loop(self.name));
        }
        LoopCore { controller, name: self.name, api, live, context, metrics, caches: self.caches.into() }
    }

    fn context(&self) -> Arc<LoopContext> {
        let read = self.caches.iter().map(|cache| cache.resource().clone());
        let declared = || DeclaredWrites::Only(self.writes.iter().cloned().chain(read).collect());
        let writes = if self.writes_anything { DeclaredWrites::Anything } else { declared() };
        Arc::new(LoopContext { name: self.name, writes, ..self.environment.context.clone() })
    }

    /// A check that no cache of the manager holds what the loop writes and does not read, and that its number of workers
    /// is known.
    fn check(&self) -> impl Fn() -> Result<(), LoopError> + Send + Sync + 'static {
        let is_read = |resource: &Resource| self.caches.iter().any(|cache| cache.resource() == resource);
        let unread: Vec<Resource> = self.writes.iter().filter(|resource| !is_read(resource)).cloned().collect();
        let (name, informers) = (self.name, self.environment.informers.clone());
        let unusable = self.workers.unusable_flag().map(|flag| LoopError::NoWorkerCount { name, flag });
        move || match unread.iter().find(|resource| !informers.caches(resource).is_empty()) {
            Some(resource) => Err(LoopError::WritesUnread { name, resource: resource.to_string() }),
            None => unusable.clone().map_or(Ok(()), Err),
        }
    }

    /// The options of an event handler, which is named after the controller and the loop.
    fn handler_options<V>(&self, source: &Source<V>) -> HandlerOptions {
        let LoopEnvironment { controller, resync_period, .. } = self.environment;
        let name = format!("{controller}/{}", self.name);
        let phase = source.resync.is_of_manager().then(|| resync_phase(&name, &source.resource, resync_period));
        HandlerOptions { name: name.into(), resync_period: source.resync.period(resync_period), resync_phase: phase }
    }

    /// Adds a cache, once; returns its position.
    fn add_cache(&mut self, cache: Arc<dyn Cache>) -> usize {
        let known = self.caches.iter().position(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(&cache)));
        known.unwrap_or_else(|| {
            self.caches.push(cache);
            self.caches.len() - 1
        })
    }
}

impl ControlLoopBuilder {
    /// The loop, whose `reconciler` is handed the object of each key from `objects`, which [`primary`](Self::primary)
    /// or [`in_namespaces`](Self::in_namespaces) has returned.
    pub fn reconcile_objects<V, S, R>(self, objects: S, reconciler: R) -> Loop
    where
        V: View,
        S: ObjectSource<V>,
        R: ReconcileObject<V>,
    {
        self.described(Box::new(OfObjects { objects, reconciler, view: PhantomData }))
    }

    /// A loop that runs `work` every `period`, the first time at once, and never before the caches that it reads show
    /// the writes of the previous run.
    ///
    /// An error is logged, and `work` runs again after the next period.
    pub fn periodic<F>(self, period: Duration, work: F) -> Loop
    where
        F: Fn(Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let check = self.keyless_check();
        self.keyless().periodic(period, work).checked(move || Ok(check()?))
    }

    /// A loop that runs `task` until its token is cancelled or it returns `Ok`. Nothing waits for its writes.
    pub fn task<F>(self, task: F) -> Loop
    where
        F: Fn(CancellationToken, Arc<Session>) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync + 'static,
    {
        let check = self.keyless_check();
        self.keyless().task(task).checked(move || Ok(check()?))
    }

    fn keyless_check(&self) -> impl Fn() -> Result<(), LoopError> + Send + Sync + 'static {
        let (check, name, has_handlers) = (self.check(), self.name, !self.handlers.is_empty());
        move || if has_handlers { Err(LoopError::NoReconciler { name }) } else { check() }
    }

    fn keyless(self) -> Keyless {
        Keyless(self.core())
    }
}

impl<K: QueueKey> fmt::Debug for ControlLoopBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlLoopBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
