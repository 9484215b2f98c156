//! The order of a reconcile: volume, plan, writes.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{ClaimPhase, PersistentVolume, PersistentVolumeClaim};
use kcm_framework::client::ApiError;
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::metrics::Histograms;
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::apply::{Outcome, Writer};
use super::events::ClaimEvent;
use super::flex::{self, Step};
use super::plan::{Plan, is_bound_to, plan};
use crate::shared::migration::Migration;

pub(super) struct Reconciler {
    pub(super) volumes: Informer<PersistentVolume>,
    /// Seconds of operations of storage.
    pub(super) storage_seconds: Histograms<4>,
}

/// The volume of a claim is not known.
#[derive(Debug, thiserror::Error)]
enum VolumeError {
    #[error("failed to get PV {name:?}: {}", error.message())]
    Read { name: String, error: ApiError },
    #[error("failed to get PV {name:?}: it does not exist")]
    Absent { name: String },
    #[error("persistent Volume is not bound to PVC being updated : {claim}")]
    NotBound { claim: ObjectKey },
}

impl From<VolumeError> for ReconcileError {
    fn from(error: VolumeError) -> Self {
        let class = match &error {
            VolumeError::Read { error, .. } => Class::from(error),
            VolumeError::Absent { .. } | VolumeError::NotBound { .. } => Class::Transient,
        };
        Self::new(class, error)
    }
}

#[async_trait]
impl ReconcileObject<PersistentVolumeClaim> for Reconciler {
    async fn reconcile(&self, claim: &Arc<PersistentVolumeClaim>, session: &Session) -> Result<(), ReconcileError> {
        if claim.phase != ClaimPhase::Bound {
            session.explain(|| "leaves the claim alone, which is not bound");
            return Ok(());
        }
        let Some(volume) = self.volume_of(claim, session).await? else { return Ok(()) };
        let writer = Writer { session, claim, volume: &volume };
        match plan(claim, &volume) {
            Plan::Nothing => session.explain(|| "has nothing to expand: the claim has the capacity that it requests"),
            Plan::External => {
                session.explain(|| "leaves the expansion to an external controller");
                session.record(&**claim, &ClaimEvent::External);
            }
            Plan::Migrated(migration) => hand_over(&writer, migration).await?,
            Plan::Flex { driver } => self.expand(&writer, &driver).await?,
        }
        Ok(())
    }
}

impl Reconciler {
    /// Returns the volume that is bound to the claim: from the cache, or live if the cache does not show it bound.
    async fn volume_of(
        &self,
        claim: &PersistentVolumeClaim,
        session: &Session,
    ) -> Result<Option<Arc<PersistentVolume>>, VolumeError> {
        let key = ObjectKey::cluster_scoped(&*claim.volume_name);
        match self.volumes.lookup(&key) {
            Lookup::Found(volume) if is_bound_to(&volume, claim) => return Ok(Some(volume)),
            Lookup::Found(_) | Lookup::Absent => {}
            Lookup::Undecodable(volume) => {
                session.requeue_when_decodable(&self.volumes.cache(), &volume);
                session.explain(|| format!("waits for the volume {key}, which cannot be decoded"));
                return Ok(None);
            }
        }
        let name = || key.name().to_owned();
        match session.live::<PersistentVolume>(&key).await {
            Err(error) => Err(VolumeError::Read { name: name(), error }),
            Ok(None) => Err(VolumeError::Absent { name: name() }),
            Ok(Some(volume)) if is_bound_to(&volume, claim) => Ok(Some(Arc::new(volume))),
            Ok(Some(_)) => Err(VolumeError::NotBound { claim: claim.metadata.key.clone() }),
        }
    }

    /// Records the expansion of a flex volume.
    async fn expand(&self, writer: &Writer<'_>, driver: &str) -> Result<(), ReconcileError> {
        let Writer { session, claim, volume } = writer;
        let step = flex::step(claim, volume);
        session.explain(|| format!("records the expansion of the flex volume: {step:?}"));
        let start = Instant::now();
        let recorded = writer.record(step, driver).await;
        match step {
            // Upstream counts the removal of the annotation to no operation.
            Step::Finish => {}
            Step::Wait | Step::Pend | Step::Expand { .. } => {
                let status = if recorded.is_ok() { "success" } else { "fail-unknown" };
                let seconds = self.storage_seconds.of([driver, "expand_volume", status, "false"].map(str::to_owned));
                seconds.observe(start.elapsed().as_secs_f64());
            }
        }
        match recorded {
            Ok(Outcome::Recorded) => Ok(()),
            Ok(Outcome::Resized) => {
                session.record(*claim, &ClaimEvent::Resized { claim: claim.metadata.key.to_string() });
                Ok(())
            }
            Err(error) => {
                session.record(*claim, &ClaimEvent::Failed { error: &error.to_string() });
                Err(error.into())
            }
        }
    }
}

/// Hands the expansion over to the resizer of a CSI driver.
async fn hand_over(writer: &Writer<'_>, migration: &Migration) -> Result<(), ReconcileError> {
    let Writer { session, claim, .. } = writer;
    let Migration { plugin, driver, .. } = migration;
    session.explain(|| format!("leaves the expansion to the resizer of {driver}"));
    session.record(*claim, &ClaimEvent::Migrated { plugin });
    match writer.name_resizer(driver).await {
        Ok(is_written) => {
            if is_written {
                tracing::info!(claim = %claim.metadata.key, driver, "Named the resizer of a claim that grows");
            }
            Ok(())
        }
        Err(error) => {
            let text = format!("error setting resizer annotation to pvc {}, with error {error}", claim.metadata.key);
            session.record(*claim, &ClaimEvent::NoResizer { error: &text });
            Err(error.into())
        }
    }
}
