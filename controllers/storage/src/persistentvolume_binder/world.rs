//! The caches and the registries that both loops read.

use std::sync::Arc;

use kcm_framework::api::views::{AccessModes, PersistentVolume, PersistentVolumeClaim, Pod, PodDeletion, PodVolumes};
use kcm_framework::api::{InvalidSelector, ObjectKey, PartReader};
use kcm_framework::informers::{Index, Informer};
use kcm_framework::{Session, workqueue};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::available::AvailableVolumes;
use super::claim_plan::Surroundings;
use super::events::BinderEvent;
use super::matching::{self, Volumes};
use super::operations::BackOffs;
use super::reservations::Reservations;
use super::view::StorageClass;
use super::vocabulary::{claim_key, volume_key};
use super::waiting::{LastEvents, WaitingClaims};

/// Number of the smallest volumes that are tried before all others are.
const FIRST_CANDIDATES: usize = 16;

/// Registries that event handlers and reconciles share.
#[derive(Debug, Default)]
pub(super) struct Registries {
    pub(super) available: Mutex<AvailableVolumes>,
    pub(super) waiting: Mutex<WaitingClaims>,
    pub(super) events: LastEvents,
    pub(super) back_offs: BackOffs,
}

/// The caches of a loop with their indexes.
pub(super) struct World {
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) volumes_of_claim: Index<PersistentVolume, ObjectKey>,
    pub(super) classes: Informer<StorageClass>,
    pub(super) pods: PodsOfClaims,
    pub(super) reservations: Reservations,
    pub(super) registries: Arc<Registries>,
}

/// The Pods that use claims.
#[derive(Clone)]
pub(super) struct PodsOfClaims {
    by_claim: Index<Pod, ObjectKey>,
    deletions: PartReader<PodDeletion>,
}

impl PodsOfClaims {
    pub(super) fn new(
        pods: &Informer<Pod>,
        volumes: PartReader<PodVolumes>,
        deletions: PartReader<PodDeletion>,
    ) -> Self {
        Self { by_claim: pods.index("claim", move |pod| claims_of(pod, volumes)), deletions }
    }

    /// Returns the Pods that use a claim and have not finished.
    pub(super) fn active(&self, claim: &ObjectKey) -> Vec<Arc<Pod>> {
        let mut pods = self.by_claim.get(claim);
        pods.retain(|pod| !pod.is_terminated(self.deletions.of(pod)));
        pods
    }
}

/// Returns the keys of the claims that a Pod uses.
pub(super) fn claims_of(pod: &Pod, volumes: PartReader<PodVolumes>) -> Vec<ObjectKey> {
    let key = &pod.metadata.key;
    let namespace = key.namespace().unwrap_or_default();
    let name = |volume: &kcm_framework::api::views::PodVolume| match &volume.claim_name {
        Some(name) => (**name).to_owned(),
        None => format!("{}-{}", key.name(), volume.name),
    };
    volumes.of(pod).volumes.iter().map(|volume| ObjectKey::namespaced(namespace.to_owned(), name(volume))).collect()
}

/// Returns the index of volumes by the claim that they reference.
pub(super) fn volumes_of_claim(volumes: &Informer<PersistentVolume>) -> Index<PersistentVolume, ObjectKey> {
    volumes.index("claim", |volume: &PersistentVolume| volume.claim.as_ref().map(claim_key))
}

impl World {
    /// Records an event about a claim, if it is not the last one of the claim.
    pub(super) fn record_claim(&self, claim: &PersistentVolumeClaim, event: &BinderEvent, session: &Session) {
        if self.registries.events.is_due(&claim.metadata.key, event, Instant::now()) {
            session.record(claim, event);
        }
    }

    /// Records an event about a volume, if it is not the last one of the volume.
    pub(super) fn record_volume(&self, volume: &PersistentVolume, event: &BinderEvent, session: &Session) {
        if self.registries.events.is_due(&volume.metadata.key, event, Instant::now()) {
            session.record(volume, event);
        }
    }

    /// Returns the default class: of several the youngest, and then the first by name.
    pub(super) fn default_class_name(&self) -> Option<String> {
        let mut defaults = self.classes.list();
        defaults.retain(|class| class.is_default());
        let first = defaults.into_iter().min_by_key(|class| {
            let created = class.metadata.creation_timestamp.unwrap_or_default();
            (std::cmp::Reverse(created), class.metadata.key.name().to_owned())
        });
        first.map(|class| class.metadata.key.name().to_owned())
    }
}

impl Volumes for World {
    fn referencing(&self, claim: &PersistentVolumeClaim) -> Vec<Arc<PersistentVolume>> {
        self.volumes_of_claim.get(&claim.metadata.key)
    }

    fn available(
        &self,
        modes: AccessModes,
        claim: &PersistentVolumeClaim,
        fits: &dyn Fn(&PersistentVolume) -> bool,
    ) -> Option<Arc<PersistentVolume>> {
        // The cache is not read under the lock of the registry, which the event handlers of the cache take.
        let mut limit = FIRST_CANDIDATES;
        loop {
            let names: Vec<Box<str>> = {
                let available = self.registries.available.lock();
                available.candidates(modes, claim).take(limit).map(Into::into).collect()
            };
            let found =
                names.iter().skip(if limit == FIRST_CANDIDATES { 0 } else { FIRST_CANDIDATES }).find_map(|name| {
                    let volume = self.volumes.get(&volume_key(name))?;
                    (fits(&volume) && self.reservations.is_free(&volume, &claim.metadata.key)).then_some(volume)
                });
            if found.is_some() || names.len() < limit {
                return found;
            }
            limit = usize::MAX;
        }
    }
}

impl Surroundings for World {
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
        self.volumes.get(&volume_key(name))
    }

    fn best_match(
        &self,
        claim: &PersistentVolumeClaim,
        is_delayed: bool,
    ) -> Result<Option<Arc<PersistentVolume>>, InvalidSelector> {
        matching::best_match(claim, is_delayed, self)
    }

    fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
        self.classes.get(&ObjectKey::cluster_scoped(name))
    }

    fn default_class(&self) -> Option<String> {
        self.default_class_name()
    }

    fn unscheduled_pods(&self, claim: &PersistentVolumeClaim) -> Vec<String> {
        let pods = self.pods.active(&claim.metadata.key);
        pods.iter().filter(|pod| pod.node_name.is_none()).map(|pod| pod.metadata.key.name().to_owned()).collect()
    }
}

/// A queue of claims or of volumes.
pub(super) type Keys = workqueue::Queue<ObjectKey>;
