//! The order of a reconcile: what is changed about the replica sets, and what the deployment says of itself then.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::views::{Deployment, DeploymentStatus, DeploymentStrategy, ReplicaSet};
use kcm_api::{EditError, Istr};

use super::annotations::{Annotations, Changes, REVISION, of_new_set, rollback_to, sizes};
use super::conditions::{Conditions, PROGRESSING, Reason};
use super::notice::Notice;
use super::observe::Observed;
use super::rollback::Rollback;
use super::rollout::{InvalidLimit, Limits, Scale, SetCount, cleanup, proportion, recreate, rolling};
use super::sets::{Edit, NewSet, Sets, count};
use super::settings::Settings;
use super::status::{Basis, Counted, Scope, is_complete, progress_deadline, recheck_at, status};

/// What one reconcile does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// What it is about.
    pub(super) course: Course,
    /// What is changed, in order.
    pub(super) steps: Vec<Step>,
    /// What the deployment says after it; nothing where the last step puts the deployment itself.
    pub(super) report: Option<Report>,
    /// When to look again even if nothing changes until then.
    pub(super) recheck: Option<Timestamp>,
}

/// What a reconcile is about: the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// The selector is empty: nothing is done but to say so.
    SelectsEverything,
    /// The deployment is being deleted: its replica sets are the garbage collector's.
    Terminating,
    /// It is paused: it is scaled and tidied up, but no replica set is made.
    Paused,
    /// It is to be rolled back.
    RollBack,
    /// Its size has changed since its replica sets were scaled.
    Scale,
    /// Old pods go before new ones come.
    Recreate,
    /// Old pods are replaced step by step.
    RollingUpdate,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Say something.
    Tell(Notice),
    /// Make a replica set.
    Create(NewSet),
    /// Change a replica set.
    Edit(Edit),
    /// Delete a replica set.
    Delete(Arc<ReplicaSet>),
    /// Roll back, and clear the request for it.
    RollBack {
        /// To what.
        rollback: Rollback,
        /// The revision of the present template.
        present: String,
    },
}

/// What a deployment says of itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Report {
    /// Its status.
    pub(super) status: DeploymentStatus,
    /// Its revision, where that changes.
    pub(super) revision: Option<String>,
}

impl Report {
    /// Whether it says anything that is not said yet.
    pub(super) fn is_news(&self, deployment: &Deployment) -> bool {
        self.revision.is_some() || self.status != deployment.status
    }
}

/// Why nothing can be done before the deployment is changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// A strategy that nobody knows.
    #[error("unexpected deployment strategy type: {0}")]
    Strategy(Istr),
    /// A limit of the strategy that is no count.
    #[error("cannot tell the limits of the rolling update")]
    Limit(#[from] InvalidLimit),
    /// A part of the deployment, or of a replica set, that is no object.
    #[error("cannot edit the object")]
    Edit(#[from] EditError),
}

/// The plan for a deployment whose selector is empty.
pub(super) fn plan_for_everything(deployment: &Deployment) -> Plan {
    let mut status = deployment.status.clone();
    status.observed_generation = status.observed_generation.max(deployment.metadata.generation);
    Plan {
        course: Course::SelectsEverything,
        steps: vec![Step::Tell(Notice::SelectingAll)],
        report: Some(Report { status, revision: None }),
        recheck: None,
    }
}

/// Decides from what was observed and the replica sets that belong to the deployment, after adoption.
///
/// # Errors
/// A deployment that the API would refuse.
pub(super) fn plan(
    observed: &Observed,
    claimed: Vec<Arc<ReplicaSet>>,
    settings: Settings,
    now: Timestamp,
) -> Result<Plan, Refusal> {
    let deployment = &*observed.deployment;
    let sets = Sets::of(deployment, claimed);
    let limits = limits_of(deployment)?;
    let planner = Planner { observed, deployment, sets: &sets, limits: &limits, settings, now };
    planner.plan()
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
    sets: &'a Sets,
    limits: &'a Limits,
    settings: Settings,
    now: Timestamp,
}

/// What a course changes about the replica sets.
#[derive(Default)]
struct Changed {
    created: Option<NewSet>,
    scales: Vec<Scale>,
    deleted: Vec<usize>,
}

impl<'a> Planner<'a> {
    fn plan(&self) -> Result<Plan, Refusal> {
        let course = self.course()?;
        match course {
            Course::SelectsEverything => Ok(plan_for_everything(self.deployment)),
            Course::Terminating => self.finish(course, Changed::default()),
            Course::Paused => {
                let rolls_back = rollback_to(&self.deployment.metadata).is_some();
                let deleted = if rolls_back { Vec::new() } else { self.excess() };
                self.finish(course, Changed { scales: self.scales(), deleted, created: None })
            }
            Course::RollBack => self.roll_back(),
            Course::Scale => self.finish(course, Changed { scales: self.scales(), ..Changed::default() }),
            Course::Recreate => self.finish(course, self.recreate()?),
            Course::RollingUpdate => self.finish(course, self.roll()?),
        }
    }

    fn course(&self) -> Result<Course, Refusal> {
        let deployment = self.deployment;
        Ok(if deployment.selector.as_ref().is_ok_and(kcm_api::Selector::is_everything) {
            Course::SelectsEverything
        } else if deployment.metadata.is_terminating() {
            Course::Terminating
        } else if deployment.paused {
            Course::Paused
        } else if rollback_to(&deployment.metadata).is_some() {
            Course::RollBack
        } else if proportion::is_scaling_event(self.old().iter().chain(&self.new()), deployment.replicas) {
            Course::Scale
        } else {
            match &deployment.strategy {
                DeploymentStrategy::RollingUpdate { .. } => Course::RollingUpdate,
                DeploymentStrategy::Recreate => Course::Recreate,
                DeploymentStrategy::Other(name) => return Err(Refusal::Strategy(name.clone())),
            }
        })
    }

    fn old(&self) -> Vec<SetCount<'a>> {
        self.sets.old.iter().enumerate().map(|(index, set)| count(index, set)).collect()
    }

    fn new(&self) -> Option<SetCount<'a>> {
        self.sets.new.as_ref().map(|set| count(self.sets.old.len(), set))
    }

    fn scales(&self) -> Vec<Scale> {
        proportion::plan(self.new().as_ref(), &self.old(), self.limits, self.deployment.status.replicas)
    }

    fn excess(&self) -> Vec<usize> {
        cleanup::plan(&self.old(), self.deployment.revision_history_limit)
    }

    /// Old sets that are not needed any more, once what was last told is a complete rollout.
    fn excess_after_rollout(&self) -> Vec<usize> {
        if is_complete(self.deployment, &self.deployment.status) { self.excess() } else { Vec::new() }
    }

    fn roll(&self) -> Result<Changed, Refusal> {
        let old = self.old();
        let created = match &self.sets.new {
            Some(_) => None,
            None => Some(self.new_set(rolling::first_size(&old, self.limits))?),
        };
        // A set that is made has its size already: only old ones can follow in the same reconcile.
        let new = self.new().or_else(|| created.as_ref().map(|set| self.count_created(set)));
        let scales = new.map_or_else(Vec::new, |new| rolling::plan(&new, &old, self.limits));
        let deleted = if scales.is_empty() { self.excess_after_rollout() } else { Vec::new() };
        Ok(Changed { created, scales, deleted })
    }

    fn recreate(&self) -> Result<Changed, Refusal> {
        let new = self.sets.new.as_ref().map(|set| &set.metadata.uid);
        let old_pods = self.observed.pods.iter().filter(|(set, _)| Some(set) != new).map(|(_, phase)| *phase);
        Ok(match recreate::plan(self.new().as_ref(), &self.old(), old_pods, self.limits) {
            recreate::Plan::ScaleDown(scales) => Changed { scales, ..Changed::default() },
            recreate::Plan::AwaitOldPods => Changed::default(),
            recreate::Plan::Create { replicas } => Changed {
                created: Some(self.new_set(replicas)?),
                scales: Vec::new(),
                deleted: self.excess_after_rollout(),
            },
            recreate::Plan::ScaleNew(scale) => {
                Changed { scales: vec![scale], deleted: self.excess_after_rollout(), created: None }
            }
            recreate::Plan::Rest => Changed { deleted: self.excess_after_rollout(), ..Changed::default() },
        })
    }

    /// A rollback waits until the present template has its replica set: it may have to be rolled back to.
    fn roll_back(&self) -> Result<Plan, Refusal> {
        let Some(revision) = rollback_to(&self.deployment.metadata) else {
            return self.finish(Course::RollBack, Changed::default());
        };
        let Some(new) = &self.sets.new else {
            let replicas = match self.deployment.strategy {
                DeploymentStrategy::RollingUpdate { .. } => rolling::first_size(&self.old(), self.limits),
                DeploymentStrategy::Recreate | DeploymentStrategy::Other(_) => self.deployment.replicas,
            };
            let created = Some(self.new_set(replicas)?);
            return self.finish(Course::RollBack, Changed { created, ..Changed::default() });
        };
        let edit = self.renewed(new);
        let present = self.revision_after(&edit).unwrap_or_default().to_owned();
        let rollback = Rollback::decide(self.deployment, self.sets, revision);
        let mut steps = if edit.is_empty() { Vec::new() } else { vec![Step::Edit(edit)] };
        steps.push(Step::RollBack { rollback, present });
        Ok(Plan { course: Course::RollBack, steps, report: None, recheck: None })
    }

    fn finish(&self, course: Course, changed: Changed) -> Result<Plan, Refusal> {
        let edits = self.edits(course, &changed.scales);
        let revision = self.revision(course, changed.created.is_some(), &edits);
        let scope = match course {
            Course::RollingUpdate | Course::Recreate => Scope::Rollout,
            Course::SelectsEverything | Course::Terminating | Course::Paused | Course::RollBack | Course::Scale => {
                Scope::Counts
            }
        };
        let conditions = self.conditions(course, changed.created.as_ref());
        let basis = self.basis(changed.created.as_ref());
        let status = status(&basis, scope, conditions, self.settings, self.now);
        let recheck = match scope {
            Scope::Rollout => recheck_at(self.deployment, &status, self.now),
            Scope::Counts => None,
        };
        let created = changed.created.clone().map(Step::Create);
        let deleted = changed.deleted.iter().filter_map(|&index| self.sets.at(index)).cloned().map(Step::Delete);
        let steps = created.into_iter().chain(edits.into_iter().map(Step::Edit)).chain(deleted).collect();
        Ok(Plan { course, steps, report: Some(Report { status, revision }), recheck })
    }

    /// One edit a set, however often it is scaled: first the new one, whose notes follow the deployment's.
    fn edits(&self, course: Course, scales: &[Scale]) -> Vec<Edit> {
        if course == Course::Terminating {
            return Vec::new();
        }
        let mut edits: Vec<Edit> = self.sets.new.iter().map(|new| self.renewed(new)).collect();
        for scale in scales {
            let Some(set) = self.sets.at(scale.index) else { continue };
            let at = edits.iter().position(|edit| Arc::ptr_eq(&edit.set, set)).unwrap_or_else(|| {
                edits.push(Edit::of(set));
                edits.len() - 1
            });
            tracing::debug!(replica_set = %set.metadata.key, why = ?scale.why, from = scale.from, to = scale.to, "Scaling");
            edits[at].replicas = scale.to;
            edits[at].annotations.extend(self.sizes());
        }
        edits.retain(|edit| !edit.is_empty());
        edits
    }

    fn sizes(&self) -> Changes {
        sizes(self.deployment.replicas, self.limits.max_total())
    }

    /// The new set with the deployment's notes, a revision above all others, and its `minReadySeconds`.
    fn renewed(&self, new: &Arc<ReplicaSet>) -> Edit {
        let (of_deployment, of_set) = (self.deployment.document.annotations(), new.document.annotations());
        Edit {
            annotations: of_new_set(&of_deployment, &of_set, self.sets.next_revision()),
            min_ready_seconds: self.deployment.min_ready_seconds,
            ..Edit::of(new)
        }
    }

    fn new_set(&self, replicas: i32) -> Result<NewSet, EditError> {
        let of_deployment = self.deployment.document.annotations();
        let mut annotations = of_new_set(&of_deployment, &Annotations::new(), self.sets.next_revision());
        annotations.extend(self.sizes());
        NewSet::of(self.deployment, replicas, &annotations)
    }

    fn count_created<'s>(&self, set: &'s NewSet) -> SetCount<'s> {
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

    /// The revision of the new set, where the deployment has another one.
    fn revision(&self, course: Course, created: bool, edits: &[Edit]) -> Option<String> {
        let wanted = if created {
            self.sets.next_revision().to_string()
        } else {
            let new = self.sets.new.as_ref()?;
            let edit = edits.iter().find(|edit| Arc::ptr_eq(&edit.set, new));
            edit.map_or_else(|| new.metadata.annotations.get(REVISION), |edit| self.revision_after(edit))?.to_owned()
        };
        let differs = self.deployment.metadata.annotations.get(REVISION) != Some(&wanted);
        (differs && course != Course::Terminating).then_some(wanted)
    }

    fn revision_after<'e>(&self, edit: &'e Edit) -> Option<&'e str> {
        let changed = edit.annotations.get(REVISION).map(String::as_str);
        changed.or_else(|| edit.set.metadata.annotations.get(REVISION))
    }

    /// The conditions before the status is reckoned: those told, and what has just happened.
    fn conditions(&self, course: Course, created: Option<&NewSet>) -> Conditions {
        let mut conditions = Conditions::of(&self.deployment.status.conditions);
        if progress_deadline(self.deployment).is_none() {
            return conditions;
        }
        let now = self.now;
        // A rollout that has failed stays failed: a pause does not mend it.
        if course != Course::Terminating && !conditions.progress_is(Reason::ProgressDeadlineExceeded) {
            let told = conditions.progress_is(Reason::DeploymentPaused);
            match (self.deployment.paused, told) {
                (true, false) => conditions.put(Reason::DeploymentPaused.at(now, "Deployment is paused")),
                (false, true) => conditions.put(Reason::DeploymentResumed.at(now, "Deployment is resumed")),
                (true, true) | (false, false) => {}
            }
        }
        if let Some(created) = created {
            let message = format!("Created new replica set \"{}\"", created.name);
            conditions.put(Reason::NewReplicaSetCreated.at(now, message));
        } else if let (Some(new), None) = (&self.sets.new, conditions.get(PROGRESSING)) {
            let message = format!("Found new replica set \"{}\"", new.metadata.key.name());
            conditions.put(Reason::FoundNewReplicaSet.at(now, message));
        }
        conditions
    }

    fn basis<'s>(&'s self, created: Option<&'s NewSet>) -> Basis<'s> {
        fn counted(set: &Arc<ReplicaSet>) -> Counted<'_> {
            Counted { name: set.metadata.key.name(), desired: set.replicas, status: &set.status }
        }
        let made = created.map(|set| Counted { name: &set.name, desired: set.replicas, status: &set.status });
        Basis {
            deployment: self.deployment,
            limits: self.limits,
            old: self.sets.old.iter().map(counted).collect(),
            new: self.sets.new.as_ref().map(counted).or(made),
        }
    }
}

/// What the deployment says when no replica set could be made for its template.
pub(super) fn report_failed_creation(deployment: &Deployment, message: &str, now: Timestamp) -> Option<Report> {
    progress_deadline(deployment)?;
    let mut status = deployment.status.clone();
    let mut conditions = Conditions::of(&status.conditions);
    conditions.put(Reason::ReplicaSetCreateError.at(now, message));
    status.conditions = conditions.into_boxed_slice();
    Some(Report { status, revision: None })
}

/// What the deployment says when the name of its replica set is taken: next time it will be another one.
pub(super) fn report_collision(deployment: &Deployment) -> Report {
    let mut status = deployment.status.clone();
    status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
    Report { status, revision: None }
}
