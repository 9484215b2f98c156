//! The checkpoint: the resource version up to which objects are migrated.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::{Document, EditError, ResourceVersion};
use kcm_framework::client::ListQuery;
use kcm_framework::discovery::ServedResource;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::update_status;
use super::conditions::{Condition, add_once};
use super::lookup::{Lookup, Missing, go_name, is_migratable, not_migratable};
use super::text::{FAILED_REASON, malformed_version};
use super::view::{FAILED, Migration, MigrationView, RUNNING};

/// A namespace that cannot exist: a list of it costs nothing, and has the version of the resource.
const NO_NAMESPACE: &str = "@fake:svm_ns!";

/// The reason why a migration gets no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Terminal,
    NotRunning,
    HasOne,
}

/// Returns the reason why the migration needs no checkpoint now.
pub(super) fn waits(migration: &MigrationView) -> Option<Waits> {
    if migration.is_terminal() {
        Some(Waits::Terminal)
    } else if !migration.is(RUNNING) {
        Some(Waits::NotRunning)
    } else if !migration.resource_version.is_unset() {
        Some(Waits::HasOne)
    } else {
        None
    }
}

impl Waits {
    const fn explain(self) -> &'static str {
        match self {
            Self::Terminal => "sets no checkpoint: the migration has ended",
            Self::NotRunning => "sets no checkpoint: the migration does not run yet",
            Self::HasOne => "leaves the checkpoint, which is set",
        }
    }
}

/// Reconciles migrations that lack a checkpoint.
pub(super) struct Checkpoints {
    pub(super) lookup: Arc<Lookup>,
}

#[async_trait]
impl ReconcileObject<Migration> for Checkpoints {
    async fn reconcile(&self, migration: &Arc<Migration>, session: &Session) -> Result<(), ReconcileError> {
        if let Some(waits) = waits(migration) {
            session.explain(|| waits.explain());
            return Ok(());
        }
        let resource = match self.lookup.find(migration, session.now()).await? {
            Ok(resource) if is_migratable(&resource) => resource,
            Ok(resource) => return fail(migration, &not_migratable(&resource), session).await,
            Err(Missing::Certainly) => return fail(migration, "resource does not exist in discovery", session).await,
            Err(missing @ Missing::Perhaps) => return Err(missing.into()),
        };
        let version = latest_version(&resource, session).await?;
        if version.compare(&version).is_none() {
            let message = format!(
                "latest resourceVersion for {} is not valid: {}",
                go_name(&resource),
                malformed_version(&version)
            );
            return fail(migration, &message, session).await;
        }
        session.explain(|| format!("migrates the objects up to version {version}"));
        update_status(session, migration, &with_checkpoint(migration, &version)?).await?;
        Ok(())
    }
}

async fn latest_version(resource: &ServedResource, session: &Session) -> Result<ResourceVersion, ReconcileError> {
    let namespace = resource.resource.namespaced.then_some(NO_NAMESPACE);
    let query = ListQuery { limit: Some(1), metadata_only: true, ..ListQuery::default() };
    Ok(session.api().list(&resource.resource, namespace, &query).await?.resource_version)
}

async fn fail(migration: &Migration, message: &str, session: &Session) -> Result<(), ReconcileError> {
    session.explain(|| format!("fails the migration: {message}"));
    let Some(document) = failed(migration, message, session.now())? else { return Ok(()) };
    update_status(session, migration, &document).await?;
    tracing::warn!(message, "A migration failed");
    Ok(())
}

/// Returns the document of a migration with a checkpoint.
pub(super) fn with_checkpoint(migration: &Migration, version: &ResourceVersion) -> Result<Document, EditError> {
    let mut document = migration.document.clone();
    document.set(&["status", "resourceVersion"], version)?;
    Ok(document)
}

/// Returns the document of a migration that cannot begin; `None` if its condition is decided already.
pub(super) fn failed(migration: &Migration, message: &str, now: Timestamp) -> Result<Option<Document>, EditError> {
    let mut document = migration.document.clone();
    let failed = Condition { type_: FAILED, status: true, reason: FAILED_REASON, message, observed_generation: 0 };
    Ok(add_once(&mut document, &failed, now)?.then_some(document))
}
