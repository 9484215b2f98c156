//! The requests that write the scale of a target and the status of an autoscaler.

use std::time::Duration;

use kcm_framework::api::views::{HorizontalPodAutoscaler, HorizontalPodAutoscalerView};
use kcm_framework::api::{KnownView as _, ObjectKey, Resource, ResourceVersion};
use kcm_framework::client::{ApiClient, ApiError, Cause, ResponseExt as _};
use kcm_framework::{ReconcileError, Session};

use super::events::AutoscalerEvent;
use super::failure_message::message_of;
use super::scale::FoundScale;
use super::status::Status;

/// Number of attempts to write a scale that has changed meanwhile, and the pause between them.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Sets the replicas of a target. After a conflict, the scale is read through `client`.
pub(super) async fn write_scale(
    session: &Session,
    client: &ApiClient,
    found: &FoundScale,
    target: &ObjectKey,
    replicas: i32,
) -> Result<(), ApiError> {
    let FoundScale { resource, scale, .. } = found;
    let mut scale = scale.clone();
    let mut attempt = 1;
    loop {
        scale.replicas = replicas;
        let Err(error) = session.of(resource).update_scale(target, &scale).await else { return Ok(()) };
        if !error.is_conflict() || attempt == ATTEMPTS {
            return Err(error);
        }
        attempt += 1;
        tokio::time::sleep(PAUSE).await;
        match client.scale(resource, target).await {
            Ok(latest) => scale = latest,
            Err(_) => return Err(error),
        }
    }
}

/// The status of an autoscaler in the API server.
#[derive(Debug, Clone)]
pub(super) struct StoredStatus {
    pub(super) status: Status,
    /// The version of the autoscaler with this status.
    pub(super) version: ResourceVersion,
}

/// The result of writing a status.
#[derive(Debug)]
pub(super) enum StatusWrite {
    /// The API server has the status.
    Stored(StoredStatus),
    /// The autoscaler does not exist.
    Deleted,
    /// The API server has rejected the status, with this message. An event was recorded.
    Rejected(String),
}

impl StatusWrite {
    /// The error of the sync, if there is one. An autoscaler that does not exist is no error.
    pub(super) fn error(self) -> Option<String> {
        match self {
            Self::Stored(_) | Self::Deleted => None,
            Self::Rejected(message) => Some(message),
        }
    }
}

/// Writes the status of an autoscaler if it has changed, to the version that has the old status.
pub(super) async fn write_status(
    session: &Session,
    autoscaler: &HorizontalPodAutoscaler,
    old: &StoredStatus,
    new: &Status,
) -> Result<StatusWrite, ReconcileError> {
    if new.is_same_as(&old.status) {
        return Ok(StatusWrite::Stored(old.clone()));
    }
    let name = autoscaler.metadata.key.name();
    let document = new.written_to(autoscaler).and_then(|mut document| {
        if old.version != autoscaler.metadata.resource_version {
            document.set(&["metadata", "resourceVersion"], &old.version)?;
        }
        Ok(document)
    });
    let message = match document {
        Err(error) => error.to_string(),
        Ok(document) => match session.update_status(autoscaler, &document).await.ignore_not_found() {
            Ok(Some(written)) => {
                let status = new.clone();
                return Ok(StatusWrite::Stored(StoredStatus { status, version: written.resource_version }));
            }
            Ok(None) => return Ok(StatusWrite::Deleted),
            Err(error) if is_undecided(&error) => return Err(error.into()),
            Err(error) => {
                let Resource { ref group, ref plural, .. } = HorizontalPodAutoscalerView::RESOURCE;
                message_of(&error, "put", Some(&format!("{plural}.{group} {name}")))
            }
        },
    };
    session.record(autoscaler, &AutoscalerEvent::FailedUpdateStatus(message.clone()));
    Ok(StatusWrite::Rejected(format!("failed to update status for {name}: {message}")))
}

/// Returns true if a request failed without a response of the API server. The sync is repeated as any other, which waits
/// for the end of an outage.
pub(super) fn is_undecided(error: &ApiError) -> bool {
    error.status().is_none()
}

/// Returns true if a write that failed without a response may have taken effect, because it was sent.
pub(super) const fn may_be_applied(error: &ApiError) -> bool {
    !matches!(error.cause(), Cause::NotSent(_) | Cause::Fenced(_) | Cause::Undeclared { .. } | Cause::Encode(_))
}
