//! The requests that write the scale of a target and the status of an autoscaler.

use std::time::Duration;

use kcm_framework::api::views::{HorizontalPodAutoscaler, HorizontalPodAutoscalerView};
use kcm_framework::api::{KnownView as _, ObjectKey, Resource};
use kcm_framework::client::{ApiClient, ApiError, ResponseExt as _};
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

/// Writes the status to the version of the autoscaler that was read, if it has changed. An autoscaler that does not exist
/// is no error.
///
/// Returns the message of a write that the API server rejects, which is recorded as an event.
pub(super) async fn write_status(
    session: &Session,
    autoscaler: &HorizontalPodAutoscaler,
    old: &Status,
    new: &Status,
) -> Result<Option<String>, ReconcileError> {
    if new.is_same_as(old) {
        return Ok(None);
    }
    let name = autoscaler.metadata.key.name();
    let message = match new.written_to(autoscaler) {
        Err(error) => error.to_string(),
        Ok(document) => match session.update_status(autoscaler, &document).await.ignore_not_found() {
            Ok(_) => return Ok(None),
            Err(error) if is_undecided(&error) => return Err(error.into()),
            Err(error) => {
                let Resource { ref group, ref plural, .. } = HorizontalPodAutoscalerView::RESOURCE;
                message_of(&error, "put", Some(&format!("{plural}.{group} {name}")))
            }
        },
    };
    session.record(autoscaler, &AutoscalerEvent::FailedUpdateStatus(message.clone()));
    Ok(Some(format!("failed to update status for {name}: {message}")))
}

/// Returns true if a request failed without a response of the API server. The sync is repeated as any other, which waits
/// for the end of an outage.
pub(super) fn is_undecided(error: &ApiError) -> bool {
    error.status().is_none()
}
