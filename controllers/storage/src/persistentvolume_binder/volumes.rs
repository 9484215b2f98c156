//! The order of a reconcile of a volume: annotations and finalizers, plan, writes, reclaim.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim, VolumePhase};
use kcm_framework::informers::Lookup;
use kcm_framework::workqueue::Priority;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::drafts::VolumeDraft;
use super::edits;
use super::events::BinderEvent;
use super::metrics::{Counted, Operation};
use super::reclaim::Reclaimer;
use super::reservations::Holder;
use super::vocabulary::{claim_key, has_claim_uid};
use super::volume_plan::{ClaimOf, VolumePlan, is_released, plan};
use super::world::Keys;

/// The reconciler of volumes.
pub(super) struct Volumes {
    pub(super) reclaimer: Reclaimer,
    pub(super) counted: Counted,
    /// The queue of claims.
    pub(super) claims: Keys,
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
        self.counted.show(self.reclaimer.world.volumes.clone(), self.reclaimer.world.claims.clone());
        Ok(())
    }

    async fn reconcile(&self, volume: &Arc<PersistentVolume>, session: &Session) -> Result<(), ReconcileError> {
        let Some(reserved) = self.reclaimer.world.reservations.reserve(volume.metadata.key.name(), Holder::Volume)
        else {
            session.explain(|| "waits for the reconcile of a claim that binds it");
            return Ok(());
        };
        if !self.reclaimer.world.reservations.is_current(volume) {
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
        self.reclaimer.world.reservations.forget(key.name());
        self.reclaimer.world.registries.events.forget(key);
        self.reclaimer.world.registries.back_offs.forget(key);
        self.reclaimer.recyclers.under_way.lock().remove(key);
        self.reclaimer.metrics.finished(key, Operation::Delete, Instant::now());
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
        match self.reclaimer.world.claims.lookup(&claim_key(reference)) {
            Lookup::Found(claim) if claim.metadata.uid == reference.uid => FoundClaim::Known(claim),
            Lookup::Found(_) | Lookup::Absent => FoundClaim::NotCached,
            Lookup::Undecodable(claim) => {
                session.requeue_when_decodable(&self.reclaimer.world.claims.cache(), &claim);
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
                    self.reclaimer.world.record_volume(&volume, &event, session);
                    let event = BinderEvent::mode_mismatch_of_claim(volume.metadata.key.name());
                    self.reclaimer.world.record_claim(claim, &event, session);
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
                self.reclaimer.reclaim(draft, session).await?;
            }
            VolumePlan::Unbind => self.reclaimer.unbind(draft, session).await?,
        }
        Ok(())
    }
}
