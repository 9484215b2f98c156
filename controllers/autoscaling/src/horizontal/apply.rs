//! The request that writes the status of an autoscaler.

use kcm_api::views::{HorizontalPodAutoscaler, HorizontalPodAutoscalerView};
use kcm_api::{EditError, KnownView as _};
use kcm_framework::Session;
use kcm_framework::client::{ApiError, Subresource};

use super::status::Status;

/// The status was not written.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The autoscaler is not what the API server should send.
    Edit(EditError),
    /// The request failed.
    Request(ApiError),
}

/// Writes the status to the version of the autoscaler that was read. One that is gone is no error.
pub(super) async fn write_status(
    session: &Session,
    autoscaler: &HorizontalPodAutoscaler,
    status: &Status,
) -> Result<(), NotWritten> {
    let document = status.written_to(autoscaler).map_err(NotWritten::Edit)?;
    let resource = const { &HorizontalPodAutoscalerView::RESOURCE };
    match session.put_document(resource, &autoscaler.metadata.key, Subresource::Status, &document).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(NotWritten::Request(error)),
    }
}
