//! The job of a start.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::fmt::strtime;
use kcm_framework::api::views::{CronJob, Job};
use kcm_framework::api::{EditError, KnownView as _, ObjectKey, OwnerReference};
use kcm_framework::ownership::Owner;
use serde::Serialize;
use serde_json::value::RawValue;

use super::plan::job_name;
use super::schedule::TimeZones;

/// The annotation with the time at which a job was due, in the time zone of the cron job.
const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// A job to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewJob {
    /// Its namespace and name.
    pub(super) key: ObjectKey,
    /// The JSON of the request.
    pub(super) body: String,
}

impl NewJob {
    /// The job of the start that is due at a time.
    ///
    /// # Errors
    /// Annotations of the template that are no strings.
    pub(super) fn of(cron_job: &CronJob, at: Timestamp, zones: &TimeZones) -> Result<Self, EditError> {
        let template = |name: &'static str| cron_job.raw(&["spec", "jobTemplate", "metadata", name]);
        let invalid = |source| EditError::Value { path: "spec.jobTemplate".to_owned(), source };
        let annotations = template("annotations").map(|raw| serde_json::from_str(raw.get())).transpose();
        let annotations: Option<BTreeMap<String, String>> = annotations.map_err(invalid)?.flatten();
        let mut annotations = annotations.unwrap_or_default();
        annotations.insert(SCHEDULED_TIMESTAMP.to_owned(), scheduled_timestamp(cron_job, at, zones));
        let name = job_name(cron_job, at);
        let namespace = cron_job.metadata.key.namespace().unwrap_or_default();
        let resource = Job::RESOURCE;
        let body = Body {
            api_version: resource.api_version(),
            kind: &resource.kind,
            metadata: BodyMeta {
                name: &name,
                namespace,
                labels: template("labels"),
                annotations,
                owner_references: [Owner::of(cron_job).reference()],
            },
            spec: cron_job.raw(&["spec", "jobTemplate", "spec"]),
        };
        let body = serde_json::to_string(&body).map_err(invalid)?;
        Ok(Self { key: ObjectKey::namespaced(namespace, name), body })
    }
}

/// RFC 3339, as Go writes it: an offset of zero is `Z`.
fn scheduled_timestamp(cron_job: &CronJob, at: Timestamp, zones: &TimeZones) -> String {
    let zone = zones.load(cron_job.time_zone.as_deref().unwrap_or_default()).unwrap_or(jiff::tz::TimeZone::UTC);
    let local = at.to_zoned(zone);
    let format = if local.offset().is_zero() { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    strtime::format(format, &local).unwrap_or_else(|_| at.to_string())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: BodyMeta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyMeta<'a> {
    name: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    annotations: BTreeMap<String, String>,
    owner_references: [OwnerReference; 1],
}
