//! The status of a cron job.

use jiff::Timestamp;
use kcm_framework::api::views::{ActiveJob, CronJob};
use kcm_framework::api::{Document, EditError, Uid, time};
use kcm_framework::events::ObjectReference;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

const ACTIVE: [&str; 2] = ["status", "active"];

/// An update of the status.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusUpdate {
    /// The jobs that stay in `status.active`.
    pub(super) active: Vec<ActiveJob>,
    /// The job that is added to them.
    pub(super) started: Option<ObjectReference>,
    /// `status.lastScheduleTime`.
    pub(super) last_schedule_time: Option<Timestamp>,
    /// `status.lastSuccessfulTime`.
    pub(super) last_successful_time: Option<Timestamp>,
}

impl StatusUpdate {
    /// Adds the job of the start that was due at a time.
    pub(super) fn start(&mut self, job: ObjectReference, at: Timestamp) {
        self.started = Some(job);
        self.last_schedule_time = Some(at);
    }

    /// Whether the update changes the cron job.
    pub(super) fn is_needed(&self, cron_job: &CronJob) -> bool {
        let status = &cron_job.status;
        self.started.is_some()
            || self.active.len() != status.active.len()
            || self.last_schedule_time != status.last_schedule_time
            || self.last_successful_time != status.last_successful_time
    }

    /// The whole cron job with the status; references that stay and unknown fields are as they were.
    pub(super) fn document(&self, cron_job: &CronJob) -> Result<Document, EditError> {
        let mut document = cron_job.document.clone();
        let present = cron_job.document.items(&ACTIVE)?;
        let stays = |item: &&RawValue| {
            let uid = serde_json::from_str(item.get()).ok().and_then(|Reference { uid }| uid);
            uid.is_some_and(|uid| self.active.iter().any(|job| job.uid == uid))
        };
        let kept = present.into_iter().filter(stays).map(RawValue::to_owned);
        let started = self.started.as_ref().map(to_raw_value).transpose();
        let started = started.map_err(|source| EditError::Value { path: ACTIVE.join("."), source })?;
        let active: Vec<Box<RawValue>> = kept.chain(started).collect();
        if active.is_empty() {
            document.remove(&ACTIVE)?;
        } else {
            document.set(&ACTIVE, &active)?;
        }
        for (name, at) in
            [("lastScheduleTime", self.last_schedule_time), ("lastSuccessfulTime", self.last_successful_time)]
        {
            if let Some(at) = at {
                document.set(&["status", name], &time::format_seconds(at))?;
            }
        }
        Ok(document)
    }
}

#[derive(Deserialize)]
struct Reference {
    uid: Option<Uid>,
}
