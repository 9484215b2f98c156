//! The order of a reconcile: the storage of each mounted volume, its use, then the events of new conflicts.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::{
    ClaimPhase, MountLabel, MountSource, PersistentVolume, PersistentVolumeClaim, Pod, PodSelinux, SelinuxMount,
};
use kcm_framework::api::{ObjectKey, PartReader, View};
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;

use super::conflict::{Conflict, SeveralLabels};
use super::event_mapping::claim_of;
use super::live_pod::LivePod;
use super::uses::{Use, UsedVolume, Uses};
use super::volume::{self, Storage};
use crate::shared::csi_driver::CsiDriver;

pub(super) struct Reconciler {
    pub(super) selinux: PartReader<PodSelinux>,
    pub(super) pods: Informer<Pod>,
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) drivers: Informer<CsiDriver>,
    pub(super) uses: Arc<Mutex<Uses>>,
}

#[async_trait]
impl ReconcileObject<Pod> for Reconciler {
    async fn reconcile(&self, pod: &Arc<Pod>, session: &Session) -> Result<(), ReconcileError> {
        if pod.is_finished() {
            session.explain(|| "forgets its volumes: the pod has finished");
            self.uses.lock().remove(&pod.metadata.key);
            return Ok(());
        }
        let selinux = self.selinux.of(pod);
        let live = if selinux.mounts.iter().any(|mount| mount.source == MountSource::Inline) {
            let Some(live) = LivePod::read(pod, session).await? else {
                session.explain(|| "does nothing: the pod was deleted");
                return Ok(());
            };
            Some(live)
        } else {
            None
        };
        for mount in &selinux.mounts {
            if let Some(storage) = self.storage(pod, mount, live.as_ref(), session) {
                self.sync(pod, selinux, mount, storage, session);
            }
        }
        Ok(())
    }

    async fn deleted(&self, key: &ObjectKey, _: &Session) -> Result<(), ReconcileError> {
        self.uses.lock().remove(key);
        Ok(())
    }
}

/// The storage behind a mounted volume.
enum Found {
    Storage(Storage),
    /// Storage that is never mounted with a label.
    Unlabelled,
}

impl Reconciler {
    /// Returns the storage of a volume. Returns `None` if it is not known yet; the change that makes it known enqueues
    /// the Pod.
    fn storage(&self, pod: &Pod, mount: &SelinuxMount, live: Option<&LivePod>, session: &Session) -> Option<Found> {
        let name = &mount.volume;
        let storage = match &mount.source {
            MountSource::Claim(_) | MountSource::Ephemeral => {
                let volume = self.persistent_volume(pod, mount, session)?;
                volume::persistent(&volume)
            }
            MountSource::Inline => match live.and_then(|live| live.volume(name)) {
                Some(json) => volume::of_pod(json, pod.metadata.key.namespace().unwrap_or_default()),
                None => Ok(None),
            },
            MountSource::Other => Ok(None),
        };
        match storage {
            Ok(storage) => Some(storage.map_or(Found::Unlabelled, Found::Storage)),
            Err(error) => {
                session.explain(|| format!("skips the volume {name}: {error}"));
                tracing::warn!(pod = %pod.metadata.key, volume = %name, %error, "Cannot translate a volume; skipping it");
                None
            }
        }
    }

    fn persistent_volume(&self, pod: &Pod, mount: &SelinuxMount, session: &Session) -> Option<Arc<PersistentVolume>> {
        let key = claim_of(&pod.metadata.key, &mount.volume, &mount.source)?;
        let claim = find(&self.claims, &key, session)?;
        let owner = &pod.metadata.uid;
        if mount.source == MountSource::Ephemeral && !claim.metadata.is_controlled_by(owner) {
            session.explain(|| format!("skips the claim {key}, which the pod does not control"));
            return None;
        }
        if claim.phase != ClaimPhase::Bound || claim.volume_name.is_empty() {
            session.explain(|| format!("waits for the claim {key} to be bound"));
            return None;
        }
        let volume = find(&self.volumes, &ObjectKey::cluster_scoped(&*claim.volume_name), session)?;
        if volume.claim.as_ref().is_none_or(|reference| reference.uid != claim.metadata.uid) {
            session.explain(|| format!("waits for the volume {} to be bound to {key}", claim.volume_name));
            return None;
        }
        Some(volume)
    }

    /// Notes the use of a volume, and reports its conflicts.
    fn sync(&self, pod: &Pod, selinux: &PodSelinux, mount: &SelinuxMount, found: Found, session: &Session) {
        let label = match &mount.label {
            MountLabel::One(label) => label,
            MountLabel::Several => {
                session.explain(|| format!("warns of the volume {}, which has several labels", mount.volume));
                session.record(pod, &SeveralLabels { volume: &mount.volume });
                if let Found::Storage(Storage { name, .. }) = found {
                    // An ephemeral container may have brought the second label.
                    self.uses.lock().remove_volume(&pod.metadata.key, &name);
                }
                return;
            }
        };
        let Found::Storage(Storage { name, driver }) = found else { return };
        let Some(is_mountable) = self.is_mountable(driver.as_deref(), session) else { return };
        let usage = Use::new(label, selinux.change_policy.as_deref(), is_mountable);
        session.explain(|| format!("uses the volume {name} with the label {label:?}"));
        let used = UsedVolume { name, driver: driver.clone(), usage };
        let conflicts = self.uses.lock().add(&pod.metadata.key, &pod.metadata.uid, used);
        if self.is_mountable(driver.as_deref(), session) != Some(is_mountable) {
            // The driver changed before its change could find the use.
            session.requeue_after(Duration::ZERO);
        }
        for conflict in conflicts {
            self.report(&conflict, session);
        }
    }

    /// Returns `true` if the volumes of the driver are mounted with a label. Volumes without a driver are. Returns `None`
    /// while the driver cannot be decoded.
    fn is_mountable(&self, driver: Option<&str>, session: &Session) -> Option<bool> {
        let Some(driver) = driver else { return Some(true) };
        match self.drivers.lookup(&ObjectKey::cluster_scoped(driver)) {
            Lookup::Found(driver) => Some(driver.mounts_with_label),
            Lookup::Absent => Some(false),
            Lookup::Undecodable(object) => {
                session.requeue_when_decodable(&self.drivers.cache(), &object);
                session.explain(|| format!("waits for the driver {driver}, which cannot be decoded"));
                None
            }
        }
    }

    /// Records a conflict on its Pod, if both Pods are there still.
    fn report(&self, conflict: &Conflict, session: &Session) {
        if let (Some(pod), Some(_)) = (self.pods.get(&conflict.pod), self.pods.get(&conflict.other)) {
            session.explain(|| {
                format!(
                    "reports on {} that its {} differs from {}",
                    conflict.pod,
                    conflict.property.name(),
                    conflict.other
                )
            });
            session.record(&*pod, conflict);
        }
    }
}

/// Returns the cached object. Explains its absence.
fn find<V: View>(objects: &Informer<V>, key: &ObjectKey, session: &Session) -> Option<Arc<V>> {
    match objects.lookup(key) {
        Lookup::Found(object) => Some(object),
        Lookup::Absent => {
            session.explain(|| format!("waits for {key}, which does not exist"));
            None
        }
        Lookup::Undecodable(object) => {
            session.requeue_when_decodable(&objects.cache(), &object);
            session.explain(|| format!("waits for {key}, which cannot be decoded"));
            None
        }
    }
}
