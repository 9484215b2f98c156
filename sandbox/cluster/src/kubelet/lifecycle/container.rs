//! The state machine of a container.

use std::time::Duration;

use super::Environment;
use crate::behaviour::{End, Pull, Ready};
use crate::dice::Dice;
use crate::event_recorder::Note;
use crate::kubelet::plan::{ContainerPlan, Role};

const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const LAST_BACKOFF: Duration = Duration::from_mins(5);
/// Delay between an exit and the reaction to it, and between a failed pull and its back-off.
pub(super) const NOTICE: Duration = Duration::from_secs(1);

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for the containers before it.
    Waiting,
    Pulling {
        until: Duration,
    },
    Creating {
        until: Duration,
    },
    PullFailed {
        failed_at: Duration,
        backing_off: bool,
    },
    /// The image name is invalid.
    Malformed,
    Running {
        since: Duration,
        started_at: Duration,
        ready_at: Option<Duration>,
        ends: Option<(Duration, i32)>,
    },
    Exited {
        exit: Exit,
        /// Time of the reaction; `None` if the state is final.
        until: Option<Duration>,
    },
    BackOff {
        until: Duration,
        delay: Duration,
    },
}

/// The termination of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) since: Duration,
    pub(crate) at: Duration,
    /// Number of the run, counted from 1.
    pub(crate) run: u32,
}

/// A container and its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) phase: Phase,
    pub(crate) runs: u32,
    pub(crate) last: Option<Exit>,
    pub(crate) started: bool,
    pub(crate) ready: bool,
    /// The latest back-off and its start.
    pub(super) backoff: Option<(Duration, Duration)>,
    pub(super) pull_backoff: Duration,
}

impl Container {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Waiting,
            runs: 0,
            last: None,
            started: false,
            ready: false,
            backoff: None,
            pull_backoff: Duration::ZERO,
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Pulling { until } | Phase::Creating { until } | Phase::BackOff { until, .. } => Some(*until),
            Phase::PullFailed { failed_at, backing_off } => {
                Some(*failed_at + if *backing_off { self.pull_backoff } else { NOTICE })
            }
            Phase::Running { started_at, ready_at, ends, .. } => {
                let started = (!self.started).then_some(*started_at);
                let ready = ready_at.filter(|_| !self.ready);
                [started, ready, ends.map(|(at, _)| at)].into_iter().flatten().min()
            }
            Phase::Exited { until, .. } => *until,
            Phase::Waiting | Phase::Malformed => None,
        }
    }

    pub(super) fn is_initialized(&self, role: Role) -> bool {
        match role {
            Role::Init => matches!(&self.phase, Phase::Exited { exit, .. } if exit.code == 0),
            Role::Sidecar => self.started,
            Role::Main | Role::Ephemeral => true,
        }
    }

    pub(super) fn run(&mut self, uid: &str, plan: &ContainerPlan, now: Duration, dice: Dice) {
        self.runs += 1;
        let started_at = now + plan.startup;
        let ready_at = readiness(uid, plan, now, started_at, dice);
        let ends = ending(uid, plan, self.runs, dice).map(|(after, code)| (now + after, code));
        self.phase = Phase::Running { since: now, started_at, ready_at, ends };
    }

    pub(super) fn restart(
        &mut self,
        uid: &str,
        plan: &ContainerPlan,
        environment: &Environment<'_>,
        note: &mut impl FnMut(Note),
    ) {
        self.begin_anew();
        note(already_present(plan));
        self.run(uid, plan, environment.now, environment.dice);
        note(Note::normal("Created", "Container created"));
        note(Note::normal("Started", "Container started"));
    }

    pub(super) fn exit(&mut self, now: Duration, code: i32) {
        let Phase::Running { since, .. } = self.phase else { return };
        let exit = Exit { code, since, at: now, run: self.runs };
        self.started = false;
        self.ready = false;
        self.phase = Phase::Exited { exit, until: None };
    }

    pub(super) fn begin_anew(&mut self) {
        if let Phase::Exited { exit, .. } = self.phase {
            self.last = Some(exit);
        }
        self.phase = Phase::Waiting;
    }

    /// Returns the back-off between the last exit and the next start.
    ///
    /// # Upstream
    /// `client-go/util/flowcontrol/backoff.go`: the first restart has no delay, and a run of twice the maximum
    /// back-off resets it.
    pub(super) fn back_off(&mut self, now: Duration) -> Duration {
        let known = self.backoff.filter(|(_, imposed)| now.saturating_sub(*imposed) <= 2 * LAST_BACKOFF);
        let delay = known.map_or(Duration::ZERO, |(delay, _)| delay);
        let next = if delay.is_zero() { FIRST_BACKOFF } else { (2 * delay).min(LAST_BACKOFF) };
        self.backoff = Some((next, now));
        delay
    }

    pub(super) fn fail_pull(&mut self, plan: &ContainerPlan, now: Duration, note: &mut impl FnMut(Note)) {
        note(Note::warning("Failed", format!("Failed to pull image {:?}: {}", plan.image, pull_error(&plan.image))));
        note(Note::warning("Failed", "Error: ErrImagePull"));
        let doubled = 2 * self.pull_backoff;
        self.pull_backoff = doubled.clamp(FIRST_BACKOFF, LAST_BACKOFF);
        self.phase = Phase::PullFailed { failed_at: now, backing_off: false };
    }
}

pub(super) fn about(plan: &ContainerPlan, note: Note) -> Note {
    let list = match plan.role {
        Role::Main => "containers",
        Role::Init | Role::Sidecar => "initContainers",
        Role::Ephemeral => "ephemeralContainers",
    };
    Note { field: Some(format!("spec.{list}{{{}}}", plan.name)), ..note }
}

pub(super) fn already_present(plan: &ContainerPlan) -> Note {
    let image = &plan.image;
    Note::normal(
        "Pulled",
        format!("Container image {image:?} already present on machine and can be accessed by the pod"),
    )
}

/// The error of a registry for a missing image.
pub(crate) fn pull_error(image: &str) -> String {
    let reference = match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
        None => format!("docker.io/library/{image}"),
    };
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image {reference:?}: failed to resolve reference {reference:?}: {reference}: not found"
    )
}

pub(super) fn image_size(image: &str) -> u64 {
    20_000_000 + Dice::new(0).number(&[image]) % 100_000_000
}

pub(super) fn pull_time(uid: &str, plan: &ContainerPlan, dice: Dice) -> Duration {
    match plan.pull {
        Pull::Takes(range) => dice.between(range.min, range.max, &[uid, &plan.name, "pull"]),
        Pull::Fails => dice.between(Duration::from_millis(500), NOTICE, &[uid, &plan.name, "pull"]),
    }
}

pub(super) fn creation(uid: &str, plan: &ContainerPlan, dice: Dice) -> Duration {
    dice.between(plan.start.min, plan.start.max, &[uid, &plan.name, "start"])
}

pub(super) fn readiness(
    uid: &str,
    plan: &ContainerPlan,
    since: Duration,
    started_at: Duration,
    dice: Dice,
) -> Option<Duration> {
    match plan.ready {
        Some(Ready::Never) => None,
        Some(Ready::After(range)) => {
            Some(started_at.max(since + dice.between(range.min, range.max, &[uid, &plan.name, "ready"])))
        }
        None => Some(since + plan.probe),
    }
}

/// Returns when and how a run terminates.
pub(super) fn ending(uid: &str, plan: &ContainerPlan, run: u32, dice: Dice) -> Option<(Duration, i32)> {
    let End::Exits { code, after, times } = plan.end else { return None };
    let after = dice.between(after.min, after.max, &[uid, &plan.name, "end", &run.to_string()]);
    if times.is_none_or(|times| run <= times) {
        return Some((after, code));
    }
    // After `times` failures an init container succeeds; others keep running.
    (plan.role == Role::Init).then_some((after, 0))
}
