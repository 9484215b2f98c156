//! The order of a reconcile of a claim: annotations, plan, writes.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{ClaimPhase, PersistentVolume, PersistentVolumeClaim, VolumePhase};
use kcm_framework::informers::Lookup;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::claim_plan::{Binding, ClaimPlan, Waiting, plan};
use super::drafts::{ClaimDraft, VolumeDraft, WriteError};
use super::edits;
use super::events::BinderEvent;
use super::metrics::{Metrics, Operation};
use super::provision::Provisioning;
use super::reservations::Holder;
use super::vocabulary::{Annotations, SELECTED_NODE, class_of_claim, volume_key};
use super::world::World;

/// The reconciler of claims.
pub(super) struct Claims {
    pub(super) world: World,
    pub(super) metrics: Arc<Metrics>,
    pub(super) provisioning: Provisioning,
}

#[async_trait]
impl ReconcileObject<PersistentVolumeClaim> for Claims {
    async fn reconcile(&self, claim: &Arc<PersistentVolumeClaim>, session: &Session) -> Result<(), ReconcileError> {
        if self.waits_for_undecodable(claim, session) {
            return Ok(());
        }
        let mut draft = ClaimDraft::new(claim);
        let edit = edits::claim_migration(&draft.document);
        draft.update(session, edit).await?;
        let planned = plan(claim, &Annotations::of(&draft.document), &self.world);
        let planned = planned.map_err(ReconcileError::terminal)?;
        session.explain(|| planned.explain());
        self.note(claim, &planned);
        self.apply(planned, &mut draft, session).await
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.world.registries.waiting.lock().remove(key);
        self.world.registries.events.forget(key);
        self.world.registries.back_offs.forget(key);
        self.metrics.forget(key, Operation::Provision);
        Ok(())
    }
}

impl Claims {
    /// Returns `true` if an object that the claim is decided by cannot be decoded. Its change reconciles the claim again.
    fn waits_for_undecodable(&self, claim: &PersistentVolumeClaim, session: &Session) -> bool {
        let world = &self.world;
        if let Lookup::Undecodable(volume) = world.volumes.lookup(&volume_key(&claim.volume_name)) {
            session.requeue_when_decodable(&world.volumes.cache(), &volume);
            session.explain(|| format!("waits: the volume {} cannot be decoded", volume.key));
            return true;
        }
        if let Lookup::Undecodable(class) = world.classes.lookup(&ObjectKey::cluster_scoped(class_of_claim(claim))) {
            session.requeue_when_decodable(&world.classes.cache(), &class);
            session.explain(|| format!("waits: the class {} cannot be decoded", class.key));
            return true;
        }
        false
    }

    /// Has changes that could end the wait of the claim enqueue it.
    fn note(&self, claim: &PersistentVolumeClaim, planned: &ClaimPlan) {
        let key = &claim.metadata.key;
        let mut waiting = self.world.registries.waiting.lock();
        match planned {
            ClaimPlan::Pending(Waiting::ForVolume, _) => waiting.add(key, class_of_claim(claim), true),
            ClaimPlan::Pending(Waiting::ForConsumer, _) => waiting.add(key, class_of_claim(claim), false),
            ClaimPlan::Provision => {
                // A claim that a Pod's node was selected for takes no other volume.
                let is_delayed = claim.annotation(SELECTED_NODE).is_some();
                waiting.add(key, class_of_claim(claim), !is_delayed);
            }
            ClaimPlan::Pending(Waiting::ForNamedVolume | Waiting::Mismatch | Waiting::OtherClaim, _)
            | ClaimPlan::Bind(..)
            | ClaimPlan::Lost(_)
            | ClaimPlan::AssignClass(_)
            | ClaimPlan::Invalid(..) => waiting.remove(key),
        }
    }

    async fn apply(&self, planned: ClaimPlan, draft: &mut ClaimDraft, session: &Session) -> Result<(), ReconcileError> {
        match planned {
            ClaimPlan::Bind(volume, binding) => self.bind(&volume, binding, draft, session).await,
            ClaimPlan::Pending(_, event) => {
                if let Some(event) = event {
                    self.world.record_claim(&draft.claim, &event, session);
                }
                self.set_unbound(draft, ClaimPhase::Pending, session).await?;
                Ok(())
            }
            ClaimPlan::Lost(event) => {
                let is_new = draft.claim.phase != ClaimPhase::Lost;
                self.set_unbound(draft, ClaimPhase::Lost, session).await?;
                if is_new {
                    self.record_lost(&draft.claim, &event, session);
                }
                Ok(())
            }
            ClaimPlan::AssignClass(class) => {
                let document = draft.document.clone();
                let assigned = draft.update(session, edits::claim_class(&document, &class)).await;
                self.metrics.assigned_class(assigned.is_err());
                assigned?;
                tracing::info!(class, "Assigned the default storage class to a claim");
                Ok(())
            }
            ClaimPlan::Provision => self.provisioning.provision(draft, &self.world, &self.metrics, session).await,
            ClaimPlan::Invalid(event, error) => {
                self.world.record_claim(&draft.claim, &event, session);
                Err(ReconcileError::terminal(error))
            }
        }
    }

    fn record_lost(&self, claim: &PersistentVolumeClaim, event: &BinderEvent, session: &Session) {
        self.world.registries.events.forget(&claim.metadata.key);
        tracing::warn!(reason = event.reason, "A claim has lost its volume");
        session.record(claim, event);
    }

    async fn set_unbound(
        &self,
        draft: &mut ClaimDraft,
        phase: ClaimPhase,
        session: &Session,
    ) -> Result<bool, WriteError> {
        let edit = edits::unbound_status(&draft.claim, &draft.document, phase);
        draft.update_status(session, edit).await
    }

    /// Binds a claim to a volume. The order of the writes decides which side has won if it ends in between: the volume
    /// references the claim first, so that no other claim gets it.
    async fn bind(
        &self,
        volume: &Arc<PersistentVolume>,
        binding: Binding,
        draft: &mut ClaimDraft,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        if is_complete(volume, draft)? {
            return Ok(());
        }
        let key = draft.claim.metadata.key.clone();
        let name = volume.metadata.key.name();
        let Some(reserved) = self.world.reservations.reserve(name, Holder::Claim(key.clone())) else {
            session.explain(|| format!("waits for another reconcile of {name}"));
            return Ok(());
        };
        if !self.world.reservations.is_current(volume) {
            // The event of the write enqueues the claim.
            session.explain(|| format!("waits until the cache shows the last write of {name}"));
            return Ok(());
        }
        let mut bound = VolumeDraft::new(volume, &reserved);
        let result = write_binding(&mut bound, draft, session).await;
        if binding == Binding::Matched {
            match &result {
                Ok(()) => self.metrics.finished(&key, Operation::Provision, Instant::now()),
                Err(_) => self.metrics.failed(&key, Operation::Provision),
            }
        }
        match result {
            Ok(()) => {
                self.world.registries.events.forget(&key);
                tracing::info!(volume = name, "Bound a claim");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns `true` if nothing is left to write.
fn is_complete(volume: &PersistentVolume, draft: &ClaimDraft) -> Result<bool, WriteError> {
    let claim = &*draft.claim;
    Ok(volume.phase == VolumePhase::Bound
        && edits::bind_volume(volume, claim)?.is_none()
        && edits::bind_claim(claim, &draft.document, volume.metadata.key.name())?.is_none()
        && edits::bound_status(claim, &draft.document, volume)?.is_none())
}

async fn write_binding(
    bound: &mut VolumeDraft<'_>,
    draft: &mut ClaimDraft,
    session: &Session,
) -> Result<(), WriteError> {
    let (volume, claim) = (Arc::clone(&bound.volume), Arc::clone(&draft.claim));
    bound.update(session, edits::bind_volume(&volume, &claim)).await?;
    bound.set_phase(session, VolumePhase::Bound, "").await?;
    let edit = edits::bind_claim(&claim, &draft.document, volume.metadata.key.name());
    draft.update(session, edit).await?;
    let edit = edits::bound_status(&claim, &draft.document, &volume);
    draft.update_status(session, edit).await?;
    Ok(())
}
