//! The reconcile of orphans: Pods whose finalizer no Job removes.

use std::time::Duration;

use kcm_framework::api::views::Pod;
use kcm_framework::client::ApiError;
use kcm_framework::informers::Informer;
use kcm_framework::ownership::Dependents;
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};

use super::apply::remove_finalizer;
use super::event_mapping::{CountedBy, CountingJobs, OrphanKey};

/// The time after which the Pods of a Job that cannot be decoded are reconciled again. The deletion of such a Job is no
/// event.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Removes the finalizer of orphans.
pub(super) struct OrphanReconciler {
    pub(super) pods: Informer<Pod>,
    pub(super) dependents: Dependents<Pod>,
    pub(super) jobs: CountingJobs,
}

#[async_trait]
impl Reconcile<OrphanKey> for OrphanReconciler {
    async fn reconcile(&self, key: &OrphanKey, session: &Session) -> Result<(), ReconcileError> {
        let pods = match key {
            OrphanKey::Pod(pod) => self.pods.get(pod).into_iter().collect(),
            OrphanKey::PodsOf { job: _, uid } => self.dependents.controlled_by(uid),
        };
        let mut orphans = Vec::new();
        let mut undecodable = None;
        for pod in pods {
            match self.jobs.counting(&pod) {
                CountedBy::Nobody | CountedBy::FinishedJob => orphans.push(pod),
                CountedBy::UndecodableJob { job, uid: _ } => undecodable = Some(job),
                CountedBy::Others => {}
            }
        }
        if undecodable.is_some() {
            session.requeue_after(LOOK_AGAIN);
        }
        session.explain(|| match (&undecodable, orphans.len()) {
            (Some(job), _) => format!("removes no finalizer: job {job} cannot be decoded, and may count the pods"),
            (None, 0) => "removes no finalizer: the pods are gone, or a job counts them".to_owned(),
            (None, count) => format!("removes the finalizer of {count} pods, which no job counts"),
        });
        let mut failure = None;
        for pod in orphans {
            if let Err(error) = remove_finalizer(session, &pod).await {
                tracing::warn!(pod = %pod.metadata.key, cause = error.message(), "Cannot remove the finalizer of the pod");
                failure = Some(retried_sooner(failure, error));
            }
        }
        failure.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Returns the error whose class is retried sooner; of two that are retried alike, the first.
fn retried_sooner(first: Option<ApiError>, error: ApiError) -> ApiError {
    let waits = |error: &ApiError| match Class::from(error) {
        Class::Forbidden | Class::Terminal => true,
        Class::Transient | Class::Unavailable | Class::Conflict => false,
    };
    match first {
        Some(first) if !waits(&first) || waits(&error) => first,
        Some(_) | None => error,
    }
}
