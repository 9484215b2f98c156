//! The requests of a reconcile: pods that are created and deleted, and the status.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kcm_api::views::{Pod, ReplicaSetStatus};
use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::client::{ApiError, DeleteOptions, Deleted, Payload, Subresource};
use kcm_framework::ownership::StaleOwner;
use kcm_framework::{Class, ReconcileError, Session};

use super::error::ScaleError;
use super::events::EventReason;
use super::metrics::Metrics;
use super::owner::ReplicaOwner;
use super::plan::Step;
use super::pod_template::PodTemplate;
use super::slow_start::SlowStart;
use super::status::with_status;

/// How many names are generated for a pod whose name is taken, as the API server does for `generateName`.
const NAMES_TRIED: usize = 8;

/// The outcome of the creation of a pod that did not fail.
enum CreateOutcome {
    /// The pod is created.
    Created,
    /// The namespace is terminating and takes everything in it along: no event, no retry.
    NamespaceTerminating,
}

/// Writes the steps of one reconcile of one object.
pub(super) struct Writer<'a, V> {
    pub(super) session: &'a Session,
    pub(super) metrics: &'a Metrics,
    pub(super) owner: &'a V,
}

impl<V: ReplicaOwner> Writer<'_, V> {
    /// Sends the requests of a step.
    pub(super) async fn apply(&self, step: Step) -> Result<(), ScaleError> {
        match step {
            Step::CreatePods { count } => self.create_pods(count).await,
            Step::RejectTemplate(error) => Err(ScaleError::InvalidTemplate(error)),
            Step::DeletePods { victims, age_ratios } => {
                self.metrics.observe_deletions(&age_ratios);
                self.delete_pods(&victims).await
            }
        }
    }

    async fn create_pods(&self, count: usize) -> Result<(), ScaleError> {
        tracing::info!(v = 2, need = self.owner.replicas(), creating = count, "Too few replicas");
        let template = PodTemplate::of(self.owner);
        let mut batches = SlowStart::of(count);
        let mut first_error = None;
        while let Some(size) = batches.next_batch() {
            let mut calls: FuturesUnordered<_> = (0..size).map(|_| self.create_pod(&template)).collect();
            while let Some(outcome) = calls.next().await {
                match outcome {
                    Ok(CreateOutcome::Created) => {}
                    Ok(CreateOutcome::NamespaceTerminating) => batches.stop(),
                    Err(error) => {
                        batches.stop();
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
        first_error.map_or(Ok(()), |error| Err(ScaleError::Create(error)))
    }

    async fn create_pod(&self, template: &PodTemplate<'_>) -> Result<CreateOutcome, ApiError> {
        let mut names_left = NAMES_TRIED;
        let name = loop {
            names_left -= 1;
            let name = self.session.generate_name(template.generate_name());
            let namespace = self.owner.meta().key.namespace().unwrap_or_default();
            let key = ObjectKey::namespaced(namespace, name.as_str());
            let response = self.session.create(&Pod::RESOURCE, &key, Payload::json(&template.pod(&name))).await;
            let error = match response {
                Ok(_) => break name,
                // Names are random, so that this pod is ours. Another name would create a second pod.
                Err(error) if error.is_probably_created() => break name,
                Err(error) if error.is_already_exists() && names_left > 0 => continue,
                Err(error) if error.is_namespace_terminating() => return Ok(CreateOutcome::NamespaceTerminating),
                Err(error) => error,
            };
            self.record_event(&EventReason::CreateFailed { message: error.message() });
            return Err(error);
        };
        self.record_event(&EventReason::CreatedPod { name });
        Ok(CreateOutcome::Created)
    }

    async fn delete_pods(&self, victims: &[Arc<Pod>]) -> Result<(), ScaleError> {
        tracing::info!(v = 2, need = self.owner.replicas(), deleting = victims.len(), "Too many replicas");
        let mut calls: FuturesUnordered<_> = victims.iter().map(|pod| self.delete_pod(pod)).collect();
        let mut first_error = None;
        while let Some(outcome) = calls.next().await {
            match (outcome, &first_error) {
                // A failed request takes precedence over a stale cache.
                (Err(error), None | Some(ScaleError::Replaced(_))) => first_error = Some(error),
                (Ok(()), _) | (Err(_), Some(_)) => {}
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    async fn delete_pod(&self, pod: &Pod) -> Result<(), ScaleError> {
        let (key, uid) = (&pod.metadata.key, &pod.metadata.uid);
        match self.session.delete(&Pod::RESOURCE, key, uid, &DeleteOptions::of_uid(uid.clone())).await {
            Ok(Deleted::Accepted) => self.record_event(&EventReason::DeletedPod { name: key.name().to_owned() }),
            Ok(Deleted::Gone) => {}
            // The pod was recreated under the same name: the cache is stale.
            Err(error) if error.is_conflict() => return Err(ScaleError::Replaced(error)),
            Err(error) => {
                self.record_event(&EventReason::DeleteFailed { message: error.message() });
                return Err(ScaleError::Delete(error));
            }
        }
        Ok(())
    }

    /// Puts the status, and after an error once more into the live object.
    pub(super) async fn put_status(&self, status: &ReplicaSetStatus) -> Result<(), ReconcileError> {
        if self.put_status_into(self.owner, status).await.is_ok() {
            return Ok(());
        }
        let meta = self.owner.meta();
        let live: V = self.session.api().get(const { &V::RESOURCE }, &meta.key).await?;
        if live.meta().uid != meta.uid {
            let wanted = meta.uid.clone();
            return Err(StaleOwner::Replaced { got: live.meta().uid.clone(), wanted }.into());
        }
        self.put_status_into(&live, status).await
    }

    async fn put_status_into(&self, current: &V, status: &ReplicaSetStatus) -> Result<(), ReconcileError> {
        let document = with_status(current, status).map_err(|error| ReconcileError::new(Class::Terminal, error))?;
        let key = &current.meta().key;
        self.session.put_document(const { &V::RESOURCE }, key, Subresource::Status, &document).await?;
        Ok(())
    }

    fn record_event(&self, event: &EventReason) {
        self.session.record(self.owner, event);
    }
}
