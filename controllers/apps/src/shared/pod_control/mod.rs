//! Creation and deletion of the pods of an owner, with an event for each.
//!
//! # Upstream
//! `RealPodControl` of `pkg/controller`, and its slow start.

mod events;
mod pod_template;
mod slow_start;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kcm_framework::api::views::Pod;
use kcm_framework::api::{KnownView, ObjectKey};
use kcm_framework::client::{ApiError, Deleted, Payload};
use kcm_framework::{Delete, Session};

use events::PodControlEvent;

pub(crate) use pod_template::PodTemplate;
pub(crate) use slow_start::SlowStart;

/// The number of names that are generated for a pod while they are taken, as the API server does for `generateName`.
const NAMES_TRIED: usize = 8;

/// The outcome of the creation of a pod that did not fail.
pub(crate) enum CreateOutcome {
    Created,
    /// The namespace is terminating, and everything in it will be deleted: no event, no retry.
    NamespaceTerminating,
}

/// Creates and deletes the pods of one owner.
pub(crate) struct PodControl<'a, V> {
    pub(crate) session: &'a Session,
    pub(crate) owner: &'a V,
}

impl<V: KnownView> PodControl<'_, V> {
    /// Creates pods in slow-start batches. Each of `pods` returns the body of a pod with the given name.
    ///
    /// # Errors
    /// The first failed creation; no batch is started after it.
    pub(crate) async fn create<B>(&self, pods: Vec<B>) -> Result<(), ApiError>
    where
        B: Fn(&str) -> Payload + Send + Sync,
    {
        self.create_each(&pods).await.1
    }

    /// Creates pods like [`create`](Self::create). Returns the indexes of the creations that failed, too.
    pub(crate) async fn create_each<B>(&self, pods: &[B]) -> (Vec<usize>, Result<(), ApiError>)
    where
        B: Fn(&str) -> Payload + Send + Sync,
    {
        let generate_name = generate_name(&self.owner.meta().key);
        let mut batches = SlowStart::of(pods.len());
        let mut pods = pods.iter().enumerate();
        let (mut failed, mut first_error) = (Vec::new(), None);
        while let Some(size) = batches.next_batch() {
            let create = |(at, pod)| {
                let created = self.create_pod(&generate_name, pod);
                async move { (at, created.await) }
            };
            let mut calls: FuturesUnordered<_> = pods.by_ref().take(size).map(create).collect();
            while let Some((at, outcome)) = calls.next().await {
                match outcome {
                    Ok(CreateOutcome::Created) => {}
                    Ok(CreateOutcome::NamespaceTerminating) => batches.stop(),
                    Err(error) => {
                        batches.stop();
                        failed.push(at);
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
        (failed, first_error.map_or(Ok(()), Err))
    }

    /// Creates one pod, under a name with that prefix.
    pub(crate) async fn create_pod<B>(&self, generate_name: &str, pod: &B) -> Result<CreateOutcome, ApiError>
    where
        B: Fn(&str) -> Payload + Send + Sync,
    {
        let owner = &self.owner.meta().key;
        let mut names_left = NAMES_TRIED;
        let name = loop {
            names_left -= 1;
            let name = self.session.generate_name(generate_name);
            let key = ObjectKey::namespaced(owner.namespace().unwrap_or_default(), name.as_str());
            let response = self.session.create::<Pod>(&key, pod(&name)).await;
            let error = match response {
                Ok(_) => break name,
                // Names are random, so this pod is ours. Another name would create a second pod.
                Err(error) if error.is_probably_created() => break name,
                Err(error) if error.is_already_exists() && names_left > 0 => continue,
                Err(error) if error.is_namespace_terminating() => return Ok(CreateOutcome::NamespaceTerminating),
                Err(error) => error,
            };
            self.record_event(&PodControlEvent::CreateFailed { message: error.message() });
            return Err(error);
        };
        self.record_event(&PodControlEvent::CreatedPod { name });
        Ok(CreateOutcome::Created)
    }

    /// Deletes pods, all at once. A pod that does not exist is no error.
    ///
    /// # Errors
    /// The first failed deletion; [`ApiError::is_other_object`] of a pod that was recreated only if no deletion failed
    /// otherwise.
    pub(crate) async fn delete(&self, pods: &[Arc<Pod>]) -> Result<(), ApiError> {
        let mut calls: FuturesUnordered<_> = pods.iter().map(|pod| self.delete_pod(pod)).collect();
        let mut first_error: Option<ApiError> = None;
        while let Some(outcome) = calls.next().await {
            // A failed request takes precedence over a stale cache.
            if let Err(error) = outcome
                && first_error.as_ref().is_none_or(ApiError::is_other_object)
            {
                first_error = Some(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Deletes one pod. A pod that does not exist is no error.
    pub(crate) async fn delete_pod(&self, pod: &Pod) -> Result<(), ApiError> {
        match self.session.delete(pod, Delete::default()).await {
            Ok(Deleted::Accepted) => {
                self.record_event(&PodControlEvent::DeletedPod { name: pod.metadata.key.name().to_owned() });
            }
            Ok(Deleted::Gone) => {}
            // The cache is stale, and nothing failed.
            Err(error) if error.is_other_object() => return Err(error),
            Err(error) => {
                self.record_event(&PodControlEvent::DeleteFailed { message: error.message() });
                return Err(error);
            }
        }
        Ok(())
    }

    fn record_event(&self, event: &PodControlEvent) {
        self.session.record(self.owner, event);
    }
}

/// Returns the prefix of the names of pods. It is valid, because names of owners are valid names of pods.
fn generate_name(owner: &ObjectKey) -> String {
    format!("{}-", owner.name())
}
