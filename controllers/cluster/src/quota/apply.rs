//! The request that writes the status of a quota.

use kcm_api::views::{ResourceQuota, ResourceQuotaView};
use kcm_api::{EditError, KnownView as _, ResourceList};
use kcm_framework::client::{ApiError, Subresource};
use kcm_framework::{Class, ReconcileError, Session};

/// The status could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum StatusError {
    /// The quota is not what the API server should send.
    #[error("cannot edit the status of the resource quota")]
    Edit(#[source] EditError),
    /// The request failed.
    #[error("cannot update the status of the resource quota")]
    Request(#[source] ApiError),
}

impl From<StatusError> for ReconcileError {
    fn from(error: StatusError) -> Self {
        let class = match &error {
            StatusError::Edit(_) => Class::Terminal,
            StatusError::Request(error) => Class::from(error),
        };
        Self::new(class, error)
    }
}

/// Writes the usage, and the limits of the spec that it was computed for, to the state of the quota that was read: the
/// API server refuses it where it has admitted an object meanwhile. A quota that is gone is no error.
pub(super) async fn write_status(
    session: &Session,
    quota: &ResourceQuota,
    used: &ResourceList,
) -> Result<(), StatusError> {
    let mut document = quota.document.clone();
    let hard = quota.raw(&["spec", "hard"]);
    document.set(&["status", "hard"], &hard).map_err(StatusError::Edit)?;
    document.set(&["status", "used"], used).map_err(StatusError::Edit)?;
    let resource = const { &ResourceQuotaView::RESOURCE };
    match session.put_document(resource, &quota.metadata.key, Subresource::Status, &document).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(StatusError::Request(error)),
    }
}
