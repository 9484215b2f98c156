//! The lifecycle of a pod on its node, as a state machine. Pure: time and randomness are inputs.
//!
//! ```text
//! Waiting ─▶ Pulling ─▶ Creating ─▶ Running ─▶ Exited ─▶ BackOff ─▶ Running …
//!               │  ▲                              └─▶ (for ever)
//!               ▼  │
//!            PullFailed
//! ```
//!
//! # Upstream
//! `pkg/kubelet/{kuberuntime,images}` and `getPhase` of `pkg/kubelet/kubelet_pods.go`

mod container;

use std::time::Duration;

use super::plan::{ContainerPlan, PodPlan, Role};
use crate::behaviour::{Pull, Stop};
use crate::dice::Dice;
use crate::event_recorder::Note;
pub(crate) use container::{Container, Exit, Phase, pull_error};
use container::{NOTICE, about, already_present, creation, ending, image_size, pull_time, readiness};

/// Exit code of a killed container.
const KILLED: i32 = 137;

/// Inputs of a step: time, randomness, and the images of the node.
pub(crate) struct Environment<'a> {
    pub(crate) now: Duration,
    pub(crate) dice: Dice,
    pub(crate) has_image: &'a dyn Fn(&str) -> bool,
    /// `name_namespace(uid)`, the pod format of kubelet logs.
    pub(crate) pod: &'a str,
}

/// Side effects of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) notes: Vec<Note>,
    /// Images that were pulled.
    pub(crate) pulled: Vec<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stopping {
    No,
    /// The containers end at `at`, by themselves or killed; `None` if one cannot be killed.
    Until {
        at: Option<Duration>,
        killed: bool,
    },
    Done,
}

/// A pod on its node, with the state of its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodRun {
    pub(crate) plan: PodPlan,
    pub(crate) containers: Vec<Container>,
    pub(crate) since: Duration,
    /// Reason and message of a failure of the pod as a whole.
    pub(crate) failed: Option<(&'static str, &'static str)>,
    stopping: Stopping,
}

impl PodRun {
    pub(crate) fn new(plan: PodPlan, now: Duration) -> Self {
        let containers = vec![Container::new(); plan.containers.len()];
        Self { plan, containers, since: now, failed: None, stopping: Stopping::No }
    }

    /// Reports whether the pod was stopped and all its containers have terminated.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopping == Stopping::Done
    }

    /// Reports whether the pod sandbox with its network exists.
    pub(crate) fn has_sandbox(&self) -> bool {
        self.containers
            .iter()
            .any(|container| container.runs > 0 || matches!(container.phase, Phase::PullFailed { .. }))
    }

    pub(crate) fn step(&mut self, environment: &Environment<'_>) -> Effects {
        let mut effects = Effects::default();
        let now = environment.now;
        if let Stopping::Until { at: Some(at), killed } = self.stopping
            && at <= now
        {
            self.end_all(now, if killed { KILLED } else { 0 });
            self.stopping = Stopping::Done;
        }
        if self.stopping != Stopping::No || self.is_finished() {
            return effects;
        }
        if self.plan.deadline.is_some_and(|deadline| self.since + deadline <= now) {
            self.failed = Some(("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"));
            self.note_killing(&mut effects, |_| true);
            self.end_all(now, KILLED);
            return effects;
        }
        let mut moved = true;
        while moved {
            moved = false;
            for at in 0..self.containers.len() {
                moved |= self.advance(at, environment, &mut effects);
            }
        }
        if self.is_finished() {
            self.note_killing(&mut effects, |container| container.role == Role::Sidecar);
            self.end_all(now, 0);
        }
        effects
    }

    /// Returns the time of the next step.
    pub(crate) fn next(&self) -> Option<Duration> {
        match self.stopping {
            Stopping::Done => return None,
            Stopping::Until { at, .. } => return at,
            Stopping::No if self.is_finished() => return None,
            Stopping::No => {}
        }
        let deadline = self.plan.deadline.map(|deadline| self.since + deadline);
        self.containers.iter().filter_map(Container::next).chain(deadline).min()
    }

    /// Stops the pod, or shortens its grace period.
    pub(crate) fn stop(&mut self, grace: Duration, environment: &Environment<'_>) -> Effects {
        let mut effects = Effects::default();
        if self.stopping == Stopping::Done {
            return effects;
        }
        if self.stopping == Stopping::No {
            self.note_killing(&mut effects, |_| true);
        }
        let mut killed = false;
        let mut at = Some(environment.now);
        for (plan, container) in self.plan.containers.iter().zip(&self.containers) {
            if !matches!(container.phase, Phase::Running { .. }) {
                continue;
            }
            let end = match plan.stop {
                Stop::Stuck => None,
                Stop::Never => {
                    killed = true;
                    Some(grace)
                }
                Stop::After(range) => {
                    let time = environment.dice.between(range.min, range.max, &[&self.plan.uid, &plan.name, "stop"]);
                    killed |= time > grace;
                    Some(time.min(grace))
                }
            };
            at = at.zip(end.map(|end| environment.now + end)).map(|(one, other)| one.max(other));
        }
        if let Stopping::Until { at: Some(earlier), .. } = self.stopping {
            at = at.map(|at| at.min(earlier));
        }
        self.stopping = Stopping::Until { at, killed };
        effects
    }

    /// Applies a changed plan: a new image restarts its container, new behaviour applies to the steps that are left.
    pub(crate) fn replan(&mut self, plan: PodPlan, environment: &Environment<'_>) -> Effects {
        let mut effects = Effects::default();
        let old = std::mem::replace(&mut self.plan, plan);
        // Ephemeral containers are appended.
        self.containers.resize(self.plan.containers.len(), Container::new());
        if self.stopping != Stopping::No {
            return effects;
        }
        for (at, before) in old.containers.iter().enumerate().take(self.plan.containers.len()) {
            let plan = self.plan.containers[at].clone();
            let other_image = plan.image != before.image;
            let container = &mut self.containers[at];
            match &mut container.phase {
                Phase::Running { .. } if other_image => {
                    let message = format!("Container {} definition changed, will be restarted", plan.name);
                    effects.notes.push(about(&plan, Note::normal("Killing", message)));
                    container.backoff = None;
                    container.exit(environment.now, 0);
                    container.begin_anew();
                }
                Phase::Running { since, started_at, ready_at, ends } => {
                    if plan.ready != before.ready || plan.probe != before.probe {
                        *ready_at = readiness(&self.plan.uid, &plan, *since, *started_at, environment.dice);
                        container.ready = false;
                    }
                    if plan.end != before.end {
                        let ending = ending(&self.plan.uid, &plan, container.runs, environment.dice);
                        *ends = ending.map(|(after, code)| (environment.now + after, code));
                    }
                }
                Phase::Exited { .. } if other_image && plan.restart.after(0) => container.begin_anew(),
                Phase::Exited { .. } => {}
                _ if other_image || plan.pull != before.pull => {
                    container.pull_backoff = Duration::ZERO;
                    container.backoff = None;
                    container.phase = Phase::Waiting;
                }
                Phase::Waiting
                | Phase::Pulling { .. }
                | Phase::Creating { .. }
                | Phase::PullFailed { .. }
                | Phase::Malformed
                | Phase::BackOff { .. } => {}
            }
        }
        effects
    }

    /// Reports whether the pod is in a final state until it is deleted.
    pub(crate) fn is_finished(&self) -> bool {
        if self.failed.is_some() {
            return true;
        }
        let mut mains = true;
        for (plan, container) in self.plan.containers.iter().zip(&self.containers) {
            match (plan.role, &container.phase) {
                (Role::Init, Phase::Exited { exit, until: None }) if exit.code != 0 => return true,
                (Role::Main, Phase::Exited { until: None, .. }) | (Role::Init | Role::Sidecar | Role::Ephemeral, _) => {
                }
                (Role::Main, _) => mains = false,
            }
        }
        mains
    }

    /// Reports whether the init containers have succeeded; this never reverts.
    pub(crate) fn is_initialized(&self) -> bool {
        let mut parts = self.plan.containers.iter().zip(&self.containers);
        parts.clone().any(|(plan, container)| plan.role == Role::Main && container.runs > 0)
            || parts.all(|(plan, container)| container.is_initialized(plan.role))
    }

    /// Returns the phase of the pod.
    pub(crate) fn phase(&self) -> &'static str {
        if self.failed.is_some() {
            return "Failed";
        }
        let (mut waiting, mut running, mut failures) = (false, false, false);
        for (plan, container) in self.plan.containers.iter().zip(&self.containers) {
            match (plan.role, &container.phase) {
                (Role::Init, Phase::Exited { exit, until: None }) if exit.code != 0 => return "Failed",
                (Role::Init | Role::Sidecar | Role::Ephemeral, _) => {}
                (Role::Main, Phase::Running { .. }) => running = true,
                (Role::Main, Phase::Exited { exit, .. }) => failures |= exit.code != 0,
                (Role::Main, _) if container.last.is_some() => {}
                (Role::Main, _) => waiting = true,
            }
        }
        if waiting || !self.is_initialized() {
            "Pending"
        } else if running || !(self.is_finished() || self.is_stopped()) {
            "Running"
        } else if failures {
            "Failed"
        } else {
            "Succeeded"
        }
    }

    fn may_start(&self, at: usize) -> bool {
        let earlier = self.plan.containers.iter().zip(&self.containers).take(at);
        if matches!(self.plan.containers[at].role, Role::Main | Role::Ephemeral) && self.is_initialized() {
            return true;
        }
        earlier.filter(|(plan, _)| plan.role != Role::Main).all(|(plan, container)| container.is_initialized(plan.role))
    }

    /// Advances a container by one step if that is due.
    fn advance(&mut self, at: usize, environment: &Environment<'_>, effects: &mut Effects) -> bool {
        let now = environment.now;
        if self.containers[at].phase == Phase::Waiting && !self.may_start(at) {
            return false;
        }
        let uid = &*self.plan.uid;
        let plan = &self.plan.containers[at];
        let container = &mut self.containers[at];
        let mut note = |note: Note| effects.notes.push(about(plan, note));
        match container.phase.clone() {
            Phase::Waiting if plan.malformed => {
                let why = format!("Failed to apply default image tag {:?}: couldn't parse image name", plan.image);
                note(Note::warning("InspectFailed", why));
                note(Note::warning("Failed", "Error: InvalidImageName"));
                container.phase = Phase::Malformed;
            }
            Phase::Waiting => {
                let wants = plan.pull_always || plan.pull == Pull::Fails || !(environment.has_image)(&plan.image);
                if wants {
                    note(Note::normal("Pulling", format!("Pulling image {:?}", plan.image)));
                    let time = pull_time(uid, plan, environment.dice);
                    container.phase = Phase::Pulling { until: now + time };
                } else {
                    note(already_present(plan));
                    container.phase = Phase::Creating { until: now + creation(uid, plan, environment.dice) };
                }
            }
            Phase::Pulling { until } if until <= now => {
                if plan.pull == Pull::Fails {
                    container.fail_pull(plan, now, &mut note);
                } else {
                    let took = format!("{}ms", pull_time(uid, plan, environment.dice).as_millis());
                    let message = format!(
                        "Successfully pulled image {:?} in {took} ({took} including waiting). Image size: {} bytes.",
                        plan.image,
                        image_size(&plan.image)
                    );
                    note(Note::normal("Pulled", message));
                    effects.pulled.push(plan.image.clone());
                    container.phase = Phase::Creating { until: now + creation(uid, plan, environment.dice) };
                }
            }
            Phase::PullFailed { failed_at, backing_off: false } if failed_at + NOTICE <= now => {
                note(Note::normal("BackOff", format!("Back-off pulling image {:?}", plan.image)));
                note(Note::warning("Failed", "Error: ImagePullBackOff"));
                container.phase = Phase::PullFailed { failed_at, backing_off: true };
            }
            Phase::PullFailed { failed_at, backing_off: true } if failed_at + container.pull_backoff <= now => {
                note(Note::normal("Pulling", format!("Pulling image {:?}", plan.image)));
                container.fail_pull(plan, now, &mut note);
            }
            Phase::Creating { until } if until <= now => {
                container.run(uid, plan, now, environment.dice);
                note(Note::normal("Created", "Container created"));
                note(Note::normal("Started", "Container started"));
            }
            Phase::Running { started_at, ready_at, ends, .. } => {
                if let Some((_, code)) = ends.filter(|(end, _)| *end <= now) {
                    container.exit(now, code);
                    if plan.restart.after(code)
                        && let Phase::Exited { until, .. } = &mut container.phase
                    {
                        *until = Some(now + NOTICE);
                    }
                    return true;
                }
                let (started, ready) = (started_at <= now, ready_at.is_some_and(|ready_at| ready_at <= now));
                let moved = container.started != started || container.ready != ready;
                container.started = started;
                container.ready = ready;
                return moved;
            }
            Phase::Exited { exit, until: Some(until) } if until <= now => {
                let delay = container.back_off(now);
                if exit.at + delay > now {
                    let message =
                        format!("Back-off restarting failed container {} in pod {}", plan.name, environment.pod);
                    note(Note::warning("BackOff", message));
                    container.last = Some(exit);
                    container.phase = Phase::BackOff { until: exit.at + delay, delay };
                } else {
                    container.restart(uid, plan, environment, &mut note);
                }
            }
            Phase::BackOff { until, .. } if until <= now => container.restart(uid, plan, environment, &mut note),
            Phase::Pulling { .. }
            | Phase::PullFailed { .. }
            | Phase::Creating { .. }
            | Phase::Malformed
            | Phase::Exited { .. }
            | Phase::BackOff { .. } => return false,
        }
        true
    }

    fn note_killing(&self, effects: &mut Effects, which: impl Fn(&ContainerPlan) -> bool) {
        for (plan, container) in self.plan.containers.iter().zip(&self.containers) {
            if which(plan) && matches!(container.phase, Phase::Running { .. }) {
                let message = format!("Stopping container {}", plan.name);
                effects.notes.push(about(plan, Note::normal("Killing", message)));
            }
        }
    }

    /// Terminates running containers, and those that would restart.
    fn end_all(&mut self, now: Duration, code: i32) {
        for container in &mut self.containers {
            match &mut container.phase {
                Phase::Running { .. } => container.exit(now, code),
                Phase::Exited { until, .. } => *until = None,
                Phase::BackOff { .. } => {
                    if let Some(exit) = container.last.take() {
                        container.phase = Phase::Exited { exit, until: None };
                    }
                }
                Phase::Waiting
                | Phase::Pulling { .. }
                | Phase::Creating { .. }
                | Phase::PullFailed { .. }
                | Phase::Malformed => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
