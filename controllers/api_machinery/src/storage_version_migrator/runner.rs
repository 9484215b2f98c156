//! The runner: which migration of a resource may run, and what the definition of the resource says about it.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::{Document, EditError, InternedStr};
use kcm_framework::informers::{Change, Index, Informer};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};

use super::apply::{apply_definition, update_status};
use super::conditions::{Condition, add_once, set};
use super::definition::{Definition, Stage, configuration};
use super::text::{self, COMPLETED, COMPLETED_REASON, RUNNING_REASON};
use super::view::{GroupResource, Migration, RUNNING, SUCCEEDED};

/// Every change of a migration enqueues its resource.
pub(super) fn resources_for(change: &Change<Migration>) -> Vec<GroupResource> {
    match change {
        Change::Added(migration) => vec![migration.group_resource()],
        Change::Updated { old, new } => {
            let mut resources = vec![old.group_resource(), new.group_resource()];
            resources.dedup();
            resources
        }
        Change::Deleted { last, .. } => vec![last.group_resource()],
        // It may be running.
        Change::Undecodable { .. } => Vec::new(),
    }
}

/// The plan for a resource.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// The migrations that have ended and say that they run.
    pub(super) clean_up: Vec<Arc<Migration>>,
    /// The migration that may run next.
    pub(super) promote: Option<Arc<Migration>>,
}

/// Plans for a resource with these migrations. At most one runs: the oldest, by creation and name, is promoted if none does.
pub(super) fn plan(migrations: Vec<Arc<Migration>>) -> Plan {
    let mut plan = Plan::default();
    let mut runs = false;
    let mut waiting = Vec::new();
    for migration in migrations {
        match (migration.is(RUNNING), migration.is_terminal()) {
            (true, true) => plan.clean_up.push(migration),
            (true, false) => runs = true,
            (false, false) => waiting.push(migration),
            (false, true) => {}
        }
    }
    plan.clean_up.sort_by_key(|migration| migration.metadata.key.clone());
    let age = |migration: &Arc<Migration>| (migration.metadata.creation_timestamp, migration.metadata.key.clone());
    plan.promote = if runs { None } else { waiting.into_iter().min_by_key(age) };
    plan
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        let names = |migrations: &[Arc<Migration>]| {
            let names: Vec<&str> = migrations.iter().map(|migration| migration.metadata.key.name()).collect();
            names.join(", ")
        };
        match (&*self.clean_up, &self.promote) {
            ([], None) => "no migration of the resource ends or may begin".to_owned(),
            (ended, None) => format!("cleans up after migrations that have ended: {}", names(ended)),
            ([], Some(next)) => format!("lets the migration {} run", next.metadata.key.name()),
            (ended, Some(next)) => {
                let next = next.metadata.key.name();
                format!("cleans up after migrations that have ended: {}; lets the migration {next} run", names(ended))
            }
        }
    }
}

/// Reconciles resources.
pub(super) struct Runner {
    pub(super) migrations: Informer<Migration>,
    pub(super) of_group: Index<Migration, InternedStr>,
}

#[async_trait]
impl Reconcile<GroupResource> for Runner {
    async fn reconcile(&self, resource: &GroupResource, session: &Session) -> Result<(), ReconcileError> {
        // A migration that cannot be decoded may be running.
        if let Some(undecodable) = self.migrations.undecodable_objects().first() {
            session.requeue_when_decodable(&self.migrations.cache(), undecodable);
            session.explain(|| format!("waits: the migration {} cannot be decoded and may run", undecodable.key));
            return Ok(());
        }
        let mut migrations = self.of_group.get(&*resource.group);
        migrations.retain(|migration| migration.group_resource() == *resource);
        let planned = plan(migrations);
        session.explain(|| planned.explain());
        for migration in &planned.clean_up {
            clean_up(migration, resource, session).await?;
        }
        match &planned.promote {
            Some(migration) => promote(migration, resource, session).await,
            None => Ok(()),
        }
    }
}

async fn promote(migration: &Migration, resource: &GroupResource, session: &Session) -> Result<(), ReconcileError> {
    let name = migration.metadata.key.name();
    let Some(document) = promoted(migration, session.now())? else { return Ok(()) };
    mark_definition(resource, Stage::Running(name), session).await?;
    update_status(session, migration, &document).await?;
    tracing::info!(migration = name, %resource, "Started a migration");
    Ok(())
}

async fn clean_up(migration: &Migration, resource: &GroupResource, session: &Session) -> Result<(), ReconcileError> {
    let succeeded = migration.is(SUCCEEDED);
    let stage = if succeeded { Stage::Succeeded } else { Stage::Failed };
    let document = cleaned_up(migration, session.now())?;
    mark_definition(resource, stage, session).await?;
    update_status(session, migration, &document).await?;
    tracing::info!(migration = migration.metadata.key.name(), %resource, succeeded, "Ended a migration");
    Ok(())
}

/// Returns the document of a migration that may run; `None` if its condition is decided already.
pub(super) fn promoted(migration: &Migration, now: Timestamp) -> Result<Option<Document>, EditError> {
    let mut document = migration.document.clone();
    let message = text::running(None, None);
    let running =
        Condition { type_: RUNNING, status: true, reason: RUNNING_REASON, message: &message, observed_generation: 0 };
    Ok(add_once(&mut document, &running, now)?.then_some(document))
}

/// Returns the document of a migration that has ended.
pub(super) fn cleaned_up(migration: &Migration, now: Timestamp) -> Result<Document, EditError> {
    let mut document = migration.document.clone();
    let ended = Condition {
        type_: RUNNING,
        status: false,
        reason: COMPLETED_REASON,
        message: COMPLETED,
        observed_generation: migration.metadata.generation,
    };
    set(&mut document, &ended, now)?;
    Ok(document)
}

/// Applies what the definition of the resource says about its migration, if there is a definition.
async fn mark_definition(resource: &GroupResource, stage: Stage<'_>, session: &Session) -> Result<(), ReconcileError> {
    let Some(key) = resource.definition() else { return Ok(()) };
    let Some(definition) = session.live::<Definition>(&key).await? else { return Ok(()) };
    if let Some(configuration) = configuration(&definition, stage, session.now()) {
        apply_definition(session, &key, &configuration).await?;
    }
    Ok(())
}
