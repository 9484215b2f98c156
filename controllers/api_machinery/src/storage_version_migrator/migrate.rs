//! The migration: a patch without effect for each object, which the API server stores in the current version.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::{Document, EditError, ObjectKey, PartialObjectMeta, Resource, View as _};
use kcm_framework::client::{ApiError, ListQuery, Page};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};

use super::apply::{rewrite, update_status};
use super::conditions::{Condition, set};
use super::lookup::{Lookup, Missing};
use super::progress::{Positions, Progress};
use super::text::{self, COMPLETED, Counts, FAILED_REASON, RUNNING_REASON, SUCCEEDED_REASON, malformed_version};
use super::view::{FAILED, Migration, RUNNING, SUCCEEDED};

/// The largest number of objects of a page, which is migrated in one reconcile.
const PAGE: u32 = 500;

/// The result of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The object is stored in the current version, or deleted.
    Done,
    /// The patch is tried again.
    Retry,
    /// The migration fails.
    Fatal,
}

/// Judges the error of a patch: a conflict shows that the object was written since, and so in the current version.
///
/// # Upstream
/// `isRetriableError` of the package.
pub(super) fn judge(error: &ApiError) -> Outcome {
    if error.is_conflict() || error.is_not_found() {
        return Outcome::Done;
    }
    match error.status() {
        None => Outcome::Retry,
        Some(status) if status.code == 429 || status.code >= 500 => Outcome::Retry,
        Some(_) => Outcome::Fatal,
    }
}

/// Judges the error of a list. A resource that is not found is looked up in discovery again.
pub(super) fn judge_list(error: &ApiError) -> Outcome {
    let is_fatal = error.status().is_some_and(|status| status.code == 403 || status.code == 405);
    if is_fatal { Outcome::Fatal } else { Outcome::Retry }
}

/// Reconciles migrations that have a checkpoint.
pub(super) struct Migrator {
    pub(super) lookup: Arc<Lookup>,
    pub(super) positions: Positions,
}

#[async_trait]
impl ReconcileObject<Migration> for Migrator {
    async fn reconcile(&self, migration: &Arc<Migration>, session: &Session) -> Result<(), ReconcileError> {
        let (key, uid) = (&migration.metadata.key, &migration.metadata.uid);
        if migration.is_terminal() {
            self.positions.forget(key);
            session.explain(|| "does nothing: the migration has ended");
            return Ok(());
        }
        let checkpoint = &migration.resource_version;
        if checkpoint.is_unset() {
            session.explain(|| "waits for the checkpoint, which the migration gets when it runs");
            return Ok(());
        }
        if checkpoint.compare(checkpoint).is_none() {
            return fail(migration, None, &malformed_version(checkpoint), session).await;
        }
        let mut progress = self.positions.take(key, uid);
        let ended = self.advance(migration, &mut progress, session).await;
        // A failure keeps the position, and so does an end that could not be written.
        if !matches!(ended, Ok(Step::Ended)) {
            self.positions.put(key, uid, progress);
        }
        ended.map(|_| ())
    }

    async fn deleted(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.positions.forget(key);
        Ok(())
    }
}

/// The result of a reconcile of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// There are more objects.
    Page,
    /// The end is written.
    Ended,
}

impl Migrator {
    /// Migrates a page of objects, and ends the migration after the last one.
    async fn advance(
        &self,
        migration: &Migration,
        progress: &mut Progress,
        session: &Session,
    ) -> Result<Step, ReconcileError> {
        if !progress.is_finished {
            let resource = match self.lookup.find(migration, session.now()).await? {
                Ok(found) => found.resource,
                Err(missing @ Missing::Perhaps) => return Err(missing.into()),
                Err(Missing::Certainly) => {
                    fail(migration, None, "unable to obtain GVR from discovery", session).await?;
                    return Ok(Step::Ended);
                }
            };
            match migrate_page(migration, &resource, progress, session).await {
                Ok(()) => {}
                Err(Stopped::Again(error)) => return Err(error),
                Err(Stopped::Failed(message)) => {
                    fail(migration, Some(progress.counts()), &message, session).await?;
                    return Ok(Step::Ended);
                }
                Err(Stopped::Malformed(message)) => {
                    fail(migration, None, &message, session).await?;
                    return Ok(Step::Ended);
                }
            }
        }
        let counts = progress.counts();
        if !progress.is_finished {
            session.explain(|| format!("{} of {} objects are not yet migrated", counts.left, counts.total));
            session.requeue_after(Duration::ZERO);
            return Ok(Step::Page);
        }
        session.explain(|| format!("ends the migration of {} objects", counts.total));
        let document = succeeded(migration, counts, session.now())?;
        update_status(session, migration, &document).await?;
        tracing::info!(objects = counts.total, "A migration succeeded");
        Ok(Step::Ended)
    }
}

/// The reason why a page was not completed.
enum Stopped {
    /// It is read again.
    Again(ReconcileError),
    /// The migration fails with this error.
    Failed(String),
    /// The API server served something that is no object.
    Malformed(String),
}

async fn migrate_page(
    migration: &Migration,
    resource: &Resource,
    progress: &mut Progress,
    session: &Session,
) -> Result<(), Stopped> {
    let page = list(migration, resource, progress, session).await?;
    let objects = decode(&page).map_err(Stopped::Malformed)?;
    let remaining = if page.continue_token.is_some() { page.remaining_items.unwrap_or_default() } else { 0 };
    progress.begin_page(objects.len(), remaining);
    for object in &objects {
        let (key, version) = (&object.metadata.key, &object.metadata.resource_version);
        let Some(is_older) = migration.resource_version.is_at_least(version) else {
            return Err(Stopped::Malformed(malformed_version(version)));
        };
        if is_older
            && !progress.has_passed(key)
            && let Err(error) = rewrite(session, resource, key, version).await
        {
            match judge(&error) {
                Outcome::Done => {}
                Outcome::Retry => return Err(again(migration, progress, error, session).await),
                Outcome::Fatal => return Err(Stopped::Failed(error.message())),
            }
        }
        progress.pass(key);
    }
    progress.end_page(page.continue_token);
    Ok(())
}

async fn list(
    migration: &Migration,
    resource: &Resource,
    progress: &mut Progress,
    session: &Session,
) -> Result<Page, Stopped> {
    let continue_token = progress.token.clone();
    let is_first = continue_token.is_none();
    let query = ListQuery { limit: Some(PAGE), metadata_only: true, continue_token, ..ListQuery::default() };
    match session.api().list(resource, None, &query).await {
        Ok(page) => Ok(page),
        Err(error) if !is_first && error.status().is_some_and(|status| status.code == 410) => {
            progress.restart();
            Err(Stopped::Again(error.into()))
        }
        Err(error) => match judge_list(&error) {
            Outcome::Done | Outcome::Retry => Err(again(migration, progress, error, session).await),
            Outcome::Fatal => Err(Stopped::Failed(error.message())),
        },
    }
}

fn decode(page: &Page) -> Result<Vec<PartialObjectMeta>, String> {
    page.items.iter().map(|item| PartialObjectMeta::decode(item.get()).map_err(|error| error.to_string())).collect()
}

/// Stops on a page, and writes why: an operator sees that the migration waits, and for what.
async fn again(migration: &Migration, progress: &mut Progress, error: ApiError, session: &Session) -> Stopped {
    progress.interrupt();
    match waiting(migration, progress.counts(), &error.message(), session.now()) {
        Ok(None) => {}
        Ok(Some(document)) => {
            if let Err(error) = update_status(session, migration, &document).await {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::debug!(error, "Cannot write why a migration waits");
            }
        }
        Err(error) => return Stopped::Again(error.into()),
    }
    Stopped::Again(error.into())
}

async fn fail(
    migration: &Migration,
    counts: Option<Counts>,
    error: &str,
    session: &Session,
) -> Result<(), ReconcileError> {
    let message = text::failed(counts, error);
    session.explain(|| format!("fails the migration: {message}"));
    let document = failed(migration, counts, &message, session.now())?;
    update_status(session, migration, &document).await?;
    tracing::warn!(message, "A migration failed");
    Ok(())
}

fn running(message: &str) -> Condition<'_> {
    Condition { type_: RUNNING, status: true, reason: RUNNING_REASON, message, observed_generation: 0 }
}

/// Returns the document of a migration that waits; `None` if it says so already.
fn waiting(migration: &Migration, counts: Counts, error: &str, now: Timestamp) -> Result<Option<Document>, EditError> {
    let mut document = migration.document.clone();
    let message = text::running(Some(counts), Some(error));
    Ok(set(&mut document, &running(&message), now)?.then_some(document))
}

/// Returns the document of a migration that has failed, amid its objects if there are counts.
pub(super) fn failed(
    migration: &Migration,
    counts: Option<Counts>,
    message: &str,
    now: Timestamp,
) -> Result<Document, EditError> {
    let mut document = migration.document.clone();
    if counts.is_some() {
        set(&mut document, &running(&text::running(counts, None)), now)?;
    }
    let failed = Condition { type_: FAILED, status: true, reason: FAILED_REASON, message, observed_generation: 0 };
    set(&mut document, &failed, now)?;
    Ok(document)
}

/// Returns the document of a migration whose objects are all stored in the current version.
pub(super) fn succeeded(migration: &Migration, counts: Counts, now: Timestamp) -> Result<Document, EditError> {
    let mut document = migration.document.clone();
    set(&mut document, &running(&text::running(Some(counts), None)), now)?;
    let succeeded = Condition {
        type_: SUCCEEDED,
        status: true,
        reason: SUCCEEDED_REASON,
        message: COMPLETED,
        observed_generation: 0,
    };
    set(&mut document, &succeeded, now)?;
    Ok(document)
}
