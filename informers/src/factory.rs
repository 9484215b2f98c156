//! The shared informer factory.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kcm_api::{DecodeContext, Interner, KnownView, Needs, PartialObjectMeta, Resource, ResourceVersion, View};
use kube::Client;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::availability::Availability;
use crate::cache::Cache;
use crate::connection::Connection;
use crate::currency::check::prove;
use crate::currency::look_ahead::Ahead;
use crate::currency::{Currency, Evidence, HandedOver, LookAhead};
use crate::informer::Informer;
use crate::list_options::ListOptions;
use crate::metadata_informer::{MetadataInformer, MetadataSource};
use crate::metrics::{MetricsOf, NoMetrics};
use crate::moments::{Moment, Moments};
use crate::reflector;
use crate::reflector_store::ViewStore;
use crate::registrations::{Recorder, Registrations};
use crate::rollback::{self, Caches, Known};
use crate::shared_informer::SharedInformer;
use crate::status::InformerStatus;

/// The options of a factory.
pub struct FactoryOptions {
    /// The client of lists and watches; it must not retry.
    pub client: Client,
    /// The connection that the client sends through: while it is unreachable, informers wait.
    pub connection: Connection,
    /// The seed of jitter.
    pub seed: u64,
    /// The metrics of each informer.
    pub metrics: Arc<MetricsOf>,
    /// The interner of the repeated strings of all views.
    pub interner: Arc<Interner>,
    /// The parts of views, and the annotations, that the users of the informers need.
    pub needs: Needs,
    /// The moments from which caches must be current.
    pub moments: Moments,
}

impl FactoryOptions {
    /// Options without metrics and needs, over a connection that nothing monitors.
    #[must_use]
    pub fn new(client: Client, seed: u64) -> Self {
        let connection = Connection::unmonitored();
        let metrics: Arc<MetricsOf> = Arc::new(|_| Arc::new(NoMetrics));
        Self {
            client,
            connection,
            seed,
            metrics,
            interner: Arc::default(),
            needs: Needs::default(),
            moments: Moments::default(),
        }
    }
}

/// The proof that a cache is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentCache {
    /// The resource of the cache.
    pub resource: Resource,
    /// The evidence that it is current.
    pub evidence: Evidence,
    /// Time that the proof took.
    pub took: Duration,
}

/// The shared informer factory: one informer for each resource, view and list options, and their tasks.
///
/// An informer is counted by its users. Each use through a handle of [`with_registrations`](Self::with_registrations)
/// ends with those [`Registrations`]; a use through another handle lasts as long as the factory. When the last use ends
/// the informer is stopped and removed, and its memory is freed with the last [`Informer`] of it.
///
/// Cheap to clone; all clones are one factory.
#[derive(Clone)]
pub struct Factory {
    inner: Arc<Inner>,
    recorder: Recorder,
}

struct Inner {
    options: FactoryOptions,
    /// Notified when the storage of the API server may have gone back.
    rollback_suspected: Arc<Notify>,
    state: Mutex<State>,
}

struct State {
    informers: Vec<Entry>,
    next_id: u64,
    seeds: fastrand::Rng,
    run: Run,
    tasks: JoinSet<()>,
}

/// The stages of a factory; a later informer is started if the factory is.
enum Run {
    NotStarted,
    Started(Handle),
    ShutDown,
}

struct Entry {
    id: u64,
    resource: Resource,
    list_options: ListOptions,
    view: TypeId,
    view_name: &'static str,
    /// The `SharedInformer` of that view.
    shared: Arc<dyn AnyView>,
    cache: Arc<dyn Cache>,
    users: usize,
    task: Task,
}

/// A `SharedInformer` of any view.
trait AnyView: Send + Sync {
    fn availability(&self) -> &Availability;
    fn currency(&self) -> &Currency;
    fn versions(&self) -> watch::Receiver<ResourceVersion>;
    fn must_relist(&self);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    fn into_metadata(self: Arc<Self>) -> Arc<dyn MetadataSource>;
}

impl<V: View> AnyView for SharedInformer<V> {
    fn availability(&self) -> &Availability {
        &self.state.availability
    }

    fn currency(&self) -> &Currency {
        &self.state.currency
    }

    fn versions(&self) -> watch::Receiver<ResourceVersion> {
        Self::versions(self)
    }

    fn must_relist(&self) {
        self.state.currency.relist.notify_one();
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn into_metadata(self: Arc<Self>) -> Arc<dyn MetadataSource> {
        self
    }
}

enum Task {
    NotStarted(BoxFuture<'static, ()>),
    Started(AbortHandle),
}

impl Factory {
    /// A factory without informers, not started.
    #[must_use]
    pub fn new(options: FactoryOptions) -> Self {
        let state = State {
            informers: Vec::new(),
            next_id: 0,
            seeds: fastrand::Rng::with_seed(options.seed),
            run: Run::NotStarted,
            tasks: JoinSet::new(),
        };
        let inner = Inner { options, rollback_suspected: Arc::default(), state: Mutex::new(state) };
        Self { inner: Arc::new(inner), recorder: Recorder::default() }
    }

    /// The same factory, which records the registrations through this handle: the use of each informer, and its event
    /// handlers.
    #[must_use]
    pub fn with_registrations(&self, registrations: &Registrations) -> Self {
        Self { inner: Arc::clone(&self.inner), recorder: registrations.recorder() }
    }

    /// The informer of a resource that is known at compile time.
    #[must_use]
    pub fn informer<V: KnownView>(&self, list_options: ListOptions) -> Informer<V> {
        self.informer_for(V::RESOURCE, list_options)
    }

    /// The informer of any resource. The same resource, view and list options return the same informer.
    #[must_use]
    pub fn informer_for<V: View>(&self, resource: Resource, list_options: ListOptions) -> Informer<V> {
        let (id, shared) = self.inner.use_informer::<V>(resource, list_options);
        let factory = Arc::downgrade(&self.inner);
        self.recorder.record(move || end_use(&factory, id));
        Informer::new(shared, self.recorder.clone())
    }

    /// An informer of the metadata of a resource.
    ///
    /// It is served from the cache of an informer with the same or wider list options, of any view, and is one of its
    /// users. If there is none, it is an informer of [`PartialObjectMeta`]: call this after the informers of all
    /// controllers have been created.
    #[must_use]
    pub fn metadata_informer(&self, resource: Resource, list_options: ListOptions) -> MetadataInformer {
        let (id, source) = self.inner.use_metadata(resource, &list_options);
        let factory = Arc::downgrade(&self.inner);
        self.recorder.record(move || end_use(&factory, id));
        MetadataInformer::new(source, list_options, self.recorder.clone())
    }

    /// Starts all informers; later ones start when they are created. A second call does nothing.
    ///
    /// # Panics
    /// When called outside of a tokio runtime.
    pub fn start(&self) {
        let state = &mut *self.inner.state.lock();
        if matches!(state.run, Run::NotStarted) {
            let handle = Handle::current();
            let FactoryOptions { client, connection, .. } = &self.inner.options;
            let (caches, suspicions) = (Arc::downgrade(&self.inner), Arc::clone(&self.inner.rollback_suspected));
            let check = rollback::watch(caches, suspicions, client.clone(), connection.clone());
            state.tasks.spawn_on(check, &handle);
            state.run = Run::Started(handle);
            state.start_pending();
        }
    }

    /// Stops all informers, and returns when none runs any more. The factory cannot be started again.
    pub async fn shut_down(&self) {
        let mut tasks = {
            let state = &mut *self.inner.state.lock();
            state.run = Run::ShutDown;
            std::mem::take(&mut state.tasks)
        };
        tasks.shutdown().await;
    }

    /// Applies the result of discovery: which resources are served.
    ///
    /// The cache of a resource that is not served any more, and whose list gets a 404, is emptied: event handlers are
    /// notified of deletions. When discovery has it again its informers list it at once.
    pub fn apply_discovery(&self, is_served: impl Fn(&Resource) -> bool) {
        for entry in &self.inner.state.lock().informers {
            entry.shared.availability().set_discovered(is_served(&entry.resource));
        }
    }

    /// Proves that all caches hold everything that was written before `since`, and returns when they do, with the
    /// evidence about each cache. A cache that has not synced is waited for.
    ///
    /// `handed_over` returns what a predecessor handed over about a resource. A cache that lags behind for five seconds
    /// is listed again.
    ///
    /// Each cache without a handed-over version costs two watches, which end within three seconds.
    pub async fn prove_current(
        &self,
        since: Moment,
        handed_over: impl Fn(&Resource) -> HandedOver,
    ) -> Vec<CurrentCache> {
        self.prove_current_after(LookAhead::default(), since, handed_over).await
    }

    /// As [`prove_current`](Self::prove_current), with the watches that were opened before `since`: a proof that needs a
    /// watch takes half a second instead of a second.
    pub async fn prove_current_after(
        &self,
        ahead: LookAhead,
        since: Moment,
        handed_over: impl Fn(&Resource) -> HandedOver,
    ) -> Vec<CurrentCache> {
        let mut ahead: HashMap<u64, Ahead> = ahead.caches.into_iter().collect();
        let entries: Vec<_> = {
            let state = self.inner.state.lock();
            let entries = state.informers.iter();
            entries
                .map(|entry| (Arc::clone(&entry.shared), Arc::clone(&entry.cache), ahead.remove(&entry.id)))
                .collect()
        };
        let FactoryOptions { client, connection, .. } = &self.inner.options;
        let proofs = entries.into_iter().map(|(shared, cache, ahead)| {
            let handed_over = handed_over(cache.resource());
            async move {
                let began = Instant::now();
                let (currency, versions) = (shared.currency(), shared.versions());
                let since = (since, handed_over);
                let evidence = prove(client, connection, (&cache, currency), versions, since, ahead).await?;
                Some(CurrentCache { resource: cache.resource().clone(), evidence, took: began.elapsed() })
            }
        });
        join_all(proofs).await.into_iter().flatten().collect()
    }

    /// Has the revision of the storage compared with the caches, because it may have gone back: for example, an object was
    /// read with a version below its last known version.
    ///
    /// There is one request in ten seconds at most, and no cache is listed again if the storage has not gone back.
    pub fn suspect_rollback(&self) {
        self.inner.rollback_suspected.notify_one();
    }

    /// The watches that prepare the proofs of a takeover that is expected. A cache that has not synced has none: it is
    /// proven by its list.
    pub fn look_ahead(&self) -> LookAhead {
        let state = self.inner.state.lock();
        let client = &self.inner.options.client;
        let synced = state.informers.iter().filter(|entry| entry.cache.has_synced());
        let ahead = synced.map(|entry| (entry.id, Ahead::new(client.clone(), Arc::clone(&entry.cache))));
        LookAhead { caches: ahead.collect() }
    }

    /// The caches of resources that are served that have not synced.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Arc<dyn Cache>> {
        let state = self.inner.state.lock();
        let is_awaited = |entry: &&Entry| !entry.cache.has_synced() && entry.shared.availability().is_discovered();
        state.informers.iter().filter(is_awaited).map(|entry| Arc::clone(&entry.cache)).collect()
    }

    /// The cache of each informer, in the order of creation.
    #[must_use]
    pub fn all_caches(&self) -> Vec<Arc<dyn Cache>> {
        self.inner.state.lock().informers.iter().map(|entry| Arc::clone(&entry.cache)).collect()
    }

    /// Returns `true` if the response to the last list or watch of an informer of that resource was 404.
    #[must_use]
    pub fn is_not_found(&self, resource: &Resource) -> bool {
        let state = self.inner.state.lock();
        let mut of_resource = state.informers.iter().filter(|entry| entry.resource == *resource);
        of_resource.any(|entry| entry.shared.availability().is_not_found())
    }

    /// The status of each informer, in the order of creation.
    #[must_use]
    pub fn status(&self) -> Vec<InformerStatus> {
        let state = self.inner.state.lock();
        let statuses = state.informers.iter().map(|entry| {
            let mut status = entry.cache.status();
            status.also_watched_as = state.others(entry);
            status
        });
        statuses.collect()
    }

    /// As [`status`](Self::status), with the [bytes](Cache::bytes) of each cache. Reads every object.
    #[must_use]
    pub fn status_with_bytes(&self) -> Vec<(InformerStatus, usize)> {
        let caches: Vec<_> = {
            let state = self.inner.state.lock();
            state.informers.iter().map(|entry| (Arc::clone(&entry.cache), state.others(entry))).collect()
        };
        let statuses = caches
            .into_iter()
            .map(|(cache, also_watched_as)| (InformerStatus { also_watched_as, ..cache.status() }, cache.bytes()));
        statuses.collect()
    }

    /// The caches of a resource, in the order of creation.
    #[must_use]
    pub fn caches(&self, resource: &Resource) -> Vec<Arc<dyn Cache>> {
        let state = self.inner.state.lock();
        let informers = state.informers.iter().filter(|entry| entry.resource == *resource);
        informers.map(|entry| Arc::clone(&entry.cache)).collect()
    }
}

impl Inner {
    /// Counts one more user of an informer, and creates the informer if there is none.
    fn use_informer<V: View>(&self, resource: Resource, list_options: ListOptions) -> (u64, Arc<SharedInformer<V>>) {
        let state = &mut *self.state.lock();
        let known = state.informers.iter_mut().find(|entry| {
            entry.view == TypeId::of::<V>() && entry.resource == resource && entry.list_options == list_options
        });
        if let Some(entry) = known {
            entry.users += 1;
            let shared = Arc::clone(&entry.shared).into_any().downcast();
            return (entry.id, shared.expect("an entry must hold what its type says"));
        }
        let FactoryOptions { client, connection, metrics, interner, needs, moments, .. } = &self.options;
        let decode_context = Arc::new(DecodeContext::new::<V>(Arc::clone(interner), needs));
        let metrics = metrics(&resource);
        let suspicions = Arc::clone(&self.rollback_suspected);
        let (of_resource, options) = (resource.clone(), list_options.clone());
        let shared =
            SharedInformer::<V>::new(of_resource, options, decode_context, metrics, (moments.clone(), suspicions));
        let shared = Arc::new(shared);
        let store = Box::new(ViewStore::new(Arc::clone(&shared)));
        let (client, connection, seed) = (client.clone(), connection.clone(), state.seeds.u64(..));
        let task = reflector::run(Arc::clone(&shared.state), store, client, connection, seed).boxed();
        let id = state.next_id;
        state.next_id += 1;
        state.informers.push(Entry {
            id,
            resource,
            list_options,
            view: TypeId::of::<V>(),
            view_name: std::any::type_name::<V>(),
            shared: Arc::clone(&shared) as Arc<dyn AnyView>,
            cache: Arc::clone(&shared) as Arc<dyn Cache>,
            users: 1,
            task: Task::NotStarted(task),
        });
        state.start_pending();
        (id, shared)
    }
}

impl Inner {
    /// Counts one more user of an informer that holds the metadata of these objects.
    fn use_metadata(&self, resource: Resource, list_options: &ListOptions) -> (u64, Arc<dyn MetadataSource>) {
        let known = {
            let state = &mut *self.state.lock();
            let of_resource = state.informers.iter_mut().filter(|entry| entry.resource == resource);
            // The narrowest that will do is the same; of wider ones any will.
            let known = of_resource
                .filter(|entry| entry.list_options.include(list_options))
                .max_by_key(|entry| entry.list_options == *list_options);
            known.map(|entry| {
                entry.users += 1;
                (entry.id, Arc::clone(&entry.shared).into_metadata())
            })
        };
        known.unwrap_or_else(|| {
            let (id, shared) = self.use_informer::<PartialObjectMeta>(resource, list_options.clone());
            (id, shared as Arc<dyn MetadataSource>)
        })
    }
}

impl Caches for Inner {
    fn known(&self) -> Option<Known> {
        let state = self.state.lock();
        // The resources of the core group are in one storage, apart from events. Other groups may have another storage,
        // and then only the same resource can be compared.
        let is_core = |entry: &&Entry| entry.resource.group.is_empty() && entry.resource.plural != "events";
        let first = state.informers.iter().find(is_core).or_else(|| state.informers.first())?;
        let same = state.informers.iter().filter(|entry| is_core(entry) || entry.resource == first.resource);
        let same = same.filter(|entry| is_core(entry) == is_core(&first));
        let versions = same.map(|entry| entry.cache.last_sync_resource_version()).collect();
        Some(Known { resource: first.resource.clone(), list_options: first.list_options.clone(), versions })
    }

    fn relist(&self, revision: &ResourceVersion) -> usize {
        let state = self.state.lock();
        let is_ahead = |entry: &&Entry| rollback::is_ahead(&entry.cache.last_sync_resource_version(), revision);
        state.informers.iter().filter(is_ahead).inspect(|entry| entry.shared.must_relist()).count()
    }
}

/// Ends one use of an informer, and stops it when that was the last.
fn end_use(factory: &Weak<Inner>, id: u64) {
    let Some(factory) = factory.upgrade() else { return };
    let unused = {
        let state = &mut *factory.state.lock();
        // Without an entry the informer has been removed already.
        let Some(at) = state.informers.iter().position(|entry| entry.id == id) else { return };
        let entry = &mut state.informers[at];
        entry.users -= 1;
        (entry.users == 0).then(|| state.informers.remove(at))
    };
    if let Some(entry) = unused {
        tracing::info!(v = 3, resource = %entry.resource, list_options = %entry.list_options, "Stopping informer because it has no user");
        entry.stop();
    }
}

impl Entry {
    /// Stops the informer. Call it without the lock of the factory: event handlers that are dropped may own a handle of
    /// it.
    fn stop(self) {
        self.shared.currency().stop();
        match self.task {
            Task::Started(handle) => handle.abort(),
            Task::NotStarted(_) => {}
        }
    }
}

impl State {
    fn start_pending(&mut self) {
        let Run::Started(handle) = &self.run else { return };
        // Stopped informers have ended, and their results are not used.
        while self.tasks.try_join_next().is_some() {}
        for at in 0..self.informers.len() {
            let entry = &mut self.informers[at];
            if let Task::NotStarted(task) = &mut entry.task {
                let task = std::mem::replace(task, futures::future::pending().boxed());
                entry.task = Task::Started(self.tasks.spawn_on(task, handle));
                let others = self.others(&self.informers[at]);
                if !others.is_empty() {
                    let Entry { resource, list_options, view_name, .. } = &self.informers[at];
                    tracing::info!(
                        %resource, view = view_name, %list_options, ?others,
                        "Resource is watched more than once: each combination of view and list options has its own watch and cache"
                    );
                }
            }
        }
    }

    /// Other views and list options of the resource of an entry. Entries of other namespaces hold other objects.
    fn others(&self, of: &Entry) -> Vec<String> {
        let others = self.informers.iter().filter(|entry| {
            entry.resource == of.resource
                && (entry.view != of.view || entry.list_options != of.list_options)
                && !entry.list_options.are_of_another_namespace_than(&of.list_options)
        });
        others.map(|entry| format!("{} of {}", entry.view_name, entry.list_options)).collect()
    }
}
