//! The informers of all resources whose objects may be deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{Meta, Resource, Uid};
use kcm_framework::discovery::{Discovery, ServedResource};
use kcm_framework::informers::{
    Cache, Factory, HandlerOptions, HandlerRegistration, ListOptions, MetadataInformer, Phase, Registrations,
};
use kcm_framework::metrics::Counter;
use kcm_framework::workqueue::Priority;
use parking_lot::Mutex;

use super::NAME;
use super::graph::Graph;
use super::settings::GroupResource;
use super::shared_graph::SharedGraph;

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
    /// `None` before the first discovery.
    running: Mutex<Option<BTreeMap<Resource, Monitor>>>,
}

struct Monitor {
    informer: MetadataInformer,
    /// The event handler that changes the graph.
    handler: HandlerRegistration,
    /// Ends the use of the informer when it is dropped.
    _registrations: Registrations,
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
    ) -> Self {
        Self { informers, discovery, ignored, graph, sync_errors, running: Mutex::default() }
    }

    /// Starts and stops informers as discovery changes, until discovery ends or this is dropped.
    ///
    /// At the end the informers and the graph go: while nobody takes objects from the queues, the graph must not enqueue
    /// any, and the next run finds all of them again.
    pub(super) async fn run(&self) {
        let _ended = EndOnDrop(self);
        let mut changes = self.discovery.changes();
        loop {
            self.sync();
            match tokio::time::timeout(SYNC_PATIENCE, changes.changed()).await {
                Ok(Ok(())) => continue,
                Ok(Err(_)) => return,
                Err(_) => self.check_sync(),
            }
            if changes.changed().await.is_err() {
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
            let monitors = running.get_or_insert_default();
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
        let handler = informer.add_event_handler(HandlerOptions::named(NAME), move |change, origin| {
            graph.observe(&shared, change, origin);
        });
        Monitor { informer, handler, _registrations: registrations }
    }

    fn check_sync(&self) {
        let unsynced = self.unsynced();
        if !unsynced.is_empty() {
            self.sync_errors.inc();
            tracing::warn!(
                resources = unsynced.join(", "),
                "Resources cannot be listed; objects that are deleted in the foreground or whose dependents are orphaned wait for them"
            );
        }
    }

    /// The cache of each informer, and whether the graph has its objects.
    fn caches(&self) -> Option<Vec<(Arc<dyn Cache>, bool)>> {
        let running = self.running.lock();
        Some(running.as_ref()?.values().map(|monitor| (monitor.informer.cache(), monitor.has_synced())).collect())
    }

    fn unsynced(&self) -> Vec<String> {
        let caches = self.caches().unwrap_or_default();
        caches.iter().filter(|(_, has_synced)| !has_synced).map(|(cache, _)| cache.resource().to_string()).collect()
    }

    fn end(&self) {
        let ended = self.running.lock().take();
        // Without the lock: informers may stop.
        drop(ended);
        self.graph.with(|graph| *graph = Graph::default());
    }

    /// Waits until each informer has synced or has failed, for [`SYNC_PATIENCE`] at most.
    ///
    /// Before that, an owner that an informer has not listed yet would cost a live read.
    pub(super) async fn listed(&self) {
        let is_listed =
            || self.caches().is_some_and(|caches| caches.iter().all(|(cache, synced)| *synced || has_failed(&**cache)));
        let listed = async {
            while !is_listed() {
                tokio::time::sleep(TICK).await;
            }
        };
        if tokio::time::timeout(SYNC_PATIENCE, listed).await.is_err() {
            tracing::info!(
                resources = self.unsynced().join(", "),
                "Not all resources are listed; going on without them"
            );
        }
    }

    /// Returns the reason why an object may have unknown dependents; `None` if all are known.
    ///
    /// Dependents of a namespaced object are in its namespace, so that cluster-scoped resources do not count.
    pub(super) fn unknown_dependents(&self, owner: &Uid, is_namespaced: bool) -> Option<String> {
        let Some(caches) = self.caches() else { return Some("no resource is listed yet".to_owned()) };
        let mut relevant = caches.iter().filter(|(cache, _)| cache.resource().namespaced || !is_namespaced);
        relevant.find_map(|(cache, has_synced)| may_hold_back(&**cache, *has_synced, owner))
    }
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

/// Returns the reason why a cache may lack a dependent of an object.
fn may_hold_back(cache: &dyn Cache, has_synced: bool, owner: &Uid) -> Option<String> {
    if !has_synced {
        return Some(format!("{} cannot be listed", cache.resource()));
    }
    let names = |meta: &Meta| meta.owner_references.iter().any(|reference| reference.uid == *owner);
    let undecodable = cache.undecodable_objects();
    let dependent = undecodable.iter().find(|object| object.meta.as_ref().is_none_or(names))?;
    Some(format!("{} {:?} cannot be decoded", cache.resource(), dependent.key))
}
