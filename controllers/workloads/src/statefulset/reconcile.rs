//! The order of a reconcile: observe, claim, find the revisions, plan, apply, status, history.

use std::sync::Arc;

use kcm_api::views::{ControllerRevision, Pod, PodVolumes, StatefulSet};
use kcm_api::{ObjectKey, PartReader};
use kcm_framework::ownership::{Owner, adopt_and_release};
use kcm_framework::{Class, Reconcile, ReconcileError, Session, async_trait};

use super::apply::Writer;
use super::metrics::Metrics;
use super::observe::Caches;
use super::plan::plan;
use super::revisions::{
    Revision, Revisions, UpdateRevision, beyond_history_limit, hash, new_revision, update_revision,
};
use super::settings::Settings;
use super::status::{after_rollout, is_outdated, recheck_at, revision_of, status};
use super::steps::Input;
use crate::shared::revisions::{Creation, RevisionData, create, delete, renumber, revision_name, sort};

/// Reconciles stateful sets.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) volumes: PartReader<PodVolumes>,
    pub(super) settings: Settings,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(observed) = self.caches.observe(key) else {
            self.metrics.forget(key);
            return Ok(());
        };
        let set = &*observed.set;
        if let Err(error) = &set.selector {
            // A selector is immutable: a retry cannot succeed.
            tracing::error!(%error, "The selector is invalid");
            session.explain(|| "does nothing until the stateful set changes, as its selector is invalid");
            return Ok(());
        }
        let (Some(revisions), Some(pods)) = (observed.claim_revisions(), observed.claim_pods()) else {
            return Ok(());
        };
        let owner = Owner::of(set);
        let mut revisions = adopt_and_release(session, owner, revisions).await?;
        sort(&mut revisions);
        let pods = adopt_and_release(session, owner, pods).await?;

        if set.metadata.is_terminating() {
            // The garbage collector deletes the revisions, and none is created for it to delete.
            return self.sync(session, set, &pods, &Revisions::of_status(set)).await;
        }
        let found = self.find_revisions(session, set, &revisions).await;
        let outcome = match &found {
            Ok(found) => self.sync(session, set, &pods, found).await,
            Err(_) => Ok(()),
        };
        let truncated = truncate(session, set, &pods, &revisions, found.as_ref().ok()).await;
        found?;
        let outcome = outcome?;
        truncated?;
        Ok(outcome)
    }
}

impl Reconciler {
    /// Finds the revisions of the stateful set, and creates or renumbers that of its template.
    async fn find_revisions(
        &self,
        session: &Session,
        set: &StatefulSet,
        revisions: &[Arc<ControllerRevision>],
    ) -> Result<Revisions, ReconcileError> {
        let invalid = |error| ReconcileError::new(Class::Terminal, error);
        let data = RevisionData::of(set.template()).map_err(invalid)?;
        let mut collision_count = set.status.collision_count.unwrap_or(0);
        let existing = match update_revision(revisions, &data, self.settings.semantic_revisions) {
            UpdateRevision::Last(revision) => Some(revision),
            UpdateRevision::Renumber { revision, number } => {
                renumber(session, &revision, number).await?;
                Some(revision)
            }
            UpdateRevision::Create { number } => {
                let label = hash(&data, collision_count);
                let name = loop {
                    let name = revision_name(set.metadata.key.name(), &hash(&data, collision_count));
                    match create(session, &new_revision(set, &data, &name, &label, number)).await? {
                        Creation::Created | Creation::Found => break name,
                        Creation::Collision => collision_count = collision_count.saturating_add(1),
                    }
                };
                return Ok(Revisions::new(set, revisions, Revision { name, data }, collision_count));
            }
        };
        let update = existing.and_then(|revision| Revision::of(&revision));
        // Validation rejects a revision without data.
        let update = update.unwrap_or_else(|| Revision { name: String::new(), data });
        Ok(Revisions::new(set, revisions, update, collision_count))
    }

    async fn sync(
        &self,
        session: &Session,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        revisions: &Revisions,
    ) -> Result<(), ReconcileError> {
        let (claims, settings, now) = (&self.caches.claims, self.settings, session.now());
        let plan = plan(Input { set, pods, revisions, claims, volumes: self.volumes, settings, now });
        tracing::debug!(phases = plan.phases.len(), wait = ?plan.wait, "Planned");
        session.explain(|| plan.explain());
        if settings.max_unavailable {
            self.metrics.observe(set, plan.unavailable);
        }

        let writer = Writer { session, set, revisions };
        let (going, applied) = writer.apply(&plan.phases).await;

        // The status is written after a failure too.
        let status = after_rollout(set, status(set, revisions, &plan.counted, now), going);
        let written = if is_outdated(&set.status, &status) { writer.put_status(&status).await } else { Ok(()) };
        applied?;
        written?;
        let recheck = recheck_at(set, pods, &status, now);
        Ok(recheck.map_or_else(|| (), |at| session.requeue_by(at)))
    }
}

/// Deletes the revisions beyond the history limit.
async fn truncate(
    session: &Session,
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    revisions: &[Arc<ControllerRevision>],
    found: Option<&Revisions>,
) -> Result<(), ReconcileError> {
    let is_live = |revision: &ControllerRevision| {
        let name = revision.metadata.key.name();
        found.is_some_and(|found| found.current.name == name || found.update.name == name)
            || pods.iter().any(|pod| revision_of(pod) == name)
    };
    for revision in beyond_history_limit(set, revisions, is_live) {
        delete(session, revision).await?;
    }
    Ok(())
}
