//! Reclaiming a released volume: its storage is deleted or emptied, or it is left to others.

use std::collections::HashSet;
use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim, Pod, PodPhase, ReclaimPolicy, VolumePhase};
use kcm_framework::api::{KnownView as _, ObjectKey};
use kcm_framework::client::{Payload, ResponseExt as _, Subresource};
use kcm_framework::informers::Informer;
use kcm_framework::{Delete, ReconcileError, Session};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::claim_plan::Surroundings as _;
use super::drafts::{VolumeDraft, WriteError, is_refused};
use super::edits;
use super::events::BinderEvent;
use super::host_path;
use super::metrics::{Metrics, Operation};
use super::plugins::{Actor, Plugin, deleter, driver_of};
use super::provision::in_background;
use super::recycler::Recycler;
use super::vocabulary::{Annotations, IN_TREE_FINALIZER, claim_key, class_of_volume, has_claim_uid};
use super::volume_plan::{Reclaim, reclaim};
use super::world::World;

/// The Pods that empty volumes.
pub(super) struct Recyclers {
    pub(super) pods: Informer<Pod>,
    pub(super) host_path: Recycler,
    pub(super) nfs: Recycler,
    /// Volumes with a Pod that was created or found.
    pub(super) under_way: Mutex<HashSet<ObjectKey>>,
}

/// Number of volumes that are emptied at the same time.
const MOST_RECYCLED: usize = 20;
/// Time until a volume is tried again for which no Pod could be created because of others.
const CROWDED: std::time::Duration = std::time::Duration::from_secs(5);

impl Recyclers {
    fn of(&self, plugin: Plugin) -> &Recycler {
        match plugin {
            Plugin::HostPath => &self.host_path,
            Plugin::Nfs => &self.nfs,
        }
    }
}

pub(super) struct Reclaimer {
    pub(super) world: World,
    pub(super) metrics: Arc<Metrics>,
    pub(super) recyclers: Recyclers,
}

impl Reclaimer {
    /// Unbinds a volume, which becomes available.
    pub(super) async fn unbind(&self, draft: &mut VolumeDraft<'_>, session: &Session) -> Result<(), ReconcileError> {
        let edit = edits::unbind_volume(&draft.volume);
        draft.update(session, edit).await?;
        draft.set_phase(session, VolumePhase::Available, "").await?;
        self.world.registries.events.forget(&draft.volume.metadata.key);
        tracing::info!("Unbound a volume");
        Ok(())
    }

    /// Returns the name of the component that deletes the volume, for metrics.
    fn name_of_deleter(&self, volume: &PersistentVolume) -> Box<str> {
        match deleter(volume, &Annotations::of(&volume.document)) {
            Err(_) => "N/A".into(),
            Ok(Actor::HostPath) => Plugin::HostPath.name().into(),
            Ok(Actor::External(_)) => match self.world.class(&class_of_volume(volume)) {
                None => "N/A".into(),
                Some(class) => driver_of(&class.provisioner).unwrap_or(&class.provisioner).into(),
            },
        }
    }

    /// Reclaims a released volume.
    pub(super) async fn reclaim(&self, draft: &mut VolumeDraft<'_>, session: &Session) -> Result<(), ReconcileError> {
        let volume = Arc::clone(&draft.volume);
        let planned = reclaim(&volume);
        session.explain(|| planned.explain());
        if volume.reclaim_policy == ReclaimPolicy::Delete {
            let deleter = self.name_of_deleter(&volume);
            self.metrics.started(&volume.metadata.key, Operation::Delete, &deleter, Instant::now());
        }
        match planned {
            Reclaim::Retain | Reclaim::External => Ok(()),
            Reclaim::UnknownPolicy => self.fail(draft, &BinderEvent::unknown_policy(), "", session).await,
            Reclaim::NoDeleter(error) => {
                self.fail(draft, &BinderEvent::failed_delete(&error), &error.to_string(), session).await
            }
            Reclaim::NoRecycler => {
                let event = BinderEvent::no_recycler();
                let message = event.message.to_string();
                self.fail(draft, &event, &message, session).await
            }
            Reclaim::Delete => self.delete(draft, session).await,
            Reclaim::Recycle(plugin) => self.recycle(draft, plugin, session).await,
        }
    }

    /// Sets the phase `Failed`, with an event if that is new.
    async fn fail(
        &self,
        draft: &mut VolumeDraft<'_>,
        event: &BinderEvent,
        message: &str,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let message = if message.is_empty() { &*event.message } else { message };
        if draft.set_phase(session, VolumePhase::Failed, message).await? {
            tracing::warn!(message, "Cannot reclaim a volume");
            session.record(&*draft.volume, event);
        }
        Ok(())
    }

    /// Returns the live volume if it is still released: its claim was deleted, or is bound to another volume. A destructive
    /// step never relies on a cache.
    async fn live_released(
        &self,
        volume: &PersistentVolume,
        session: &Session,
    ) -> Result<Option<Arc<PersistentVolume>>, ReconcileError> {
        let Some(live) = session.live_as(volume).await? else { return Ok(None) };
        let Some(reference) = live.claim.as_ref().filter(|_| has_claim_uid(&live)) else { return Ok(None) };
        let claim = session.live::<PersistentVolumeClaim>(&claim_key(reference)).await?;
        let holds = claim.is_some_and(|claim| {
            let is_bound_elsewhere = !claim.volume_name.is_empty() && *claim.volume_name != *live.metadata.key.name();
            claim.metadata.uid == reference.uid && !is_bound_elsewhere
        });
        Ok((!holds).then(|| Arc::new(live)))
    }

    async fn delete(&self, draft: &mut VolumeDraft<'_>, session: &Session) -> Result<(), ReconcileError> {
        let volume = Arc::clone(&draft.volume);
        let meta = &volume.metadata;
        let has_finalizer = meta.finalizers.iter().any(|name| &**name == IN_TREE_FINALIZER);
        if meta.is_terminating() && !has_finalizer {
            session.explain(|| "is being deleted");
            return Ok(());
        }
        let back_offs = &self.world.registries.back_offs;
        if let Some(wait) = back_offs.wait(&meta.key, Instant::now()) {
            session.requeue_after(wait);
            session.explain(|| "waits for the next attempt to delete its directory");
            return Ok(());
        }
        let Some(live) = self.live_released(&volume, session).await? else {
            session.explain(|| "is not deleted: a live read shows that it is not released");
            return Ok(());
        };
        let (start, path) = (Instant::now(), host_path::path_of(&live));
        let deleted = in_background(move || host_path::delete(&path).map_err(|error| error.to_string())).await;
        self.metrics.stored(Operation::Delete, start, deleted.is_err());
        if let Err(error) = deleted {
            self.metrics.failed(&meta.key, Operation::Delete);
            session.requeue_after(back_offs.failed(&meta.key, Instant::now()));
            return self.fail(draft, &BinderEvent::failed_delete(&error), &error, session).await;
        }
        back_offs.forget(&meta.key);
        let mut current = VolumeDraft::of_live(&live, draft);
        if let Err(error) = current.update(session, edits::without_finalizer(&live)).await {
            self.metrics.failed(&meta.key, Operation::Delete);
            return Err(error.into());
        }
        if !live.metadata.is_terminating() {
            session.delete(&*volume, Delete::default()).await?;
            tracing::info!("Deleted a volume and its directory");
        }
        Ok(())
    }

    async fn recycle(
        &self,
        draft: &mut VolumeDraft<'_>,
        plugin: Plugin,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let volume = Arc::clone(&draft.volume);
        let (meta, recycler) = (&volume.metadata, self.recyclers.of(plugin));
        let key = recycler.key(&volume);
        if let Some(wait) = self.world.registries.back_offs.wait(&meta.key, Instant::now()) {
            session.requeue_after(wait);
            session.explain(|| "waits for the next attempt to empty it");
            return Ok(());
        }
        match self.recyclers.pods.get(&key) {
            None if self.recyclers.under_way.lock().remove(&meta.key) => {
                self.recycle_failed(draft, "failed to recycle volume: recycler pod was deleted", session).await
            }
            None => self.start_recycler(draft, plugin, &key, session).await,
            Some(pod) if !pod.metadata.is_controlled_by(&meta.uid) => {
                session.delete(&*pod, Delete::default()).await?;
                self.recycle_failed(draft, "old recycler pod found, will retry later", session).await
            }
            // A Pod of an earlier attempt is not the proof that the volume is empty.
            Some(pod) if pod.metadata.is_terminating() => {
                session.explain(|| format!("waits until the pod {key} is deleted"));
                Ok(())
            }
            Some(pod) => match pod.phase {
                PodPhase::Succeeded => self.end_recycling(draft, &pod, session).await,
                PodPhase::Failed => {
                    let message = message_of(&key, session).await?;
                    self.recyclers.under_way.lock().remove(&meta.key);
                    session.delete(&*pod, Delete::default()).await?;
                    self.recycle_failed(draft, &format!("failed to recycle volume: {message}"), session).await
                }
                PodPhase::Pending | PodPhase::Running | PodPhase::Unknown | PodPhase::Other | _ => {
                    self.recyclers.under_way.lock().insert(meta.key.clone());
                    session.explain(|| format!("waits until the pod {key} has emptied it"));
                    Ok(())
                }
            },
        }
    }

    async fn start_recycler(
        &self,
        draft: &mut VolumeDraft<'_>,
        plugin: Plugin,
        key: &ObjectKey,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let volume = Arc::clone(&draft.volume);
        if self.recyclers.under_way.lock().len() >= MOST_RECYCLED {
            session.requeue_after(CROWDED);
            session.explain(|| "waits until other volumes are emptied");
            return Ok(());
        }
        let Some(live) = self.live_released(&volume, session).await? else {
            session.explain(|| "is not emptied: a live read shows that it is not released");
            return Ok(());
        };
        if let Some(reference) = &live.claim {
            let claim = claim_key(reference);
            let mut pods: Vec<String> =
                self.world.pods.active(&claim).iter().map(|pod| pod.metadata.key.to_string()).collect();
            pods.sort();
            // The Pods may use another claim of the name.
            if !pods.is_empty() && self.world.claims.get(&claim).is_none() {
                self.world.record_volume(&volume, &BinderEvent::used_by_pods(&pods), session);
                return Ok(());
            }
        }
        let pod = self.recyclers.of(plugin).pod(&live, plugin);
        match session.create::<Pod>(key, Payload::json(&pod)).await {
            Ok(_) => {
                self.recyclers.under_way.lock().insert(volume.metadata.key.clone());
                tracing::info!(pod = %key, "Created a pod that empties a volume");
                Ok(())
            }
            // A Pod of the name that the cache does not show yet enqueues the volume.
            Err(error) if !is_refused(&error) => Err(error.into()),
            Err(error) => {
                let message = format!("unexpected error creating recycler pod:  {}", error.message());
                self.recycle_failed(draft, &message, session).await
            }
        }
    }

    async fn end_recycling(
        &self,
        draft: &mut VolumeDraft<'_>,
        pod: &Pod,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let volume = Arc::clone(&draft.volume);
        // The Pod is deleted first: if it stayed, the next claim's data would seem to be deleted already.
        session.delete(pod, Delete::default()).await?;
        self.recyclers.under_way.lock().remove(&volume.metadata.key);
        self.world.registries.back_offs.forget(&volume.metadata.key);
        self.unbind(draft, session).await?;
        session.record(&*volume, &BinderEvent::recycled());
        Ok(())
    }

    async fn recycle_failed(
        &self,
        draft: &mut VolumeDraft<'_>,
        error: &str,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        session.requeue_after(self.world.registries.back_offs.failed(&draft.volume.metadata.key, Instant::now()));
        let event = BinderEvent::recycle_failed(&error);
        let message = event.message.to_string();
        self.fail(draft, &event, &message, session).await
    }
}

/// Returns the message of a Pod that has failed.
async fn message_of(key: &ObjectKey, session: &Session) -> Result<String, WriteError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct LivePod {
        status: LiveStatus,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct LiveStatus {
        message: Option<String>,
    }
    let live = session.api().get_raw(const { &Pod::RESOURCE }, key, Subresource::None).await.ignore_not_found()?;
    let live = live.and_then(|body| serde_json::from_slice::<LivePod>(&body).ok()).unwrap_or_default();
    let message = live.status.message.filter(|message| !message.is_empty());
    Ok(message.unwrap_or_else(|| "pod failed, pod.Status.Message unknown".to_owned()))
}
