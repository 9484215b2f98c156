//! The order of a reconcile: what is changed about the replica sets, and what the deployment says of itself then.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::views::{Deployment, DeploymentStrategy, ReplicaSet};
use kcm_api::{EditError, InternedStr, Selector};

use super::annotations::{Annotations, Changes, REVISION, of_new_set, rollback_to, sizes};
use super::events::Notice;
use super::observe::Observed;
use super::replica_sets::{Edit, NewSet, Sets, count};
use super::rollback::Rollback;
use super::rollout::{InvalidLimit, Limits, Scale, SetCount, cleanup, proportion, recreate, rolling};
use super::settings::Settings;
use super::status::{Basis, Counted, Scope, is_complete, recheck_at, status};
use super::status_update::{NewSetIs, Report, conditions_with_news, report_everything};

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

/// Why nothing can be done before the deployment is changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// A strategy that nobody knows.
    #[error("unexpected deployment strategy type: {0}")]
    Strategy(InternedStr),
    /// A limit of the strategy that is no count.
    #[error("cannot tell the limits of the rolling update")]
    Limit(#[from] InvalidLimit),
    /// A part of the deployment, or of a replica set, that is no object.
    #[error("cannot edit the object")]
    Edit(#[from] EditError),
}

/// The plan for a deployment whose selector is empty; it needs no replica sets.
pub(super) fn plan_for_everything(deployment: &Deployment) -> Plan {
    Plan {
        course: Course::SelectsEverything,
        steps: vec![Step::Tell(Notice::SelectingAll)],
        report: Some(report_everything(deployment)),
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
    Planner { observed, deployment, sets: &sets, limits: &limits, settings, now }.plan()
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

/// What a course changes about the replica sets, in this order.
#[derive(Default)]
struct Changed {
    created: Option<NewSet>,
    scaled: Vec<Scale>,
    /// Indices of sets.
    deleted: Vec<usize>,
}

impl<'a> Planner<'a> {
    fn plan(&self) -> Result<Plan, Refusal> {
        let course = self.course()?;
        let changed = match course {
            Course::SelectsEverything => return Ok(plan_for_everything(self.deployment)),
            Course::Terminating => Changed::default(),
            Course::Paused => self.pause(),
            Course::RollBack => return self.roll_back(),
            Course::Scale => Changed { scaled: self.resized(), ..Changed::default() },
            Course::Recreate => self.recreate()?,
            Course::RollingUpdate => self.roll()?,
        };
        Ok(self.finish(course, changed))
    }

    fn course(&self) -> Result<Course, Refusal> {
        let deployment = self.deployment;
        Ok(if deployment.selector.as_ref().is_ok_and(Selector::is_everything) {
            Course::SelectsEverything
        } else if deployment.metadata.is_terminating() {
            Course::Terminating
        } else if deployment.paused {
            Course::Paused
        } else if rollback_to(&deployment.metadata).is_some() {
            Course::RollBack
        } else if proportion::is_scaling_event(self.old_counts().iter().chain(&self.new_count()), deployment.replicas) {
            Course::Scale
        } else {
            match &deployment.strategy {
                DeploymentStrategy::RollingUpdate { .. } => Course::RollingUpdate,
                DeploymentStrategy::Recreate => Course::Recreate,
                DeploymentStrategy::Other(name) => return Err(Refusal::Strategy(name.clone())),
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

    /// Old sets that are not needed any more, once what was last told is a complete rollout.
    fn excess_after_rollout(&self) -> Vec<usize> {
        if is_complete(self.deployment, &self.deployment.status) { self.excess() } else { Vec::new() }
    }

    fn pause(&self) -> Changed {
        // What is to be rolled back to is kept.
        let rolls_back = rollback_to(&self.deployment.metadata).is_some();
        let mut deleted = if rolls_back { Vec::new() } else { self.excess() };
        let scaled = self.resized();
        // The latest of the old sets may be scaled up and exceed the history limit at once.
        deleted.retain(|&index| scaled.iter().all(|scale| scale.index != index));
        Changed { created: None, scaled, deleted }
    }

    fn roll(&self) -> Result<Changed, Refusal> {
        let old = self.old_counts();
        let created = match &self.sets.new {
            Some(_) => None,
            None => Some(self.new_set(rolling::first_size(&old, self.limits))?),
        };
        // A set that is made has its size already: only old ones can follow in the same reconcile.
        let new = self.new_count().or_else(|| created.as_ref().map(|set| self.count_made(set)));
        let scaled = new.map_or_else(Vec::new, |new| rolling::plan(&new, &old, self.limits));
        let deleted = if scaled.is_empty() { self.excess_after_rollout() } else { Vec::new() };
        Ok(Changed { created, scaled, deleted })
    }

    fn recreate(&self) -> Result<Changed, Refusal> {
        // Pods of a replica set that is not claimed do not count: no change of them would enqueue the deployment.
        let old: BTreeSet<_> = self.sets.old.iter().map(|set| &set.metadata.uid).collect();
        let old_pods = self.observed.pods.iter().filter(|(set, _)| old.contains(set)).map(|(_, phase)| *phase);
        let (created, scaled) =
            match recreate::plan(self.new_count().as_ref(), &self.old_counts(), old_pods, self.limits) {
                recreate::Plan::ScaleDown(scaled) => return Ok(Changed { scaled, ..Changed::default() }),
                recreate::Plan::AwaitOldPods => return Ok(Changed::default()),
                recreate::Plan::Create { replicas } => (Some(self.new_set(replicas)?), Vec::new()),
                recreate::Plan::ScaleNew(scale) => (None, vec![scale]),
                recreate::Plan::Rest => (None, Vec::new()),
            };
        Ok(Changed { created, scaled, deleted: self.excess_after_rollout() })
    }

    /// A rollback waits until the present template has its replica set: it may have to be rolled back to.
    fn roll_back(&self) -> Result<Plan, Refusal> {
        let revision = rollback_to(&self.deployment.metadata).expect("a rollback must be asked for");
        let Some(new) = &self.sets.new else {
            let replicas = match self.deployment.strategy {
                DeploymentStrategy::RollingUpdate { .. } => rolling::first_size(&self.old_counts(), self.limits),
                DeploymentStrategy::Recreate => self.deployment.replicas,
                DeploymentStrategy::Other(ref name) => return Err(Refusal::Strategy(name.clone())),
            };
            let created = Some(self.new_set(replicas)?);
            return Ok(self.finish(Course::RollBack, Changed { created, ..Changed::default() }));
        };
        let edit = self.renewed(new);
        let present = revision_after(&edit).unwrap_or_default().to_owned();
        let rollback = Rollback::decide(self.deployment, self.sets, &present, revision);
        let edit = (!edit.is_empty()).then_some(Step::Edit(edit));
        let steps = edit.into_iter().chain([Step::RollBack { rollback, present }]).collect();
        Ok(Plan { course: Course::RollBack, steps, report: None, recheck: None })
    }

    fn finish(&self, course: Course, changed: Changed) -> Plan {
        let Changed { created, scaled, deleted } = changed;
        let edits = if course == Course::Terminating { Vec::new() } else { self.edits(&scaled) };
        let revision = if course == Course::Terminating { None } else { self.other_revision(created.as_ref(), &edits) };
        let scope = match course {
            Course::RollingUpdate | Course::Recreate => Scope::Rollout,
            Course::SelectsEverything | Course::Terminating | Course::Paused | Course::RollBack | Course::Scale => {
                Scope::Counts
            }
        };
        let new = match (&self.sets.new, &created) {
            (Some(set), _) => NewSetIs::Found(set.metadata.key.name()),
            (None, Some(made)) => NewSetIs::Made(&made.name),
            (None, None) => NewSetIs::Missing,
        };
        let conditions = conditions_with_news(self.deployment, new, self.now);
        let status = status(&self.basis(created.as_ref()), scope, conditions, self.settings, self.now);
        let recheck = match scope {
            Scope::Rollout => recheck_at(self.deployment, &status, self.now),
            Scope::Counts => None,
        };
        let deleted = deleted.into_iter().filter_map(|index| self.sets.at(index)).cloned().map(Step::Delete);
        let created = created.map(Step::Create);
        let steps = created.into_iter().chain(edits.into_iter().map(Step::Edit)).chain(deleted).collect();
        Plan { course, steps, report: Some(Report { status, revision }), recheck }
    }

    /// One edit a set, however often it is scaled: first the new one, whose notes follow the deployment's.
    fn edits(&self, scaled: &[Scale]) -> Vec<Edit> {
        let mut edits: Vec<Edit> = self.sets.new.iter().map(|new| self.renewed(new)).collect();
        for scale in scaled {
            let Some(set) = self.sets.at(scale.index) else { continue };
            let (why, from, to) = (scale.why, scale.from, scale.to);
            tracing::debug!(replica_set = %set.metadata.key, ?why, from, to, "Replica set gets another size");
            let at = edits.iter().position(|edit| Arc::ptr_eq(&edit.set, set)).unwrap_or_else(|| {
                edits.push(Edit::of(set));
                edits.len() - 1
            });
            edits[at].replicas = to;
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

    fn count_made<'s>(&self, set: &'s NewSet) -> SetCount<'s> {
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
    fn other_revision(&self, made: Option<&NewSet>, edits: &[Edit]) -> Option<String> {
        let wanted = match (&self.sets.new, made) {
            (Some(new), _) => {
                let edit = edits.iter().find(|edit| Arc::ptr_eq(&edit.set, new));
                edit.map_or_else(|| new.metadata.annotations.get(REVISION), revision_after)?.to_owned()
            }
            (None, Some(_)) => self.sets.next_revision().to_string(),
            (None, None) => return None,
        };
        (self.deployment.metadata.annotations.get(REVISION) != Some(&wanted)).then_some(wanted)
    }

    fn basis<'s>(&'s self, made: Option<&'s NewSet>) -> Basis<'s> {
        let made = made.map(|set| Counted { name: &set.name, desired: set.replicas, status: &set.status });
        Basis {
            deployment: self.deployment,
            limits: self.limits,
            old: self.sets.old.iter().map(|set| counted(set)).collect(),
            new: self.sets.new.as_deref().map(counted).or(made),
        }
    }
}

fn counted(set: &ReplicaSet) -> Counted<'_> {
    Counted { name: set.metadata.key.name(), desired: set.replicas, status: &set.status }
}

fn revision_after(edit: &Edit) -> Option<&str> {
    let changed = edit.annotations.get(REVISION).map(String::as_str);
    changed.or_else(|| edit.set.metadata.annotations.get(REVISION))
}
