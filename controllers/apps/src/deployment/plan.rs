//! The plan of a reconcile: the steps for the replica sets, and the status update after them.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_framework::api::views::{Deployment, DeploymentStrategy, ReplicaSet};
use kcm_framework::api::{EditError, InternedStr, Selector};

use super::annotations::{
    Annotations, Changes, REVISION, new_replica_set_annotations, replicas_annotations, rollback_to,
};
use super::events::DeploymentEvent;
use super::gates::Gates;
use super::observe::Observed;
use super::replica_sets::{Edit, NewReplicaSet, ReplicaSets, count};
use super::rollback::Rollback;
use super::rollout::recreate::RecreateStep;
use super::rollout::{InvalidLimit, Limits, Scale, SetCount, cleanup, proportion, recreate, rolling};
use super::status::{CountedReplicaSet, StatusInput, StatusScope, is_complete, recheck_at, status};
use super::status_update::{NewReplicaSetState, StatusUpdate, observed_generation_update, updated_conditions};

/// The plan of one reconcile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The action.
    pub(super) action: SyncAction,
    /// The steps, in order.
    pub(super) steps: Vec<Step>,
    /// The status update after the steps; absent where the last step puts the deployment itself.
    pub(super) status_update: Option<StatusUpdate>,
    /// When the deployment is reconciled again without an event.
    pub(super) recheck: Option<Timestamp>,
}

/// The action of a reconcile: the first whose condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncAction {
    /// The selector is empty: only an event is recorded.
    SelectsEverything,
    /// The deployment is being deleted: only its status is updated.
    Terminating,
    /// The deployment is paused: replica sets are scaled and cleaned up, but none is created.
    Paused,
    /// A rollback is requested.
    RollBack,
    /// `spec.replicas` changed since the replica sets were scaled.
    Scale,
    /// The strategy is `Recreate`.
    Recreate,
    /// The strategy is `RollingUpdate`.
    RollingUpdate,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Record an event.
    RecordEvent(DeploymentEvent),
    /// Create a replica set.
    Create(NewReplicaSet),
    /// Update a replica set.
    Edit(Edit),
    /// Delete a replica set.
    Delete(Arc<ReplicaSet>),
    /// Roll the deployment back, and remove the request.
    RollBack {
        /// The decision on the request.
        rollback: Rollback,
        /// The revision of the new replica set.
        revision: String,
    },
}

impl Step {
    /// Returns `true` if the steps after a failure of this step, and the status, are written all the same.
    ///
    /// An old replica set that a policy denies to change must not keep the status of the deployment from being written.
    /// Old replica sets are scaled independently of each other: a set that keeps its pods keeps more of them available.
    ///
    /// # Upstream
    /// `reconcileOldReplicaSets` ignores such errors.
    pub(super) const fn is_of_old_set(&self) -> bool {
        match self {
            Self::Edit(edit) => !edit.is_of_new,
            Self::Delete(_) => true,
            Self::RecordEvent(_) | Self::Create(_) | Self::RollBack { .. } => false,
        }
    }
}

/// A deployment that cannot be reconciled until it is changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidDeployment {
    /// The type of the strategy is unknown.
    #[error("unexpected deployment strategy type: {0}")]
    Strategy(InternedStr),
    /// A limit of the rolling update is neither a number nor a percentage.
    #[error("cannot resolve the limits of the rolling update")]
    Limit(#[from] InvalidLimit),
    /// A field of the Deployment, or of a `ReplicaSet`, is not the object that it must be.
    #[error("cannot edit the object")]
    Edit(#[from] EditError),
}

/// The plan for a deployment whose selector is empty.
pub(super) fn plan_for_everything(deployment: &Deployment) -> Plan {
    Plan {
        action: SyncAction::SelectsEverything,
        steps: vec![Step::RecordEvent(DeploymentEvent::SelectingAll)],
        status_update: Some(observed_generation_update(deployment)),
        recheck: None,
    }
}

/// Plans a reconcile from the snapshot and the claimed replica sets of the deployment.
///
/// # Errors
/// A deployment that validation by the API server would reject.
pub(super) fn plan(
    observed: &Observed,
    claimed: Vec<Arc<ReplicaSet>>,
    gates: Gates,
    now: Timestamp,
) -> Result<Plan, InvalidDeployment> {
    let deployment = &*observed.deployment;
    let sets = ReplicaSets::of(deployment, claimed);
    let (limits, invalid) = match limits_of(deployment) {
        Ok(limits) => (limits, None),
        Err(error) => (Limits::unreadable(deployment.replicas), Some(error)),
    };
    let planner = Planner { observed, deployment, sets: &sets, limits: &limits, gates, now };
    let action = planner.action()?;
    if let (SyncAction::RollingUpdate | SyncAction::RollBack, Some(error)) = (action, invalid) {
        return Err(error.into());
    }
    planner.plan(action)
}

fn limits_of(deployment: &Deployment) -> Result<Limits, InvalidLimit> {
    match &deployment.strategy {
        DeploymentStrategy::RollingUpdate { max_unavailable, max_surge } => {
            Limits::rolling(deployment.replicas, max_surge.as_ref(), max_unavailable.as_ref())
        }
        DeploymentStrategy::Recreate | DeploymentStrategy::Other(_) => Ok(Limits::not_rolling(deployment.replicas)),
    }
}

struct Planner<'a> {
    observed: &'a Observed,
    deployment: &'a Deployment,
    sets: &'a ReplicaSets,
    limits: &'a Limits,
    gates: Gates,
    now: Timestamp,
}

/// The changes of an action to the replica sets, in this order.
#[derive(Default)]
struct ReplicaSetChanges {
    created: Option<NewReplicaSet>,
    scaled: Vec<Scale>,
    /// Indices of replica sets.
    deleted: Vec<usize>,
}

impl<'a> Planner<'a> {
    fn plan(&self, action: SyncAction) -> Result<Plan, InvalidDeployment> {
        let changes = match action {
            SyncAction::SelectsEverything => return Ok(plan_for_everything(self.deployment)),
            SyncAction::Terminating => ReplicaSetChanges::default(),
            SyncAction::Paused => self.pause(),
            SyncAction::RollBack => return self.roll_back(),
            SyncAction::Scale => ReplicaSetChanges { scaled: self.resized(), ..ReplicaSetChanges::default() },
            SyncAction::Recreate => self.recreate()?,
            SyncAction::RollingUpdate => self.roll()?,
        };
        Ok(self.finish(action, changes))
    }

    fn action(&self) -> Result<SyncAction, InvalidDeployment> {
        let deployment = self.deployment;
        Ok(if deployment.selector.as_ref().is_ok_and(Selector::is_everything) {
            SyncAction::SelectsEverything
        } else if deployment.metadata.is_terminating() {
            SyncAction::Terminating
        } else if deployment.paused {
            SyncAction::Paused
        } else if rollback_to(&deployment.metadata).is_some() {
            SyncAction::RollBack
        } else if proportion::is_scaling_event(self.old_counts().iter().chain(&self.new_count()), deployment.replicas) {
            SyncAction::Scale
        } else {
            match &deployment.strategy {
                DeploymentStrategy::RollingUpdate { .. } => SyncAction::RollingUpdate,
                DeploymentStrategy::Recreate => SyncAction::Recreate,
                DeploymentStrategy::Other(name) => return Err(InvalidDeployment::Strategy(name.clone())),
            }
        })
    }

    fn old_counts(&self) -> Vec<SetCount<'a>> {
        self.sets.old.iter().enumerate().map(|(index, set)| count(index, set)).collect()
    }

    fn new_count(&self) -> Option<SetCount<'a>> {
        self.sets.new.as_ref().map(|set| count(self.sets.old.len(), set))
    }

    fn resized(&self) -> Vec<Scale> {
        proportion::plan(self.new_count().as_ref(), &self.old_counts(), self.limits, self.deployment.status.replicas)
    }

    fn excess(&self) -> Vec<usize> {
        cleanup::plan(&self.old_counts(), self.deployment.revision_history_limit)
    }

    /// The old replica sets beyond the history limit, if the last status is that of a complete rollout.
    fn excess_after_rollout(&self) -> Vec<usize> {
        if is_complete(self.deployment, &self.deployment.status) { self.excess() } else { Vec::new() }
    }

    fn pause(&self) -> ReplicaSetChanges {
        // A requested rollback may need any of the old replica sets.
        let rolls_back = rollback_to(&self.deployment.metadata).is_some();
        let mut deleted = if rolls_back { Vec::new() } else { self.excess() };
        let scaled = self.resized();
        // The latest of the old sets may be scaled up and exceed the history limit at once.
        deleted.retain(|&index| scaled.iter().all(|scale| scale.index != index));
        ReplicaSetChanges { created: None, scaled, deleted }
    }

    fn roll(&self) -> Result<ReplicaSetChanges, InvalidDeployment> {
        let old = self.old_counts();
        let created = match &self.sets.new {
            Some(_) => None,
            None => Some(self.new_replica_set(rolling::first_size(&old, self.limits))?),
        };
        // A replica set is created with its final size: only old ones can be scaled in the same reconcile.
        let new = self.new_count().or_else(|| created.as_ref().map(|set| self.count_created(set)));
        let scaled = new.map_or_else(Vec::new, |new| rolling::plan(&new, &old, self.limits));
        let deleted = if scaled.is_empty() { self.excess_after_rollout() } else { Vec::new() };
        Ok(ReplicaSetChanges { created, scaled, deleted })
    }

    fn recreate(&self) -> Result<ReplicaSetChanges, InvalidDeployment> {
        // Pods of a replica set that is not claimed do not count: no change of them would enqueue the deployment.
        let old: BTreeSet<_> = self.sets.old.iter().map(|set| &set.metadata.uid).collect();
        let old_pods = self.observed.pods.iter().filter(|(set, _)| old.contains(set)).map(|(_, phase)| *phase);
        let (created, scaled) =
            match recreate::plan(self.new_count().as_ref(), &self.old_counts(), old_pods, self.limits) {
                RecreateStep::ScaleDown(scaled) => {
                    return Ok(ReplicaSetChanges { scaled, ..ReplicaSetChanges::default() });
                }
                RecreateStep::AwaitOldPods => return Ok(ReplicaSetChanges::default()),
                RecreateStep::Create { replicas } => (Some(self.new_replica_set(replicas)?), Vec::new()),
                RecreateStep::ScaleNew(scale) => (None, vec![scale]),
                RecreateStep::Complete => (None, Vec::new()),
            };
        Ok(ReplicaSetChanges { created, scaled, deleted: self.excess_after_rollout() })
    }

    /// Creates the new replica set before a rollback: a later rollback may be to its template.
    fn roll_back(&self) -> Result<Plan, InvalidDeployment> {
        let revision = rollback_to(&self.deployment.metadata).expect("a rollback must be requested");
        let Some(new) = &self.sets.new else {
            let replicas = match self.deployment.strategy {
                DeploymentStrategy::RollingUpdate { .. } => rolling::first_size(&self.old_counts(), self.limits),
                DeploymentStrategy::Recreate => self.deployment.replicas,
                DeploymentStrategy::Other(ref name) => return Err(InvalidDeployment::Strategy(name.clone())),
            };
            let created = Some(self.new_replica_set(replicas)?);
            return Ok(self.finish(SyncAction::RollBack, ReplicaSetChanges { created, ..ReplicaSetChanges::default() }));
        };
        let edit = self.renewed(new);
        let present = revision_after(&edit).unwrap_or_default().to_owned();
        let rollback = Rollback::decide(self.deployment, self.sets, &present, revision);
        let edit = (!edit.is_empty()).then_some(Step::Edit(edit));
        let steps = edit.into_iter().chain([Step::RollBack { rollback, revision: present }]).collect();
        Ok(Plan { action: SyncAction::RollBack, steps, status_update: None, recheck: None })
    }

    fn finish(&self, action: SyncAction, changes: ReplicaSetChanges) -> Plan {
        let ReplicaSetChanges { created, scaled, deleted } = changes;
        let edits = if action == SyncAction::Terminating { Vec::new() } else { self.edits(&scaled) };
        let revision =
            if action == SyncAction::Terminating { None } else { self.changed_revision(created.as_ref(), &edits) };
        let scope = match action {
            SyncAction::RollingUpdate | SyncAction::Recreate => StatusScope::Rollout,
            SyncAction::SelectsEverything
            | SyncAction::Terminating
            | SyncAction::Paused
            | SyncAction::RollBack
            | SyncAction::Scale => StatusScope::Counts,
        };
        let new = match (&self.sets.new, &created) {
            (Some(set), _) => NewReplicaSetState::Found(set.metadata.key.name()),
            (None, Some(created)) => NewReplicaSetState::Created(&created.name),
            (None, None) => NewReplicaSetState::Missing,
        };
        let conditions = updated_conditions(self.deployment, new, self.now);
        let status = status(&self.status_input(created.as_ref()), scope, conditions, self.gates, self.now);
        let recheck = match scope {
            StatusScope::Rollout => recheck_at(self.deployment, &status, self.now),
            StatusScope::Counts => None,
        };
        let deleted = deleted.into_iter().filter_map(|index| self.sets.at(index)).cloned().map(Step::Delete);
        let created = created.map(Step::Create);
        let steps = created.into_iter().chain(edits.into_iter().map(Step::Edit)).chain(deleted).collect();
        Plan { action, steps, status_update: Some(StatusUpdate { status, revision }), recheck }
    }

    /// The edits, one for each replica set, however often it is scaled: first that of the new one, which gets the
    /// annotations of the deployment.
    fn edits(&self, scaled: &[Scale]) -> Vec<Edit> {
        let mut edits: Vec<Edit> = self.sets.new.iter().map(|new| self.renewed(new)).collect();
        for scale in scaled {
            let Some(set) = self.sets.at(scale.index) else { continue };
            let at = edits.iter().position(|edit| Arc::ptr_eq(&edit.set, set)).unwrap_or_else(|| {
                edits.push(Edit::of(set));
                edits.len() - 1
            });
            edits[at].replicas = scale.to;
            edits[at].reasons.push(scale.reason);
            edits[at].annotations.extend(self.replicas_annotations());
        }
        edits.retain(|edit| !edit.is_empty());
        edits
    }

    fn replicas_annotations(&self) -> Changes {
        replicas_annotations(self.deployment.replicas, self.limits.max_total())
    }

    /// The edit of the new replica set: the annotations and `minReadySeconds` of the deployment, and the highest revision.
    fn renewed(&self, new: &Arc<ReplicaSet>) -> Edit {
        let (of_deployment, of_set) = (self.deployment.document.annotations(), new.document.annotations());
        Edit {
            annotations: new_replica_set_annotations(&of_deployment, &of_set, self.sets.next_revision()),
            min_ready_seconds: self.deployment.min_ready_seconds,
            is_of_new: true,
            ..Edit::of(new)
        }
    }

    fn new_replica_set(&self, replicas: i32) -> Result<NewReplicaSet, EditError> {
        let of_deployment = self.deployment.document.annotations();
        let mut annotations =
            new_replica_set_annotations(&of_deployment, &Annotations::new(), self.sets.next_revision());
        annotations.extend(self.replicas_annotations());
        NewReplicaSet::of(self.deployment, replicas, &annotations)
    }

    fn count_created<'s>(&self, set: &'s NewReplicaSet) -> SetCount<'s> {
        SetCount {
            index: self.sets.old.len(),
            name: &set.name,
            created: Some(self.now),
            revision: self.sets.next_revision(),
            desired: set.replicas,
            actual: 0,
            available: 0,
            desired_annotation: Some(self.deployment.replicas),
            max_annotation: Some(self.limits.max_total()),
            observed: false,
            terminating: false,
        }
    }

    /// The revision of the new replica set, where the deployment has another one.
    fn changed_revision(&self, created: Option<&NewReplicaSet>, edits: &[Edit]) -> Option<String> {
        let wanted = match (&self.sets.new, created) {
            (Some(new), _) => {
                let edit = edits.iter().find(|edit| Arc::ptr_eq(&edit.set, new));
                edit.map_or_else(|| new.metadata.annotations.get(REVISION), revision_after)?.to_owned()
            }
            (None, Some(_)) => self.sets.next_revision().to_string(),
            (None, None) => return None,
        };
        (self.deployment.metadata.annotations.get(REVISION) != Some(&wanted)).then_some(wanted)
    }

    fn status_input<'s>(&'s self, created: Option<&'s NewReplicaSet>) -> StatusInput<'s> {
        let created =
            created.map(|set| CountedReplicaSet { name: &set.name, desired: set.replicas, status: &set.status });
        StatusInput {
            deployment: self.deployment,
            limits: self.limits,
            old: self.sets.old.iter().map(|set| counted(set)).collect(),
            new: self.sets.new.as_deref().map(counted).or(created),
        }
    }
}

fn counted(set: &ReplicaSet) -> CountedReplicaSet<'_> {
    CountedReplicaSet { name: set.metadata.key.name(), desired: set.replicas, status: &set.status }
}

fn revision_after(edit: &Edit) -> Option<&str> {
    let changed = edit.annotations.get(REVISION).map(String::as_str);
    changed.or_else(|| edit.set.metadata.annotations.get(REVISION))
}
