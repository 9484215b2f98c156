//! The shared informer factory.

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

/// The options of a factory.
pub struct FactoryOptions {
    /// The client of lists and watches; it must not retry.
    pub client: Client,
    /// The seed of jitter.
    pub seed: u64,
    /// The metrics of each informer.
    pub metrics: Arc<MetricsOf>,
    /// The interner of the repeated strings of all views.
    pub interner: Arc<Interner>,
}

impl FactoryOptions {
    /// Options without metrics.
    #[must_use]
    pub fn new(client: Client, seed: u64) -> Self {
        Self { client, seed, metrics: Arc::new(|_| Arc::new(NoMetrics)), interner: Arc::default() }
    }
}

/// The shared informer factory: one informer for each resource, view and list options, and their tasks.
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

/// The stages of a factory; a later informer is started if the factory is.
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

    /// The same factory, which records the event handlers of informers that are created through this handle.
    #[must_use]
    pub fn with_registrations(&self, registrations: &HandlerRegistrations) -> Self {
        Self { inner: Arc::clone(&self.inner), registrations: Some(registrations.clone()) }
    }

    /// The informer of a resource that is known at compile time.
    #[must_use]
    pub fn informer<V: KnownView>(&self, list_options: ListOptions) -> Informer<V> {
        self.informer_for(V::RESOURCE, list_options)
    }

    /// The informer of any resource. The same resource, view and list options return the same informer.
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
        state.start_pending();
        informer.with_registrations(self.registrations.as_ref())
    }

    /// Starts all informers; later ones start when they are created. A second call does nothing.
    ///
    /// # Panics
    /// When called outside of a tokio runtime.
    pub fn start(&self) {
        let state = &mut *self.inner.state.lock();
        if matches!(state.run, Run::NotStarted) {
            state.run = Run::Started(Handle::current());
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

    /// Stops and removes the informers of a resource, as when its CRD is deleted. Without any it does nothing.
    ///
    /// Handles keep their cache as it is. The current step is finished. The next call for the resource creates a new
    /// informer.
    pub fn stop(&self, resource: &Resource) {
        let state = &mut *self.inner.state.lock();
        for entry in state.informers.extract_if(.., |entry| entry.resource == *resource) {
            match &entry.task {
                Task::Started(handle) => handle.abort(),
                Task::NotStarted(_) => {}
            }
        }
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

    /// The caches of a resource, in the order of creation.
    #[must_use]
    pub fn caches(&self, resource: &Resource) -> Vec<Arc<dyn Cache>> {
        let state = self.inner.state.lock();
        let informers = state.informers.iter().filter(|entry| entry.resource == *resource);
        informers.map(|entry| Arc::clone(&entry.cache)).collect()
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
