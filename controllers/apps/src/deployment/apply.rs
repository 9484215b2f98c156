//! The requests of a reconcile: a function for each step of a plan.

use kcm_framework::api::views::{Deployment, ReplicaSet};
use kcm_framework::api::{KnownView as _, ObjectKey, Selector};
use kcm_framework::client::{ApiError, Payload};
use kcm_framework::{Delete, ReconcileError, Session};

use super::events::DeploymentEvent;
use super::plan::Step;
use super::replica_sets::{Edit, ExistingReplicaSet, NewReplicaSet, classify_existing};
use super::rollback::Rollback;
use super::status::with_status;
use super::status_update::{StatusUpdate, collision_update, failed_creation_update};

/// The outcome of a step that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepOutcome {
    Done,
    /// The step does not apply any more, and neither do the steps after it. A later event enqueues the Deployment.
    Superseded,
}

/// Writes the steps of one reconcile of one Deployment.
pub(super) struct Writer<'a> {
    pub(super) session: &'a Session,
    pub(super) deployment: &'a Deployment,
    pub(super) selector: &'a Selector,
}

impl Writer<'_> {
    /// Sends the requests of a step.
    pub(super) async fn apply(&self, step: Step) -> Result<StepOutcome, ReconcileError> {
        match step {
            Step::RecordEvent(event) => self.record_event(&event),
            Step::Create(set) => return self.create(&set).await,
            Step::Edit(edit) => self.edit(&edit).await?,
            Step::Delete(set) => self.delete(&set).await?,
            Step::RollBack { rollback, revision } => self.roll_back(&rollback, &revision).await?,
        }
        Ok(StepOutcome::Done)
    }

    /// Updates the status and the revision, if they change.
    pub(super) async fn update_status(&self, update: &StatusUpdate) -> Result<(), ReconcileError> {
        if !update.is_needed(self.deployment) {
            return Ok(());
        }
        let document = with_status(self.deployment, &update.status, update.revision.as_deref())?;
        self.session.update_status(self.deployment, &document).await?;
        Ok(())
    }

    async fn create(&self, set: &NewReplicaSet) -> Result<StepOutcome, ReconcileError> {
        let namespace = self.deployment.metadata.key.namespace().unwrap_or_default();
        let key = ObjectKey::namespaced(namespace, set.name.as_str());
        let response = self.session.create::<ReplicaSet>(&key, Payload::raw(set.body.clone())).await;
        let Err(error) = response else {
            tracing::info!(v = 2, replica_set = %key, replicas = set.replicas, "Created replica set");
            if set.replicas > 0 {
                self.record_event(&DeploymentEvent::Scaled { name: set.name.clone(), from: 0, to: set.replicas });
            }
            return Ok(StepOutcome::Done);
        };
        if error.is_already_exists() || error.is_probably_created() {
            return self.check_existing(&key).await;
        }
        // Everything in a terminating namespace will be deleted: no event, no retry.
        if error.is_namespace_terminating() {
            return Ok(StepOutcome::Superseded);
        }
        self.report_failed_creation(set, &error).await;
        Err(error.into())
    }

    /// Reads the `ReplicaSet` that has the name of the new one, and counts a collision unless it can be used.
    async fn check_existing(&self, key: &ObjectKey) -> Result<StepOutcome, ReconcileError> {
        let found: ReplicaSet = self.session.api().get(const { &ReplicaSet::RESOURCE }, key).await?;
        let existing = classify_existing(self.deployment, self.selector, &found);
        tracing::info!(v = 2, replica_set = %key, ?existing, "The name of the new replica set is taken");
        match existing {
            ExistingReplicaSet::Owned | ExistingReplicaSet::Adoptable => {}
            ExistingReplicaSet::Collision => self.update_status(&collision_update(self.deployment)).await?,
        }
        Ok(StepOutcome::Superseded)
    }

    async fn report_failed_creation(&self, set: &NewReplicaSet, error: &ApiError) {
        let message = format!("Failed to create new replica set \"{}\": {}", set.name, error.message());
        if let Some(update) = failed_creation_update(self.deployment, &message, self.session.now())
            && let Err(error) = self.update_status(&update).await
        {
            // The failed creation is the error of the reconcile. Its retry sets the condition too.
            tracing::debug!(%error, "Cannot update the status of a deployment whose replica set cannot be created");
        }
        self.record_event(&DeploymentEvent::CreateFailed { message });
    }

    async fn edit(&self, edit: &Edit) -> Result<(), ReconcileError> {
        let key = &edit.set.metadata.key;
        self.session.update(&*edit.set, &edit.document()?).await?;
        if edit.is_scale() {
            let (from, to) = (edit.set.replicas, edit.replicas);
            tracing::info!(v = 2, replica_set = %key, from, to, reasons = ?edit.reasons, "Scaled replica set");
            self.record_event(&DeploymentEvent::Scaled { name: key.name().to_owned(), from, to });
        }
        Ok(())
    }

    async fn delete(&self, set: &ReplicaSet) -> Result<(), ReconcileError> {
        // A ReplicaSet that was changed since it was read, for example scaled up, must not be deleted.
        self.session.delete(set, Delete::default().at_version(&set.metadata.resource_version)).await?;
        tracing::info!(v = 2, replica_set = %set.metadata.key, "Deleted old replica set");
        Ok(())
    }

    async fn roll_back(&self, rollback: &Rollback, revision: &str) -> Result<(), ReconcileError> {
        let document = rollback.document(self.deployment, revision)?;
        self.session.update(self.deployment, &document).await?;
        self.record_event(&rollback.event(self.deployment));
        Ok(())
    }

    fn record_event(&self, event: &DeploymentEvent) {
        self.session.record(self.deployment, event);
    }
}
