//! The requests of a reconcile.

use jiff::Timestamp;
use kcm_framework::api::views::{ActiveJob, CronJob, Job};
use kcm_framework::api::{KnownView as _, Meta, ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_framework::client::{ApiError, Deleted, Payload, ResponseExt as _, Written};
use kcm_framework::events::ObjectReference;
use kcm_framework::metrics::Histogram;
use kcm_framework::ownership::Owner;
use kcm_framework::{Delete, ReconcileError, Session};

use super::events::CronJobEvent;
use super::job::NewJob;
use super::observe::{Observed, OwnedJob};
use super::schedule::TimeZones;
use super::status::StatusUpdate;

const JOB: &Resource = &Job::RESOURCE;

/// Sends the requests of one reconcile of one CronJob.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) cron_job: &'a CronJob,
    pub(super) zones: &'a TimeZones,
    pub(super) creation_skew: &'a Histogram,
}

/// The result of a start that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartOutcome {
    /// The Job exists.
    Started(ObjectReference),
    /// A Job of that name has another owner.
    NameTaken,
    NamespaceTerminating,
}

/// Returns the active Jobs of the status that do not exist: reads those live that the cache does not have.
pub(super) async fn missing_jobs(session: &Session, observed: &Observed) -> Result<Vec<Uid>, ApiError> {
    let mut missing = Vec::new();
    for active in &observed.cron_job.status.active {
        if observed.jobs.iter().any(|job| job.metadata.uid == active.uid) {
            continue;
        }
        let live = session.live_meta::<Job>(&ObjectKey::namespaced(&*active.namespace, &*active.name)).await?;
        if live.is_none_or(|live| live.metadata.uid != active.uid) {
            missing.push(active.uid.clone());
        }
    }
    Ok(missing)
}

impl Writer<'_> {
    /// Deletes finished Jobs. Returns those that do not exist any more, and the first error; a failure does not stop the
    /// other deletions.
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

    /// Deletes a Job that runs.
    pub(super) async fn replace(&self, job: &ActiveJob) -> Result<(), ApiError> {
        self.delete(&ObjectKey::namespaced(&*job.namespace, &*job.name), &job.uid).await
    }

    /// Creates the Job of the start that was due at a time.
    pub(super) async fn start(&self, at: Timestamp) -> Result<StartOutcome, ReconcileError> {
        let job = NewJob::of(self.cron_job, at, self.zones)?;
        let error = match self.session.create::<Job>(&job.key, Payload::raw(job.body)).await {
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
        self.session.record(self.cron_job, &CronJobEvent::CreateFailed { error: error.message() });
        Err(error.into())
    }

    fn created(&self, written: &Written, at: Timestamp) -> ObjectReference {
        let name = written.key.name();
        tracing::info!(v = 4, job = %written.key, "Created job");
        let body = std::str::from_utf8(&written.body).ok().and_then(|json| PartialObjectMeta::decode(json).ok());
        if let Some(created) = body.and_then(|job| job.metadata.creation_timestamp) {
            self.creation_skew.observe(created.duration_since(at).as_secs_f64());
        }
        self.session.record(self.cron_job, &CronJobEvent::Created { job: name.to_owned() });
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

    /// Deletes a Job with its Pods. A Job that does not exist, or was recreated under the same name, is no error.
    async fn delete(&self, key: &ObjectKey, uid: &Uid) -> Result<(), ApiError> {
        let deletion = self.session.delete_named::<Job>(key, uid, Delete::background()).await;
        match deletion.ignore(ApiError::is_other_object) {
            Ok(Some(Deleted::Accepted)) => {
                tracing::info!(v = 4, job = %key, "Deleted job");
                self.session.record(self.cron_job, &CronJobEvent::Deleted { job: key.name().to_owned() });
                Ok(())
            }
            Ok(Some(Deleted::Gone) | None) => Ok(()),
            Err(error) => {
                self.session.record(self.cron_job, &CronJobEvent::DeleteFailed { error: error.message() });
                Err(error)
            }
        }
    }

    /// Updates the status if it changes.
    pub(super) async fn update_status(&self, update: &StatusUpdate) -> Result<(), ReconcileError> {
        if update.is_needed(self.cron_job) {
            let document = update.document(self.cron_job)?;
            self.session.update_status(self.cron_job, &document).await?;
        }
        Ok(())
    }
}

/// The reference to a Job, as the status has it.
pub(super) fn reference(job: &Meta) -> ObjectReference {
    ObjectReference::of(JOB, job)
}
