//! The requests.

use jiff::civil::Date;
use kcm_api::KnownView as _;
use kcm_framework::Session;
use kcm_framework::client::{ApiError, DeleteOptions};
use serde_json::json;

use super::decide::INVALID_SINCE;
use super::observe::SecretMetadata;

/// Labels a secret as invalid.
pub(super) async fn invalidate(session: &Session, secret: &SecretMetadata, today: Date) -> Result<(), ApiError> {
    let since = today.to_string();
    tracing::info!(secret = %secret.metadata.key, since, "Marking an unused token of a service account as invalid");
    let labels = json!({ "metadata": { "labels": { INVALID_SINCE: since } } });
    session.merge_patch(secret, labels).await.map(drop)
}

/// Deletes a secret as it was read. That it was changed, deleted or recreated meanwhile is no failure.
pub(super) async fn delete(session: &Session, secret: &SecretMetadata) -> Result<(), ApiError> {
    let metadata = &secret.metadata;
    tracing::info!(secret = %metadata.key, "Deleting an unused token of a service account");
    let version = Some(metadata.resource_version.clone());
    let options = DeleteOptions { resource_version: version, ..DeleteOptions::of_uid(metadata.uid.clone()) };
    let resource = const { &SecretMetadata::RESOURCE };
    match session.raw_delete(resource, &metadata.key, &metadata.uid, &options).await {
        Err(error) if error.is_conflict() => Ok(()),
        deleted => deleted.map(drop),
    }
}
