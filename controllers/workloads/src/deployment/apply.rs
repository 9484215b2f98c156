//! The effects: one reconcile from observation to status, and every request that it makes.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::views::{Deployment, ReplicaSet};
use kcm_api::{Document, KnownView as _, ObjectKey, Resource, Selector};
use kcm_framework::client::{ApiError, DeleteOptions, Payload, Subresource};
use kcm_framework::clock::Clock;
use kcm_framework::events::ObjectReference;
use kcm_framework::{Class, Outcome, Reconcile, ReconcileError, Recorder, Session, async_trait};

use super::events::Notice;
use super::observe::Caches;
use super::plan::{Plan, Refusal, Step, plan, plan_for_everything};
use super::replica_sets::{Edit, Namesake, NewSet, namesake};
use super::rollback::Rollback;
use super::settings::Settings;
use super::status::with_status;
use super::status_update::{Report, report_collision, report_failed_creation};
use crate::shared::adoption::settle;
use crate::shared::claim::Claims;
use crate::shared::error::retried;
use crate::shared::ownership::Owner;

const DEPLOYMENT: &Resource = &Deployment::RESOURCE;
const REPLICA_SET: &Resource = &ReplicaSet::RESOURCE;

/// Brings deployments to their desired state.
pub(super) struct Reconciler {
    pub(super) caches: Caches,
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) events: Recorder,
}

#[async_trait]
impl Reconcile for Reconciler {
    type Key = ObjectKey;

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<Outcome, ReconcileError> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Outcome::done()) };
        let deployment = &*observed.deployment;
        let selector = match &deployment.selector {
            Ok(selector) => selector,
            Err(error) => {
                // Selectors do not change, so there is nothing to try again.
                tracing::error!(%error, "Deployment cannot be handled: its selector is invalid");
                return Ok(Outcome::done());
            }
        };
        let plan = if selector.is_everything() {
            plan_for_everything(deployment)
        } else {
            let owner = Owner::of(deployment);
            let claimed = settle(session, owner, Claims::of(owner, selector, &observed.replica_sets)).await?;
            plan(&observed, claimed, self.settings, self.clock.now())?
        };
        tracing::debug!(course = ?plan.course, steps = plan.steps.len(), "Planned");
        Work { reconciler: self, session, deployment, selector }.carry_out(plan).await
    }
}

impl Reconciler {
    fn recheck(&self, at: Timestamp) -> Outcome {
        let delay = at.duration_since(self.clock.now());
        Outcome::requeue_after(Duration::try_from(delay).unwrap_or(Duration::ZERO))
    }
}

/// What became of a step that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It is done.
    Done,
    /// It was not to be done: what was planned after it does not hold, and what happens next wakes the deployment.
    Overtaken,
}

/// One reconcile of one deployment.
struct Work<'a> {
    reconciler: &'a Reconciler,
    session: &'a Session,
    deployment: &'a Deployment,
    selector: &'a Selector,
}

impl Work<'_> {
    async fn carry_out(&self, plan: Plan) -> Result<Outcome, ReconcileError> {
        for step in plan.steps {
            if self.apply(step).await? == Progress::Overtaken {
                return Ok(Outcome::done());
            }
        }
        if let Some(report) = &plan.report {
            self.report(report).await?;
        }
        Ok(plan.recheck.map_or_else(Outcome::done, |at| self.reconciler.recheck(at)))
    }

    async fn apply(&self, step: Step) -> Result<Progress, ReconcileError> {
        match step {
            Step::Tell(notice) => self.tell(&notice),
            Step::Create(set) => return self.create(&set).await,
            Step::Edit(edit) => self.edit(&edit).await?,
            Step::Delete(set) => self.delete(&set).await?,
            Step::RollBack { rollback, present } => self.roll_back(&rollback, &present).await?,
        }
        Ok(Progress::Done)
    }

    async fn create(&self, set: &NewSet) -> Result<Progress, ReconcileError> {
        let key = self.beside(&set.name);
        let answer = self.session.create(REPLICA_SET, &key, Payload::raw(set.body.clone())).await;
        let Err(error) = answer else {
            tracing::info!(replica_set = %key, replicas = set.replicas, "Created replica set");
            if set.replicas > 0 {
                self.tell(&Notice::Scaled { name: set.name.clone(), from: 0, to: set.replicas });
            }
            return Ok(Progress::Done);
        };
        if error.is_already_exists() || error.is_probably_created() {
            return self.look_at_namesake(&key).await;
        }
        // The namespace goes, and takes everything in it along: there is nothing to tell, and nothing to try again.
        if error.is_namespace_terminating() {
            return Ok(Progress::Overtaken);
        }
        self.tell_failed_creation(set, &error).await;
        Err(retried(error))
    }

    async fn look_at_namesake(&self, key: &ObjectKey) -> Result<Progress, ReconcileError> {
        let found: ReplicaSet = self.session.api().get(REPLICA_SET, key).await.map_err(retried)?;
        let whose = namesake(self.deployment, self.selector, &found);
        tracing::info!(replica_set = %key, ?whose, "The name of the new replica set is taken");
        match whose {
            Namesake::Ours | Namesake::Adoptable => {}
            Namesake::Collision => self.report(&report_collision(self.deployment)).await?,
        }
        Ok(Progress::Overtaken)
    }

    async fn tell_failed_creation(&self, set: &NewSet, error: &ApiError) {
        let message = format!("Failed to create new replica set \"{}\": {}", set.name, error.message());
        if let Some(report) = report_failed_creation(self.deployment, &message, self.reconciler.clock.now())
            && let Err(error) = self.report(&report).await
        {
            // What could not be created matters more, and is tried again anyway.
            tracing::debug!(%error, "Deployment could not be told that its replica set cannot be created");
        }
        self.tell(&Notice::CreateFailed { message });
    }

    async fn edit(&self, edit: &Edit) -> Result<(), ReconcileError> {
        let document = edit.document().map_err(refused)?;
        let key = &edit.set.metadata.key;
        self.put(REPLICA_SET, key, Subresource::None, &document).await?;
        if edit.is_scale() {
            let (from, to) = (edit.set.replicas, edit.replicas);
            tracing::info!(replica_set = %key, from, to, "Scaled replica set");
            self.tell(&Notice::Scaled { name: key.name().to_owned(), from, to });
        }
        Ok(())
    }

    async fn delete(&self, set: &ReplicaSet) -> Result<(), ReconcileError> {
        let (key, uid) = (&set.metadata.key, &set.metadata.uid);
        // Whoever scales the set meanwhile keeps it.
        let options = DeleteOptions {
            resource_version: Some(set.metadata.resource_version.clone()),
            ..DeleteOptions::of_uid(uid.clone())
        };
        self.session.delete(REPLICA_SET, key, uid, &options).await.map_err(retried)?;
        tracing::info!(replica_set = %key, "Deleted old replica set");
        Ok(())
    }

    async fn roll_back(&self, rollback: &Rollback, present: &str) -> Result<(), ReconcileError> {
        let document = rollback.document(self.deployment, present).map_err(refused)?;
        self.put(DEPLOYMENT, &self.deployment.metadata.key, Subresource::None, &document).await?;
        self.tell(&rollback.notice(self.deployment));
        Ok(())
    }

    /// Puts the status, if there is news in it.
    async fn report(&self, report: &Report) -> Result<(), ReconcileError> {
        if !report.is_news(self.deployment) {
            return Ok(());
        }
        let document = with_status(self.deployment, &report.status, report.revision.as_deref()).map_err(refused)?;
        self.put(DEPLOYMENT, &self.deployment.metadata.key, Subresource::Status, &document).await
    }

    async fn put(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        part: Subresource,
        document: &Document,
    ) -> Result<(), ReconcileError> {
        let body = Payload::raw(document.as_str().to_owned());
        self.session.put(resource, key, part, body).await.map_err(retried)?;
        Ok(())
    }

    fn beside(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(self.deployment.metadata.key.namespace().unwrap_or_default(), name)
    }

    fn tell(&self, notice: &Notice) {
        let regarding = ObjectReference::of(DEPLOYMENT, &self.deployment.metadata);
        self.reconciler.events.event(&regarding, notice.event_type(), notice.reason(), notice.message());
    }
}

/// An object that cannot be edited: only a change of it helps.
fn refused(error: kcm_api::EditError) -> ReconcileError {
    Refusal::from(error).into()
}

impl From<Refusal> for ReconcileError {
    fn from(refusal: Refusal) -> Self {
        Self::new(Class::Terminal, refusal)
    }
}
