//! The kinds whose objects quotas count, each with its informer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kcm_framework::api::views::{DeviceClass, PersistentVolumeClaim, Pod, ResourceClaim, Service};
use kcm_framework::api::{InternedStr, KnownView, ObjectKey, Resource, ResourceList};
use kcm_framework::discovery::{Discovery, ServedResource};
use kcm_framework::informers::{
    Cache, Change, Factory, HandlerOptions, HandlerRegistration, HookRegistration, Informer, ListOptions,
    MetadataInformer, Phase, Registrations,
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::NAME;
use super::evaluator::pods::CountedPod;
use super::evaluator::{Evaluator, ObjectCount, services, volume_claims};
use super::observe::{Content, Observed};
use super::replenish::Quotas;

/// How long a quota waits for a kind that has just been found.
pub(super) const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// Resources that have objects in name only, and events, which no quota has ever counted.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];

/// The resources whose objects quotas can count: each in the version that its group prefers, if its objects are in a
/// namespace and can be created, listed, watched and deleted.
pub(super) fn quotable<'a>(preferred: impl Iterator<Item = &'a ServedResource>) -> BTreeMap<Evaluator, Resource> {
    let is_ignored = |resource: &Resource| {
        IGNORED.iter().any(|(group, plural)| *group == resource.group && *plural == resource.plural)
    };
    let quotable = preferred.filter(|served| {
        served.resource.namespaced
            && served.supports(&["create", "list", "watch", "delete"])
            && !is_ignored(&served.resource)
    });
    quotable.map(|served| (evaluator_of(&served.resource), served.resource.clone())).collect()
}

/// Kinds with an evaluator of their own in another version than that of their view are counted as all others.
fn evaluator_of(resource: &Resource) -> Evaluator {
    let known = [Pod::RESOURCE, Service::RESOURCE, PersistentVolumeClaim::RESOURCE, ResourceClaim::RESOURCE];
    match known.iter().position(|known| known == resource) {
        Some(at) => Evaluator::KNOWN[at].clone(),
        None => Evaluator::Objects(ObjectCount::of(resource)),
    }
}

/// The kinds whose objects quotas count.
///
/// Each syncs by itself: a quota waits for the kinds that its constraints count, for [`LIST_PATIENCE`] at most, and for no
/// others.
pub(super) struct Kinds {
    informers: Factory,
    discovery: Discovery,
    quotas: Arc<Quotas>,
    running: Mutex<BTreeMap<Evaluator, Kind>>,
    classes: Mutex<Option<Arc<dyn Cache>>>,
    /// Set when discovery has been applied for the first time.
    started: watch::Sender<bool>,
}

struct Kind {
    resource: Resource,
    objects: Objects,
    cache: Arc<dyn Cache>,
    since: Instant,
    /// Ends the use of the informer when it is dropped.
    _registrations: Registrations,
    _undecodable: HookRegistration,
}

impl Kind {
    /// Returns `true` if all objects of the kind are known.
    fn has_synced(&self) -> bool {
        match &self.objects {
            Objects::Counted(counted) => counted.informer.handler_has_synced(counted.handler),
            Objects::Pods(_) | Objects::Services(_) | Objects::VolumeClaims(_) | Objects::ResourceClaims(_) => {
                self.cache.has_synced()
            }
        }
    }

    /// Waits until all objects of the kind are known.
    fn synced(&self) -> BoxFuture<'static, ()> {
        match &self.objects {
            Objects::Counted(counted) => counted.informer.wait_handler_synced(counted.handler),
            Objects::Pods(_) | Objects::Services(_) | Objects::VolumeClaims(_) | Objects::ResourceClaims(_) => {
                Arc::clone(&self.cache).wait_synced()
            }
        }
    }
}

/// Objects that an event handler counts.
struct Counted {
    counts: Counts,
    informer: MetadataInformer,
    handler: HandlerRegistration,
}

enum Objects {
    Pods(Informer<Pod>),
    Services(Informer<Service>),
    VolumeClaims(Informer<PersistentVolumeClaim>),
    ResourceClaims(Informer<ResourceClaim>),
    Counted(Counted),
}

/// How many objects each namespace has.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<InternedStr, usize>>>);

impl Counts {
    fn add(&self, namespace: &str) {
        *self.0.lock().entry(namespace.into()).or_default() += 1;
    }

    fn remove(&self, namespace: &str) {
        let mut counts = self.0.lock();
        let left = counts.get_mut(namespace).map(|count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            counts.remove(namespace);
        }
    }

    fn of(&self, namespace: &str) -> usize {
        self.0.lock().get(namespace).copied().unwrap_or(0)
    }
}

impl Kinds {
    pub(super) fn new(informers: Factory, discovery: Discovery, quotas: Arc<Quotas>) -> Self {
        Self {
            informers,
            discovery,
            quotas,
            running: Mutex::default(),
            classes: Mutex::default(),
            started: watch::Sender::new(false),
        }
    }

    /// Starts the informers of views of those kinds that are served, so that no other controller reads their metadata a
    /// second time.
    pub(super) fn start_known(&self) {
        let resources = self.discovery.resources();
        let mut wanted = quotable(resources.preferred());
        wanted.retain(|evaluator, _| Evaluator::KNOWN.contains(evaluator));
        self.start_all(wanted);
        self.start_classes();
    }

    /// Keeps the informers in line with discovery, and enqueues the quotas of each kind that has synced, until discovery
    /// ends or this is dropped.
    pub(super) async fn run(&self) {
        self.quotas.runs.store(true, Ordering::Release);
        let _ended = EndOnDrop(self);
        let mut changes = self.discovery.changes();
        // The kinds whose quotas have been enqueued.
        let mut synced = BTreeSet::new();
        loop {
            self.sync();
            self.started.send_replace(true);
            let kinds = self.syncs();
            synced.retain(|evaluator| kinds.iter().any(|(known, _)| known == evaluator));
            let unsynced = kinds.into_iter().filter(|(evaluator, _)| !synced.contains(evaluator));
            let mut syncing: FuturesUnordered<_> = unsynced
                .map(async |(evaluator, sync)| {
                    sync.await;
                    evaluator
                })
                .collect();
            loop {
                tokio::select! {
                    biased;
                    result = changes.changed() => match result {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                    Some(evaluator) = syncing.next() => {
                        self.quotas.enqueue_all_of(&evaluator);
                        synced.insert(evaluator);
                    }
                }
            }
        }
    }

    /// Waits until the kinds that discovery has found are known.
    pub(super) async fn started(&self) {
        let mut started = self.started.subscribe();
        // The sender lives as long as this.
        let _known = started.wait_for(|started| *started).await;
    }

    /// A group whose discovery fails keeps its kinds, and an empty discovery changes nothing.
    fn sync(&self) {
        let resources = self.discovery.resources();
        let wanted = quotable(resources.preferred());
        if wanted.is_empty() {
            tracing::debug!("Discovery found no resource; the informers stay as they are");
            return;
        }
        let ended: Vec<Kind> = {
            let mut running = self.running.lock();
            let gone: Vec<Evaluator> = running
                .iter()
                .filter(|(evaluator, kind)| wanted.get(evaluator) != Some(&kind.resource))
                .map(|(evaluator, _)| evaluator.clone())
                .collect();
            gone.iter().filter_map(|evaluator| running.remove(evaluator)).collect()
        };
        // Without the lock: their informers may stop.
        drop(ended);
        self.start_all(wanted);
        self.start_classes();
    }

    fn start_all(&self, wanted: BTreeMap<Evaluator, Resource>) {
        for (evaluator, resource) in wanted {
            if !self.running.lock().contains_key(&evaluator) {
                // Without the lock: event handlers are notified of what there is already.
                let kind = self.start(&evaluator, resource);
                self.running.lock().insert(evaluator, kind);
            }
        }
    }

    fn start_classes(&self) {
        let mut classes = self.classes.lock();
        let is_wanted = self.quotas.gates.dra_extended_resource && self.discovery.is_available(&DeviceClass::RESOURCE);
        if is_wanted && classes.is_none() {
            let informer = self.informers.informer::<DeviceClass>(ListOptions::default());
            *classes = Some(informer.cache());
            *self.quotas.classes.lock() = Some(informer);
        }
    }

    fn start(&self, evaluator: &Evaluator, resource: Resource) -> Kind {
        let registrations = Registrations::new();
        let informers = self.informers.with_registrations(&registrations);
        let quotas = &self.quotas;
        let (objects, cache) = match evaluator {
            Evaluator::Pods => {
                let (gates, reader, clock) = (quotas.gates, quotas.pods, Arc::clone(quotas));
                let informer = self.start_view(&informers, evaluator, move |old: &Pod, new| {
                    let counted = |pod| CountedPod { pod, fields: &reader.of(pod).fields };
                    counted(new).replenishes(&counted(old), gates, clock.now())
                });
                (Objects::Pods(informer.clone()), informer.cache())
            }
            Evaluator::Services => {
                let informer = self.start_view(&informers, evaluator, services::replenishes);
                (Objects::Services(informer.clone()), informer.cache())
            }
            Evaluator::VolumeClaims => {
                let gates = quotas.gates;
                let replenishes = move |old: &_, new: &_| volume_claims::replenishes(old, new, gates);
                let informer = self.start_view(&informers, evaluator, replenishes);
                (Objects::VolumeClaims(informer.clone()), informer.cache())
            }
            Evaluator::ResourceClaims => {
                let informer = self.start_view(&informers, evaluator, |_: &ResourceClaim, _| false);
                (Objects::ResourceClaims(informer.clone()), informer.cache())
            }
            Evaluator::Objects(_) => {
                let informer = informers.metadata_informer(resource.clone(), ListOptions::default());
                let cache = informer.cache();
                (Objects::Counted(self.count(informer, evaluator)), cache)
            }
        };
        let undecodable = self.replenish_when_decodable(&*cache, evaluator);
        let since = Instant::now();
        Kind { resource, objects, cache, since, _registrations: registrations, _undecodable: undecodable }
    }

    /// Replenishes quotas when an object that cannot be decoded changes: its deletion is no event if it was never in the
    /// cache.
    fn replenish_when_decodable(&self, cache: &dyn Cache, evaluator: &Evaluator) -> HookRegistration {
        let (quotas, evaluator) = (Arc::clone(&self.quotas), evaluator.clone());
        cache.on_progress(Box::new(move |progress| {
            for object in progress.undecodable_changed {
                quotas.replenish(&evaluator, object.namespace().unwrap_or_default());
            }
        }))
    }

    /// Starts the informer of a view; deletions replenish quotas, and so do updates for which `replenishes` holds.
    fn start_view<V: KnownView>(
        &self,
        informers: &Factory,
        evaluator: &Evaluator,
        replenishes: impl Fn(&V, &V) -> bool + Send + 'static,
    ) -> Informer<V> {
        let informer = informers.informer::<V>(ListOptions::default());
        let (quotas, evaluator) = (Arc::clone(&self.quotas), evaluator.clone());
        informer.add_event_handler(options(), move |change: &Change<V>, _| {
            let frees = match change {
                // An object that cannot be decoded still counts.
                Change::Added(_) | Change::Undecodable { .. } => false,
                Change::Updated { old, new } => replenishes(old, new),
                Change::Deleted { .. } => true,
            };
            if frees {
                quotas.replenish(&evaluator, change.key().namespace().unwrap_or_default());
            }
        });
        informer
    }

    /// Counts the objects of an informer, by namespace; deletions replenish quotas.
    fn count(&self, informer: MetadataInformer, evaluator: &Evaluator) -> Counted {
        let counts = Counts::default();
        let (quotas, evaluator, counted) = (Arc::clone(&self.quotas), evaluator.clone(), counts.clone());
        // Objects that cannot be decoded any more are counted from their cache.
        let mut undecodable: BTreeSet<ObjectKey> = BTreeSet::new();
        let handler = informer.add_event_handler(options(), move |change, _| {
            let namespace = change.key().namespace().unwrap_or_default();
            match change {
                Change::Added(_) => {
                    undecodable.remove(change.key());
                    counted.add(namespace);
                }
                Change::Updated { .. } => {}
                Change::Undecodable { .. } => {
                    undecodable.insert(change.key().clone());
                    counted.remove(namespace);
                }
                Change::Deleted { .. } => {
                    if !undecodable.remove(change.key()) {
                        counted.remove(namespace);
                    }
                    quotas.replenish(&evaluator, namespace);
                }
            }
        });
        Counted { counts, informer, handler }
    }

    /// The sync of each kind, and of device classes, which count as resource claims.
    fn syncs(&self) -> Vec<(Evaluator, BoxFuture<'static, ()>)> {
        let running = self.running.lock();
        let syncs: Vec<_> = running.iter().map(|(evaluator, kind)| (evaluator.clone(), kind.synced())).collect();
        drop(running);
        let classes = self.classes.lock().clone();
        let classes = classes.map(|classes| (Evaluator::ResourceClaims, classes.wait_synced()));
        syncs.into_iter().chain(classes).collect()
    }

    /// Whether any evaluator counts for a constraint.
    pub(super) fn is_counted(&self, constraint: &str) -> bool {
        let classes = self.quotas.device_classes();
        let evaluates = |evaluator: &Evaluator| evaluator.evaluates(constraint, &classes, self.quotas.gates);
        Evaluator::KNOWN.iter().any(evaluates) || self.running.lock().keys().any(evaluates)
    }

    /// What the caches show of the objects in a namespace that these limits count.
    pub(super) fn observe(&self, namespace: &str, hard: &ResourceList) -> Observed {
        let classes = self.quotas.device_classes();
        let running = self.running.lock();
        let is_needed =
            |evaluator: &Evaluator| hard.names().any(|name| evaluator.evaluates(name, &classes, self.quotas.gates));
        let of_others = running.keys().filter(|evaluator| !Evaluator::KNOWN.contains(evaluator));
        let needed = Evaluator::KNOWN.iter().chain(of_others).filter(|evaluator| is_needed(evaluator));
        let content = needed.map(|evaluator| (evaluator.clone(), self.content(&running, evaluator, namespace)));
        let content = content.collect();
        Observed { content, classes }
    }

    fn content(&self, running: &BTreeMap<Evaluator, Kind>, evaluator: &Evaluator, namespace: &str) -> Content {
        let Some(kind) = running.get(evaluator) else { return Content::Unavailable("they are not served") };
        if let Some(unknown) = unknown(&*kind.cache, kind.has_synced(), kind.since) {
            return unknown;
        }
        let cannot_be_decoded = kind.undecodable_in(namespace);
        if let Objects::Counted(counted) = &kind.objects {
            return Content::Objects(counted.counts.of(namespace) + cannot_be_decoded);
        }
        if cannot_be_decoded > 0 {
            return Content::Unavailable("one of them cannot be decoded");
        }
        match &kind.objects {
            Objects::Pods(pods) => Content::Pods(pods.in_namespace(namespace)),
            Objects::Services(services) => Content::Services(services.in_namespace(namespace)),
            Objects::VolumeClaims(claims) => Content::VolumeClaims(claims.in_namespace(namespace)),
            Objects::ResourceClaims(claims) => {
                self.resource_claims(running, claims.in_namespace(namespace), kind.since, namespace)
            }
            Objects::Counted(counted) => Content::Objects(counted.counts.of(namespace)),
        }
    }

    /// The content of resource claims, of which device classes and pods decide.
    fn resource_claims(
        &self,
        running: &BTreeMap<Evaluator, Kind>,
        claims: Vec<Arc<ResourceClaim>>,
        since: Instant,
        namespace: &str,
    ) -> Content {
        let classes = self.classes.lock().clone();
        if let Some(unknown) = classes.and_then(|classes| unknown(&*classes, classes.has_synced(), since)) {
            return unknown;
        }
        let pods = if claims.is_empty() { None } else { running.get(&Evaluator::Pods) };
        match pods.map(|kind| (unknown(&*kind.cache, kind.has_synced(), kind.since), &kind.objects)) {
            Some((Some(unknown), _)) => unknown,
            Some((None, Objects::Pods(pods))) => Content::ResourceClaims(claims, pods.in_namespace(namespace)),
            Some((None, _)) | None => Content::ResourceClaims(claims, Vec::new()),
        }
    }
}

impl Kind {
    fn undecodable_in(&self, namespace: &str) -> usize {
        let undecodable = self.cache.undecodable_objects();
        undecodable.iter().filter(|object| object.key.namespace() == Some(namespace)).count()
    }
}

/// Says that the loops of the controller do not run when it is dropped.
struct EndOnDrop<'a>(&'a Kinds);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.quotas.runs.store(false, Ordering::Release);
        self.0.started.send_replace(false);
    }
}

fn options() -> HandlerOptions {
    HandlerOptions::named(NAME)
}

/// Why the objects of a cache are not known; absent if they are.
fn unknown(cache: &dyn Cache, has_synced: bool, since: Instant) -> Option<Content> {
    if has_synced {
        return None;
    }
    let patience = LIST_PATIENCE.saturating_sub(since.elapsed());
    Some(match cache.status().phase {
        Phase::NotStarted | Phase::Listing | Phase::Watching if !patience.is_zero() => Content::Listing(patience),
        Phase::NotStarted | Phase::Listing | Phase::Watching => Content::Unavailable("their list takes long"),
        Phase::BackingOff => Content::Unavailable("they cannot be listed"),
        Phase::NotServed | Phase::Stopped => Content::Unavailable("they are not served"),
    })
}
