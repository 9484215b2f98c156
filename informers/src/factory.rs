//! Who has which informer, and who runs them.

use std::any::{Any, TypeId};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kcm_api::{Interner, KnownView, Resource, View};
use kube::Client;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

use crate::cache::Cache;
use crate::informer::Informer;
use crate::list_options::ListOptions;
use crate::metrics::{MetricsOf, NoMetrics};
use crate::reflector;
use crate::registrations::HandlerRegistrations;
use crate::shared_informer::SharedInformer;
use crate::status::InformerStatus;

/// What a factory is made from.
pub struct FactoryOptions {
    /// Where to list and watch; must not retry by itself.
    pub client: Client,
    /// What jitter is drawn from.
    pub seed: u64,
    /// What each informer reports to.
    pub metrics: Arc<MetricsOf>,
    /// Where repeated strings of all views are kept once.
    pub interner: Arc<Interner>,
}

impl FactoryOptions {
    /// Options that count nothing.
    #[must_use]
    pub fn new(client: Client, seed: u64) -> Self {
        Self { client, seed, metrics: Arc::new(|_| Arc::new(NoMetrics)), interner: Arc::default() }
    }
}

/// Hands out informers, one for each resource, view and list options, and owns their tasks.
///
/// Cheap to clone; all clones are one factory.
#[derive(Clone)]
pub struct Factory {
    inner: Arc<Inner>,
    registrations: Option<HandlerRegistrations>,
}

struct Inner {
    options: FactoryOptions,
    state: Mutex<State>,
}

struct State {
    informers: Vec<Entry>,
    seeds: fastrand::Rng,
    run: Run,
    tasks: JoinSet<()>,
}

/// Ascending: an informer that is asked for later gets what its life stage demands.
enum Run {
    NotStarted,
    Started(Handle),
    ShutDown,
}

struct Entry {
    resource: Resource,
    list_options: ListOptions,
    view: TypeId,
    view_name: &'static str,
    /// An `Informer` of that view.
    informer: Box<dyn Any + Send + Sync>,
    cache: Arc<dyn Cache>,
    task: Task,
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
            seeds: fastrand::Rng::with_seed(options.seed),
            run: Run::NotStarted,
            tasks: JoinSet::new(),
        };
        Self { inner: Arc::new(Inner { options, state: Mutex::new(state) }), registrations: None }
    }

    /// The same factory, with the subscriptions to informers that are got through this handle noted.
    #[must_use]
    pub fn with_registrations(&self, subscriptions: &HandlerRegistrations) -> Self {
        Self { inner: Arc::clone(&self.inner), registrations: Some(subscriptions.clone()) }
    }

    /// The informer of a resource that is known when compiled.
    #[must_use]
    pub fn informer<V: KnownView>(&self, list_options: ListOptions) -> Informer<V> {
        self.informer_for(V::RESOURCE, list_options)
    }

    /// The informer of any resource. The same resource, view and list options give the same informer.
    #[must_use]
    pub fn informer_for<V: View>(&self, resource: Resource, list_options: ListOptions) -> Informer<V> {
        let state = &mut *self.inner.state.lock();
        let known = state.informers.iter().find(|entry| {
            entry.view == TypeId::of::<V>() && entry.resource == resource && entry.list_options == list_options
        });
        if let Some(entry) = known {
            let informer: &Informer<V> = entry.informer.downcast_ref().expect("an entry must hold what its type says");
            return informer.with_registrations(self.registrations.as_ref());
        }
        let FactoryOptions { client, metrics, interner, .. } = &self.inner.options;
        let shared = Arc::new(SharedInformer::<V>::new(
            resource.clone(),
            list_options.clone(),
            Arc::clone(interner),
            metrics(&resource),
        ));
        let informer = Informer::new(Arc::clone(&shared));
        let task = reflector::run(shared, client.clone(), state.seeds.u64(..)).boxed();
        state.informers.push(Entry {
            resource,
            list_options,
            view: TypeId::of::<V>(),
            view_name: std::any::type_name::<V>(),
            informer: Box::new(informer.clone()),
            cache: informer.cache(),
            task: Task::NotStarted(task),
        });
        state.start_those_that_wait();
        informer.with_registrations(self.registrations.as_ref())
    }

    /// Starts all informers; those asked for later start at once. A second call does nothing.
    ///
    /// # Panics
    /// When called outside of a tokio runtime.
    pub fn start(&self) {
        let state = &mut *self.inner.state.lock();
        if matches!(state.run, Run::NotStarted) {
            state.run = Run::Started(Handle::current());
            state.start_those_that_wait();
        }
    }

    /// Stops all informers, and returns when none runs any more. Nothing can be started again.
    pub async fn shut_down(&self) {
        let mut tasks = {
            let state = &mut *self.inner.state.lock();
            state.run = Run::ShutDown;
            std::mem::take(&mut state.tasks)
        };
        tasks.shutdown().await;
    }

    /// Stops and forgets the informers of a resource, as when its kind goes away. Without any it does nothing.
    ///
    /// Caches in other hands stay as they are. A step that is being taken is finished. Who asks for the resource again
    /// gets a new informer.
    pub fn stop(&self, resource: &Resource) {
        let state = &mut *self.inner.state.lock();
        for entry in state.informers.extract_if(.., |entry| entry.resource == *resource) {
            match &entry.task {
                Task::Started(handle) => handle.abort(),
                Task::NotStarted(_) => {}
            }
        }
    }

    /// How each informer is doing, in the order in which they were first asked for.
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

    /// The caches of a resource, in the order in which they were first asked for.
    #[must_use]
    pub fn caches(&self, resource: &Resource) -> Vec<Arc<dyn Cache>> {
        let state = self.inner.state.lock();
        let informers = state.informers.iter().filter(|entry| entry.resource == *resource);
        informers.map(|entry| Arc::clone(&entry.cache)).collect()
    }
}

impl State {
    fn start_those_that_wait(&mut self) {
        let Run::Started(handle) = &self.run else { return };
        // Those that were stopped have ended; nobody else asks for their outcome.
        while self.tasks.try_join_next().is_some() {}
        for at in 0..self.informers.len() {
            let entry = &mut self.informers[at];
            if let Task::NotStarted(task) = &mut entry.task {
                let task = std::mem::replace(task, futures::future::pending().boxed());
                entry.task = Task::Started(self.tasks.spawn_on(task, handle));
                let others = self.others(&self.informers[at]);
                if !others.is_empty() {
                    let Entry { resource, list_options, view_name, .. } = &self.informers[at];
                    tracing::warn!(
                        %resource, view = view_name, %list_options, ?others,
                        "Resource is watched more than once: another view or list options of it is another watch and cache"
                    );
                }
            }
        }
    }

    /// Other views and list options of the resource of an entry.
    fn others(&self, of: &Entry) -> Vec<String> {
        let others = self.informers.iter().filter(|entry| {
            entry.resource == of.resource && (entry.view != of.view || entry.list_options != of.list_options)
        });
        others.map(|entry| format!("{} of {}", entry.view_name, entry.list_options)).collect()
    }
}
