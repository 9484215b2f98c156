//! The informers of all resources whose objects may be deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_framework::discovery::{Discovery, ServedResource};
use kcm_framework::informers::{
    Cache, Factory, HandlerOptions, HandlerRegistration, ListOptions, MetadataInformer, Phase, Registrations,
    UndecodableObject,
};
use kcm_framework::metrics::{Counter, Gauges};
use kcm_framework::workqueue::Priority;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::NAME;
use super::graph::Graph;
use super::settings::GroupResource;
use super::shared_graph::SharedGraph;
use super::undecodable::{Followed, UndecodableObjects};
use super::unknown::Gap;

/// Time for which the first objects wait for the informers, and after which an informer that has not synced is an error.
pub(super) const SYNC_PATIENCE: Duration = Duration::from_secs(30);

/// Interval at which the state of the informers is read.
const TICK: Duration = Duration::from_millis(50);

/// The informers, one for each resource.
///
/// They are views over the caches of other controllers, if there are such caches.
pub(super) struct Monitors {
    informers: Factory,
    discovery: Discovery,
    ignored: Vec<GroupResource>,
    graph: SharedGraph,
    /// Counts discoveries without a resource, and resources that do not sync in time.
    sync_errors: Counter,
    /// The resources that cannot be listed.
    unsynced: Gauges<2>,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    /// `None` before the first discovery.
    monitors: Option<BTreeMap<Resource, Monitor>>,
    /// Time of the start; `None` while the loops do not run.
    started: Option<Instant>,
    /// The resources of the gauge.
    shown: BTreeSet<Resource>,
}

struct Monitor {
    /// Time at which discovery found the resource.
    found: Instant,
    informer: MetadataInformer,
    /// The event handler that changes the graph.
    handler: HandlerRegistration,
    undecodable: Followed,
    /// Ends the use of the informer when it is dropped.
    _registrations: Registrations,
}

/// The state of an informer.
struct Watched {
    cache: Arc<dyn Cache>,
    /// Time since discovery found the resource.
    since: Duration,
    /// Whether the graph has all objects of the cache.
    has_synced: bool,
    /// The undecodable objects that the graph does not have.
    unknown: Vec<Arc<UndecodableObject>>,
}

impl Monitor {
    /// Returns `true` if the graph has all objects of the cache.
    fn has_synced(&self) -> bool {
        self.informer.handler_has_synced(self.handler)
    }
}

/// Returns the resources to watch: each in the preferred version of its group, if its objects can be deleted, listed and
/// watched and are not ignored.
pub(super) fn monitored<'a>(
    preferred: impl Iterator<Item = &'a ServedResource>,
    ignored: &[GroupResource],
) -> BTreeSet<Resource> {
    let is_ignored = |resource: &Resource| {
        ignored.iter().any(|ignored| ignored.group == resource.group && ignored.resource == resource.plural)
    };
    let monitored =
        preferred.filter(|served| served.supports(&["delete", "list", "watch"]) && !is_ignored(&served.resource));
    monitored.map(|served| served.resource.clone()).collect()
}

impl Monitors {
    pub(super) fn new(
        informers: Factory,
        discovery: Discovery,
        ignored: Vec<GroupResource>,
        graph: SharedGraph,
        sync_errors: Counter,
        unsynced: Gauges<2>,
    ) -> Self {
        Self { informers, discovery, ignored, graph, sync_errors, unsynced, running: Mutex::default() }
    }

    /// Starts and stops informers as discovery changes, until discovery ends or this is dropped.
    ///
    /// At the end the informers and the graph go: while nobody takes objects from the queues, the graph must not enqueue
    /// any, and the next run finds all of them again.
    pub(super) async fn run(&self) {
        let _ended = EndOnDrop(self);
        self.running.lock().started = Some(Instant::now());
        let mut changes = self.discovery.changes();
        loop {
            self.sync();
            let mut is_first = true;
            let next = loop {
                match tokio::time::timeout(SYNC_PATIENCE, changes.changed()).await {
                    Ok(next) => break next,
                    Err(_) if self.check_sync(is_first) => is_first = false,
                    // All are listed, and no other resource comes without a change of discovery.
                    Err(_) => break changes.changed().await,
                }
            };
            if next.is_err() {
                return;
            }
        }
    }

    /// Starts informers of new resources and stops informers of resources that are not served any more.
    ///
    /// A group whose discovery fails keeps its resources, and an empty discovery changes nothing.
    fn sync(&self) {
        let resources = self.discovery.resources();
        let wanted = monitored(resources.preferred(), &self.ignored);
        if wanted.is_empty() {
            tracing::debug!("Discovery found no resource; the informers stay as they are");
            self.sync_errors.inc();
            return;
        }
        let ended: Vec<(Resource, Monitor)> = {
            let mut running = self.running.lock();
            let monitors = running.monitors.get_or_insert_default();
            let gone: Vec<Resource> = monitors.keys().filter(|resource| !wanted.contains(resource)).cloned().collect();
            let ended = gone.iter().filter_map(|resource| monitors.remove_entry(resource)).collect();
            for resource in wanted {
                monitors.entry(resource).or_insert_with_key(|resource| self.start(resource));
            }
            ended
        };
        for (resource, monitor) in ended {
            // Without the lock: its informer may stop. No event of it comes after that.
            drop(monitor);
            self.graph.change(Priority::Live, |graph| graph.forget(&resource));
        }
    }

    fn start(&self, resource: &Resource) -> Monitor {
        let registrations = Registrations::new();
        let informers = self.informers.with_registrations(&registrations);
        let informer = informers.metadata_informer(resource.clone(), ListOptions::default());
        let (graph, shared) = (self.graph.clone(), Arc::new(resource.clone()));
        let (of_handler, shown) = (graph.clone(), Arc::clone(&shared));
        let handler = informer.add_event_handler(HandlerOptions::named(NAME), move |change, origin| {
            of_handler.observe(&shown, change, origin);
        });
        let undecodable = UndecodableObjects::follow(&shared, &informer, &graph);
        Monitor { found: Instant::now(), informer, handler, undecodable, _registrations: registrations }
    }

    /// Shows the resources that cannot be listed; returns `true` if there are any. They are logged and counted once after
    /// each change of discovery.
    fn check_sync(&self, is_first: bool) -> bool {
        let unsynced: BTreeSet<Resource> = self.unsynced().into_iter().collect();
        if is_first && !unsynced.is_empty() {
            self.sync_errors.inc();
            tracing::warn!(
                resources = shown(&unsynced),
                "Resources cannot be listed; objects whose dependents are orphaned wait for them"
            );
        }
        self.show_unsynced(&unsynced);
        !unsynced.is_empty()
    }

    fn show_unsynced(&self, unsynced: &BTreeSet<Resource>) {
        let shown = std::mem::replace(&mut self.running.lock().shown, unsynced.clone());
        for resource in shown.difference(unsynced) {
            self.unsynced.remove(labels_of(resource));
        }
        for resource in unsynced {
            self.unsynced.of(labels_of(resource)).set(1);
        }
    }

    /// The state of each informer; `None` before the first discovery.
    fn watched(&self) -> Option<Vec<Watched>> {
        let running = self.running.lock();
        let state = |monitor: &Monitor| Watched {
            cache: monitor.informer.cache(),
            since: monitor.found.elapsed(),
            has_synced: monitor.has_synced(),
            unknown: monitor.undecodable.unknown(),
        };
        Some(running.monitors.as_ref()?.values().map(state).collect())
    }

    fn unsynced(&self) -> Vec<Resource> {
        let watched = self.watched().unwrap_or_default();
        watched.iter().filter(|it| !it.has_synced).map(|it| it.cache.resource().clone()).collect()
    }

    fn end(&self) {
        let ended = std::mem::take(&mut *self.running.lock());
        for resource in &ended.shown {
            self.unsynced.remove(labels_of(resource));
        }
        // Without the lock: informers may stop.
        drop(ended);
        self.graph.with(|graph| *graph = Graph::default());
    }

    /// Waits until each informer has synced or has failed, for [`SYNC_PATIENCE`] at most.
    ///
    /// Before that, an owner that an informer has not listed yet would cost a live read.
    pub(super) async fn listed(&self) {
        let is_listed =
            || self.watched().is_some_and(|watched| watched.iter().all(|it| it.has_synced || has_failed(&*it.cache)));
        let listed = async {
            while !is_listed() {
                tokio::time::sleep(TICK).await;
            }
        };
        if tokio::time::timeout(SYNC_PATIENCE, listed).await.is_err() {
            tracing::info!(resources = shown(&self.unsynced()), "Not all resources are listed; going on without them");
        }
    }

    /// Returns the parts of the cluster whose objects the graph does not have.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let Some(watched) = self.watched() else { return vec![Gap::Undiscovered] };
        let since = self.running.lock().started.map_or(Duration::ZERO, |started| started.elapsed());
        let group = |group_version: &str| Gap::Group { group_version: group_version.to_owned(), since };
        let resources = self.discovery.resources();
        let served = resources.iter().map(|served| &served.resource).collect::<Vec<_>>();
        let mut gaps: Vec<Gap> = never_discovered(served.iter().copied(), resources.broken()).map(group).collect();
        for Watched { cache, since, has_synced, unknown } in watched {
            let resource = cache.resource();
            if !has_synced {
                gaps.push(Gap::Resource { resource: resource.clone(), since });
            }
            gaps.extend(unknown.into_iter().map(|object| Gap::Object {
                resource: resource.clone(),
                key: object.key.clone(),
                owners: object.meta.as_ref().map(|meta| meta.owner_references.to_vec()),
            }));
        }
        gaps
    }
}

/// Returns the versions of groups whose discovery fails and of which no resource is known, as `group/version`.
pub(super) fn never_discovered<'a>(
    known: impl Iterator<Item = &'a Resource> + Clone,
    broken: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a str> {
    let is_known = move |group_version: &str| {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        known.clone().any(|resource| resource.group == group && resource.version == version)
    };
    broken.keys().map(String::as_str).filter(move |group_version| !is_known(group_version))
}

fn labels_of(resource: &Resource) -> [String; 2] {
    [resource.group.to_string(), resource.plural.to_string()]
}

fn shown<'a>(resources: impl IntoIterator<Item = &'a Resource>) -> String {
    resources.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Ends the monitors when it is dropped.
struct EndOnDrop<'a>(&'a Monitors);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Returns `true` if the first list of a cache has failed.
fn has_failed(cache: &dyn Cache) -> bool {
    !cache.has_synced()
        && match cache.status().phase {
            Phase::BackingOff | Phase::NotServed | Phase::Stopped => true,
            Phase::NotStarted | Phase::Listing | Phase::Watching => false,
        }
}
