//! The requests of a reconcile: creates and deletes Pods, removes their finalizers, and updates the status.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kcm_framework::api::Document;
use kcm_framework::api::views::{Job, JobStatus, Pod};
use kcm_framework::client::{ApiError, Patch, Payload, ResponseExt as _};
use kcm_framework::{ReconcileError, Session};
use serde_json::json;

use super::assess::Assessment;
use super::job_pod::{JobPod, TRACKING_FINALIZER, is_tracked};
use super::metrics::Metrics;
use super::plan::{MOST_PODS, NewPods, Step};
use super::pod_template::PodTemplate;
use super::status::with_status;
use super::track::Applied;
use crate::shared::pod_control::{CreateOutcome, PodControl, SlowStart};

/// Writes the step of one reconcile of one Job.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) metrics: &'a Metrics,
    pub(super) job: &'a Job,
}

impl Writer<'_> {
    /// Sends the requests of a step. Returns their result and the first error.
    pub(super) async fn apply(&self, step: &Step<'_>, assessment: &Assessment<'_>) -> (Applied, Option<ApiError>) {
        match step {
            Step::DeleteActive(pods) => self.delete_pods(pods, false).await,
            Step::Suspend(pods) | Step::DeleteSurplus { pods, wanted: _ } => self.delete_pods(pods, true).await,
            Step::Create { pods, wanted: _ } => self.create_pods(pods, assessment).await,
            Step::BackOff { .. } | Step::Keep | Step::LeaveToDeletion => (Applied::default(), None),
        }
    }

    async fn create_pods(&self, pods: &NewPods, assessment: &Assessment<'_>) -> (Applied, Option<ApiError>) {
        let template = PodTemplate::of(self.job);
        let mut left = 0..pods.len();
        let mut batches = SlowStart::of(pods.len());
        let (mut created, mut failures, mut first_error) = (0, 0, None);
        while let Some(size) = batches.next_batch() {
            let index_of = |at: usize| match pods {
                NewPods::Plain(_) => None,
                NewPods::Indexed(indexes) => indexes.get(at).copied(),
            };
            let batch = left.by_ref().take(size).map(index_of);
            let mut calls: FuturesUnordered<_> =
                batch.map(|index| self.create_pod(&template, index, assessment)).collect();
            while let Some(outcome) = calls.next().await {
                match outcome {
                    Ok(CreateOutcome::Created) => created += 1,
                    Ok(CreateOutcome::NamespaceTerminating) => batches.stop(),
                    Err(error) => {
                        batches.stop();
                        failures += 1;
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
        let applied = Applied { created, ..Applied::default() };
        self.metrics.created(assessment, applied, failures);
        (applied, first_error)
    }

    async fn create_pod(
        &self,
        template: &PodTemplate<'_>,
        index: Option<i32>,
        assessment: &Assessment<'_>,
    ) -> Result<CreateOutcome, ApiError> {
        let base = template.generate_name(index);
        let pod = |name: &str| Payload::json(&template.pod(name, &base, index, assessment));
        self.pods().create_pod(&base, &pod).await
    }

    fn pods(&self) -> PodControl<'_, Job> {
        PodControl { session: self.session, owner: self.job }
    }

    /// Deletes Pods, at most [`MOST_PODS`] at the same time, so that a Job of many Pods holds few requests in memory.
    async fn delete_pods(&self, pods: &[&JobPod], untracks: bool) -> (Applied, Option<ApiError>) {
        let delete = |pod: &&JobPod| {
            let pod = Arc::clone(&pod.pod);
            async move { (pod.is_ready(), self.delete_pod(&pod, untracks).await) }
        };
        let (mut applied, mut first_error) = (Applied::default(), None);
        for pods in pods.chunks(MOST_PODS) {
            let mut calls: FuturesUnordered<_> = pods.iter().map(delete).collect();
            while let Some((is_ready, outcome)) = calls.next().await {
                match outcome {
                    Ok(()) => {
                        applied.deleted += 1;
                        applied.deleted_ready += i32::from(is_ready);
                    }
                    Err(error) => drop(first_error.get_or_insert(error)),
                }
            }
        }
        (applied, first_error)
    }

    /// Deletes a Pod. A Pod that is not counted loses its finalizer first.
    async fn delete_pod(&self, pod: &Pod, untracks: bool) -> Result<(), ApiError> {
        if untracks && is_tracked(pod) {
            remove_finalizer(self.session, pod).await?;
        }
        self.pods().delete_pod(pod).await
    }

    /// Removes the finalizer of Pods, at most [`MOST_PODS`] at the same time. Returns those that have lost it, and the
    /// first error.
    pub(super) async fn release<'p>(&self, pods: &[&'p JobPod]) -> (Vec<&'p JobPod>, Option<ApiError>) {
        let remove = |pod: &&'p JobPod| {
            let pod = *pod;
            async move { (pod, remove_finalizer(self.session, &pod.pod).await) }
        };
        let (mut released, mut first_error) = (Vec::with_capacity(pods.len()), None);
        for pods in pods.chunks(MOST_PODS) {
            let mut calls: FuturesUnordered<_> = pods.iter().map(remove).collect();
            while let Some((pod, outcome)) = calls.next().await {
                match outcome {
                    Ok(()) => released.push(pod),
                    Err(error) => drop(first_error.get_or_insert(error)),
                }
            }
        }
        (released, first_error)
    }
}

/// Removes the finalizer of Jobs from a Pod. A Pod that does not exist, or was recreated under the same name, is no error;
/// a conflict is, because the Pod may still have the finalizer.
pub(super) async fn remove_finalizer(session: &Session, pod: &Pod) -> Result<(), ApiError> {
    let patch = json!({
        "metadata": {
            "uid": pod.metadata.uid,
            "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER],
        },
    });
    let patch = Patch::Strategic(Payload::json(&patch));
    session.patch(pod, patch).await.ignore(|error| error.is_not_found() || error.is_other_object())?;
    Ok(())
}

/// Updates the status of a Job several times, each time based on the Job that was last read or written.
pub(super) struct StatusWriter<'a> {
    session: &'a Session,
    job: &'a Job,
    document: Document,
    /// The status as it was last read or written.
    pub(super) current: JobStatus,
}

impl<'a> StatusWriter<'a> {
    pub(super) fn of(job: &'a Job, session: &'a Session) -> Self {
        Self { session, job, document: job.document.clone(), current: job.status.clone() }
    }

    /// Updates the status if it differs. Returns whether it differs.
    pub(super) async fn update(&mut self, status: &JobStatus) -> Result<bool, ReconcileError> {
        if *status == self.current {
            return Ok(false);
        }
        let mut document = with_status(&self.document, &self.current, status)?;
        let written = self.session.update_status(self.job, &document).await?;
        document.set(&["metadata", "resourceVersion"], &written.resource_version)?;
        (self.document, self.current) = (document, status.clone());
        Ok(true)
    }
}
