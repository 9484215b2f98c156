//! The requests.

use jiff::civil::Date;
use kcm_framework::client::{ApiError, ResponseExt as _};
use kcm_framework::{Delete, Session};
use serde_json::json;

use super::decide::INVALID_SINCE;
use super::observe::SecretMetadata;

pub(super) async fn invalidate(session: &Session, secret: &SecretMetadata, today: Date) -> Result<(), ApiError> {
    let since = today.to_string();
    tracing::info!(secret = %secret.metadata.key, since, "Marking an unused token of a service account as invalid");
    let labels = json!({ "metadata": { "labels": { INVALID_SINCE: since } } });
    session.merge_patch(secret, labels).await.map(drop)
}

/// Deletes a secret. It is no error if it was changed, deleted or recreated after it was read.
pub(super) async fn delete(session: &Session, secret: &SecretMetadata) -> Result<(), ApiError> {
    tracing::info!(secret = %secret.metadata.key, "Deleting an unused token of a service account");
    let as_read = Delete::default().at_version(&secret.metadata.resource_version);
    session.delete(secret, as_read).await.ignore(ApiError::is_conflict).map(drop)
}
