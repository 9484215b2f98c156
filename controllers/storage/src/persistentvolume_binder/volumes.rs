//! The order of a reconcile of a volume: annotations and finalizers, plan, writes, reclaim.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim, VolumePhase};
use kcm_framework::informers::Lookup;
use kcm_framework::workqueue::Priority;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::claim_plan::Surroundings as _;
use super::drafts::VolumeDraft;
use super::edits;
use super::events::BinderEvent;
use super::metrics::{Counted, Metrics, Operation};
use super::plugins::{Actor, Plugin, deleter, driver_of};
use super::reclaim::Recyclers;
use super::reservations::Holder;
use super::vocabulary::{Annotations, claim_key, class_of_volume, has_claim_uid};
use super::volume_plan::{ClaimOf, VolumePlan, is_released, plan};
use super::world::{Keys, World};

/// The reconciler of volumes.
pub(super) struct Volumes {
    pub(super) world: World,
    pub(super) metrics: Arc<Metrics>,
    pub(super) counted: Counted,
    /// The queue of claims.
    pub(super) claims: Keys,
    pub(super) recyclers: Recyclers,
}

/// The claim that a volume references, as the cache or the API server shows it.
enum FoundClaim {
    Known(Arc<PersistentVolumeClaim>),
    NotCached,
    Deleted,
    /// It cannot be decoded.
    Unreadable,
}

#[async_trait]
impl ReconcileObject<PersistentVolume> for Volumes {
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        self.counted.show(self.world.volumes.clone(), self.world.claims.clone());
        Ok(())
    }

    async fn reconcile(&self, volume: &Arc<PersistentVolume>, session: &Session) -> Result<(), ReconcileError> {
        let Some(reserved) = self.world.reservations.reserve(volume.metadata.key.name(), Holder::Volume) else {
            session.explain(|| "waits for the reconcile of a claim that binds it");
            return Ok(());
        };
        if !self.world.reservations.is_current(volume) {
            session.explain(|| "waits until the cache shows the last write of it");
            return Ok(());
        }
        let mut draft = VolumeDraft::new(volume, &reserved);
        let edit = edits::volume_migration(volume);
        if draft.update(session, edit).await? {
            // The event of the write enqueues the volume.
            session.explain(|| "updates its migration annotation and finalizers");
            return Ok(());
        }
        let mut claim = self.cached_claim(volume, session);
        if matches!(claim, FoundClaim::Unreadable) {
            return Ok(());
        }
        let mut planned = plan(volume, claim.of());
        if planned == VolumePlan::ReadClaim {
            claim = self.live_claim(volume, session).await?;
            planned = plan(volume, claim.of());
        }
        session.explain(|| planned.explain());
        self.apply(planned, &claim, &mut draft, session).await
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.world.reservations.forget(key.name());
        self.world.registries.events.forget(key);
        self.world.registries.back_offs.forget(key);
        self.recyclers.under_way.lock().remove(key);
        self.metrics.finished(key, Operation::Delete, Instant::now());
        Ok(())
    }
}

impl FoundClaim {
    fn of(&self) -> ClaimOf<'_> {
        match self {
            Self::Known(claim) => ClaimOf::Found(claim),
            Self::NotCached | Self::Unreadable => ClaimOf::NotCached,
            Self::Deleted => ClaimOf::Deleted,
        }
    }
}

impl Volumes {
    fn cached_claim(&self, volume: &PersistentVolume, session: &Session) -> FoundClaim {
        let Some(reference) = volume.claim.as_ref().filter(|_| has_claim_uid(volume)) else {
            return FoundClaim::NotCached;
        };
        match self.world.claims.lookup(&claim_key(reference)) {
            Lookup::Found(claim) if claim.metadata.uid == reference.uid => FoundClaim::Known(claim),
            Lookup::Found(_) | Lookup::Absent => FoundClaim::NotCached,
            Lookup::Undecodable(claim) => {
                session.requeue_when_decodable(&self.world.claims.cache(), &claim);
                session.explain(|| format!("waits: the claim {} cannot be decoded", claim.key));
                FoundClaim::Unreadable
            }
        }
    }

    /// Reads the claim from the API server: a claim may be younger than the cache, and its volume must not be reclaimed.
    async fn live_claim(&self, volume: &PersistentVolume, session: &Session) -> Result<FoundClaim, ReconcileError> {
        let Some(reference) = &volume.claim else { return Ok(FoundClaim::Deleted) };
        let live = session.live::<PersistentVolumeClaim>(&claim_key(reference)).await?;
        Ok(match live.filter(|claim| claim.metadata.uid == reference.uid) {
            Some(claim) => FoundClaim::Known(Arc::new(claim)),
            None => FoundClaim::Deleted,
        })
    }

    async fn apply(
        &self,
        planned: VolumePlan,
        claim: &FoundClaim,
        draft: &mut VolumeDraft<'_>,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let volume = Arc::clone(&draft.volume);
        match planned {
            VolumePlan::Available => {
                draft.set_phase(session, VolumePhase::Available, "").await?;
            }
            VolumePlan::Bound => {
                draft.set_phase(session, VolumePhase::Bound, "").await?;
            }
            VolumePlan::AskClaim => {
                if let Some(reference) = &volume.claim {
                    self.claims.add(claim_key(reference), Priority::Live);
                }
            }
            VolumePlan::ModeMismatch => {
                if let FoundClaim::Known(claim) = claim {
                    let event = BinderEvent::mode_mismatch_of_volume(claim.metadata.key.name());
                    self.world.record_volume(&volume, &event, session);
                    let event = BinderEvent::mode_mismatch_of_claim(volume.metadata.key.name());
                    self.world.record_claim(claim, &event, session);
                }
            }
            // Planned again with the live claim.
            VolumePlan::ReadClaim => {}
            VolumePlan::Release => {
                if !is_released(&volume) {
                    draft.set_phase(session, VolumePhase::Released, "").await?;
                    tracing::info!("Released a volume");
                    // The event of the write enqueues the volume, which is reclaimed then.
                    return Ok(());
                }
                self.reclaim(draft, session).await?;
            }
            VolumePlan::Unbind => self.unbind(draft, session).await?,
        }
        Ok(())
    }

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
    pub(super) fn name_of_deleter(&self, volume: &PersistentVolume) -> Box<str> {
        match deleter(volume, &Annotations::of(&volume.document)) {
            Err(_) => "N/A".into(),
            Ok(Actor::HostPath) => Plugin::HostPath.name().into(),
            Ok(Actor::External(_)) => match self.world.class(&class_of_volume(volume)) {
                None => "N/A".into(),
                Some(class) => driver_of(&class.provisioner).unwrap_or(&class.provisioner).into(),
            },
        }
    }
}
