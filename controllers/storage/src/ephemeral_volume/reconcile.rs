//! The order of a reconcile: for each volume the cached claim, then the live Pod, then the creation.

use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodVolume, PodVolumes};
use kcm_framework::api::{KnownView as _, ObjectKey, PartReader};
use kcm_framework::client::{ApiError, Payload, ResponseExt as _, Subresource};
use kcm_framework::informers::{Informer, Lookup};
use kcm_framework::{Class, ReconcileError, ReconcileObject, Session, async_trait};

use super::claim::{LivePod, new_claim};
use super::events::FailedBinding;
use super::metrics::Metrics;
use super::plan::{ClaimState, NotOwner, claim_key, ephemeral};

pub(super) struct Reconciler {
    pub(super) volumes: PartReader<PodVolumes>,
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl ReconcileObject<Pod> for Reconciler {
    async fn reconcile(&self, pod: &Arc<Pod>, session: &Session) -> Result<(), ReconcileError> {
        if pod.metadata.is_terminating() {
            session.explain(|| "creates no claim: the pod is terminating");
            return Ok(());
        }
        for volume in ephemeral(self.volumes.of(pod)) {
            // The first error ends the reconcile, as upstream.
            if let Err(error) = self.ensure_claim(pod, volume, session).await {
                session.record(&**pod, &FailedBinding { volume: &volume.name, error: &error.to_string() });
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// The claim of a volume could not be created.
#[derive(Debug, thiserror::Error)]
enum ClaimError {
    #[error(transparent)]
    NotOwner(#[from] NotOwner),
    #[error("create PVC {name}: {}", error.message())]
    Create { name: String, error: ApiError },
    #[error("read pod: {}", .0.message())]
    Read(ApiError),
    #[error("the volume has no readable template")]
    NoTemplate,
}

impl From<ClaimError> for ReconcileError {
    fn from(error: ClaimError) -> Self {
        let class = match &error {
            // The owner of the name may be deleted without an event for the pod.
            ClaimError::NotOwner(_) => Class::Transient,
            ClaimError::Create { error, .. } | ClaimError::Read(error) => Class::from(error),
            ClaimError::NoTemplate => Class::Terminal,
        };
        Self::new(class, error)
    }
}

impl Reconciler {
    async fn ensure_claim(&self, pod: &Pod, volume: &PodVolume, session: &Session) -> Result<(), ClaimError> {
        let key = claim_key(&pod.metadata.key, &volume.name);
        let state = match self.claims.lookup(&key) {
            Lookup::Found(claim) => ClaimState::of(&claim, &pod.metadata),
            Lookup::Absent => ClaimState::Absent,
            Lookup::Undecodable(claim) => {
                session.requeue_when_decodable(&self.claims.cache(), &claim);
                session.explain(|| format!("leaves the claim {key} as it is, which cannot be decoded"));
                return Ok(());
            }
        };
        match state {
            ClaimState::Own => {
                session.explain(|| format!("keeps the claim {key}"));
                Ok(())
            }
            ClaimState::Foreign => Err(NotOwner::new(&key, pod).into()),
            ClaimState::Absent => self.create(pod, volume, &key, session).await,
        }
    }

    async fn create(
        &self,
        pod: &Pod,
        volume: &PodVolume,
        key: &ObjectKey,
        session: &Session,
    ) -> Result<(), ClaimError> {
        let pods = const { &Pod::RESOURCE };
        let live = session.api().get_raw(pods, &pod.metadata.key, Subresource::None).await.ignore_not_found();
        let Some(body) = live.map_err(ClaimError::Read)? else { return Ok(()) };
        let live: LivePod<'_> = serde_json::from_slice(&body).map_err(|_| ClaimError::NoTemplate)?;
        if !live.is(&pod.metadata.uid) {
            // The addition of the other Pod enqueues it.
            return Ok(());
        }
        let claim = new_claim(key.name(), live.template(&volume.name).ok_or(ClaimError::NoTemplate)?, pod);
        session.explain(|| format!("creates the claim {key}, which is missing"));
        let created = session.create::<PersistentVolumeClaim>(key, Payload::raw(claim.get().to_owned())).await;
        self.metrics.requested(created.is_err());
        match created {
            Ok(_) => {
                tracing::info!(claim = %key, "Created the claim of an ephemeral volume");
                Ok(())
            }
            Err(error) if error.is_already_exists() => self.settle(pod, key, session, error).await,
            Err(error) => Err(ClaimError::Create { name: key.name().to_owned(), error }),
        }
    }

    /// Decides about a claim whose name is taken, which the cache does not show.
    async fn settle(&self, pod: &Pod, key: &ObjectKey, session: &Session, error: ApiError) -> Result<(), ClaimError> {
        match session.live::<PersistentVolumeClaim>(key).await {
            Ok(Some(claim)) => match ClaimState::of(&claim, &pod.metadata) {
                ClaimState::Own => Ok(()),
                ClaimState::Foreign | ClaimState::Absent => Err(NotOwner::new(key, pod).into()),
            },
            // Deleted meanwhile, or not readable: the creation is repeated.
            Ok(None) | Err(_) => Err(ClaimError::Create { name: key.name().to_owned(), error }),
        }
    }
}
