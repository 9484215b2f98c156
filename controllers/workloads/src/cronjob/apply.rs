//! The requests of a reconcile.

use jiff::Timestamp;
use kcm_api::views::{ActiveJob, CronJob, Job};
use kcm_api::{EditError, KnownView as _, Meta, ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_framework::client::{ApiError, DeleteOptions, Deleted, DeletionPropagation, Payload, Subresource, Written};
use kcm_framework::events::ObjectReference;
use kcm_framework::ownership::Owner;
use kcm_framework::{Class, ReconcileError, Session};

use super::events::EventReason;
use super::job::NewJob;
use super::metrics::Metrics;
use super::observe::{Observed, OwnedJob};
use super::schedule::TimeZones;
use super::status::StatusUpdate;

const CRON_JOB: &Resource = &CronJob::RESOURCE;
const JOB: &Resource = &Job::RESOURCE;

/// Sends the requests of one reconcile of one cron job.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) cron_job: &'a CronJob,
    pub(super) zones: &'a TimeZones,
    pub(super) metrics: &'a Metrics,
}

/// The outcome of a start that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartOutcome {
    /// The job exists.
    Started(ObjectReference),
    /// An object of the name of the job has another owner.
    NameTaken,
    /// The namespace is being deleted.
    NamespaceTerminating,
}

/// A live cron job; absent if it does not exist any more.
pub(super) async fn live(session: &Session, cached: &CronJob) -> Result<Option<CronJob>, ApiError> {
    match session.api().get::<CronJob>(CRON_JOB, &cached.metadata.key).await {
        Ok(live) => Ok((live.metadata.uid == cached.metadata.uid).then_some(live)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The active jobs of the status that do not exist, by live reads of those that the cache does not have.
pub(super) async fn missing_jobs(session: &Session, observed: &Observed) -> Result<Vec<Uid>, ApiError> {
    let mut missing = Vec::new();
    for active in &observed.cron_job.status.active {
        if observed.jobs.iter().any(|job| job.metadata.uid == active.uid) {
            continue;
        }
        let key = ObjectKey::namespaced(&*active.namespace, &*active.name);
        match session.api().get::<PartialObjectMeta>(JOB, &key).await {
            Ok(found) if found.metadata.uid == active.uid => {}
            Ok(_) => missing.push(active.uid.clone()),
            Err(error) if error.is_not_found() => missing.push(active.uid.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(missing)
}

impl Writer<'_> {
    /// Deletes finished jobs. Returns those that are gone, and the first error; the others are deleted all the same.
    pub(super) async fn delete_all(&self, jobs: &[&OwnedJob]) -> (Vec<Uid>, Result<(), ApiError>) {
        let (mut deleted, mut result) = (Vec::new(), Ok(()));
        for job in jobs {
            let uid = &job.metadata.uid;
            match self.delete(&job.metadata.key, uid).await {
                Ok(()) => deleted.push(uid.clone()),
                Err(error) => result = result.and(Err(error)),
            }
        }
        (deleted, result)
    }

    /// Deletes a job that runs.
    pub(super) async fn replace(&self, job: &ActiveJob) -> Result<(), ApiError> {
        self.delete(&ObjectKey::namespaced(&*job.namespace, &*job.name), &job.uid).await
    }

    /// Creates the job of the start that was due at a time.
    pub(super) async fn start(&self, at: Timestamp) -> Result<StartOutcome, ReconcileError> {
        let job = NewJob::of(self.cron_job, at, self.zones).map_err(terminal)?;
        let error = match self.session.raw_create(JOB, &job.key, Payload::raw(job.body)).await {
            Ok(written) => return Ok(StartOutcome::Started(self.created(&written, at))),
            Err(error) => error,
        };
        if error.is_already_exists() || error.is_probably_created() {
            let found: PartialObjectMeta = self.session.api().get(JOB, &job.key).await?;
            let is_own = Owner::of(self.cron_job).owns(&found.metadata);
            tracing::info!(job = %job.key, is_own, "The name of the job is taken");
            return Ok(if is_own {
                StartOutcome::Started(reference(&found.metadata))
            } else {
                StartOutcome::NameTaken
            });
        }
        if error.is_namespace_terminating() {
            return Ok(StartOutcome::NamespaceTerminating);
        }
        self.session.record(self.cron_job, &EventReason::CreateFailed { error: error.message() });
        Err(error.into())
    }

    fn created(&self, written: &Written, at: Timestamp) -> ObjectReference {
        let name = written.key.name();
        tracing::info!(v = 4, job = %written.key, "Created job");
        let body = std::str::from_utf8(&written.body).ok().and_then(|json| PartialObjectMeta::decode(json).ok());
        if let Some(created) = body.and_then(|job| job.metadata.creation_timestamp) {
            self.metrics.created(created.duration_since(at));
        }
        self.session.record(self.cron_job, &EventReason::Created { job: name.to_owned() });
        ObjectReference {
            api_version: JOB.api_version(),
            kind: JOB.kind.to_string(),
            namespace: written.key.namespace().unwrap_or_default().to_owned(),
            name: name.to_owned(),
            uid: written.uid.clone(),
            resource_version: written.resource_version.clone(),
            field_path: String::new(),
        }
    }

    /// Deletes a job with its pods. One that is gone, or was recreated under the same name, is no error.
    async fn delete(&self, key: &ObjectKey, uid: &Uid) -> Result<(), ApiError> {
        let options =
            DeleteOptions { propagation: Some(DeletionPropagation::Background), ..DeleteOptions::of_uid(uid.clone()) };
        match self.session.raw_delete(JOB, key, uid, &options).await {
            Ok(Deleted::Accepted) => {
                tracing::info!(v = 4, job = %key, "Deleted job");
                self.session.record(self.cron_job, &EventReason::Deleted { job: key.name().to_owned() });
                Ok(())
            }
            Ok(Deleted::Gone) => Ok(()),
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => {
                self.session.record(self.cron_job, &EventReason::DeleteFailed { error: error.message() });
                Err(error)
            }
        }
    }

    /// Puts the status, if it changes.
    pub(super) async fn update_status(&self, update: &StatusUpdate) -> Result<(), ReconcileError> {
        if !update.is_needed(self.cron_job) {
            return Ok(());
        }
        let document = update.document(self.cron_job).map_err(terminal)?;
        let key = &self.cron_job.metadata.key;
        self.session.put_document(CRON_JOB, key, Subresource::Status, &document).await?;
        Ok(())
    }
}

/// The reference to a job, as the status has it.
pub(super) fn reference(job: &Meta) -> ObjectReference {
    ObjectReference::of(JOB, job)
}

/// A cron job whose JSON cannot be edited: only a change of it helps.
fn terminal(error: EditError) -> ReconcileError {
    ReconcileError::new(Class::Terminal, error)
}
