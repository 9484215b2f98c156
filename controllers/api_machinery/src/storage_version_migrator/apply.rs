//! The requests that write.

use kcm_framework::Session;
use kcm_framework::api::{Document, KnownView as _, ObjectKey, Resource, ResourceVersion};
use kcm_framework::client::{ApiError, Patch, Payload};
use serde_json::{Value, json};

use super::definition::Definition;
use super::view::Migration;

/// The field manager of the status of definitions.
const OF_DEFINITIONS: &str = "migration-runner-controller";

/// The field manager of objects.
const OF_OBJECTS: &str = "storage-version-migrator-controller";

/// Updates the status of a migration to the status in `document`.
pub(super) async fn update_status(
    session: &Session,
    migration: &Migration,
    document: &Document,
) -> Result<(), ApiError> {
    session.update_status(migration, document).await.map(drop)
}

/// Applies a configuration to the status of a definition.
pub(super) async fn apply_definition(
    session: &Session,
    key: &ObjectKey,
    configuration: &Value,
) -> Result<(), ApiError> {
    let patch = Patch::apply(OF_DEFINITIONS, configuration);
    session.of(&Definition::RESOURCE).patch_status(key, patch).await.map(drop)
}

/// Patches an object that has this version, which changes nothing but the version in which it is stored.
pub(super) async fn rewrite(
    session: &Session,
    resource: &Resource,
    key: &ObjectKey,
    version: &ResourceVersion,
) -> Result<(), ApiError> {
    let body = Payload::json(&json!({
        "kind": resource.kind,
        "apiVersion": resource.api_version(),
        "metadata": { "resourceVersion": version },
    }));
    session.of(resource).patch(key, Patch::MergeAs { field_manager: OF_OBJECTS.to_owned(), body }).await.map(drop)
}
