//! The supervised state of controllers, as operators see it.

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_api::Resource;

use super::INIT_PATIENCE;
use crate::progress::{HeldKeys, Stall};

/// The state of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerState {
    /// It does not run, for this reason: `--controllers`, a feature gate, or settings that need a restart.
    Disabled(String),
    /// It waits for its turn: controllers are initialized one after another.
    Pending,
    /// Its `InitFunc` is running now.
    Initializing,
    /// The cluster does not serve what it needs. It is initialized again when the served resources change.
    Skipped,
    /// It is initialized, and its loops wait: for the informers to start, or while the manager's loops are stopped.
    Initialized,
    /// Loops of it wait for their caches to sync.
    WaitingForCaches,
    /// Its loops are running now.
    Running,
    /// Its `InitFunc` or a loop has failed, and is started again after a back-off.
    Restarting,
    /// It was asked to stop, and finishes what it is doing.
    Stopping,
    /// It has stopped with the manager, or the manager has not begun to start it.
    Stopped,
}

/// The status of a controller.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// Canonical name of the controller.
    pub name: &'static str,
    /// State of the controller; once its loops run, the state of the loops.
    pub state: ControllerState,
    /// Time for which it has been in that state.
    pub state_for: Duration,
    /// Number of failures and panics of its `InitFunc` and its loops.
    pub failures: u64,
    /// The last of these errors, kept after recovery.
    pub last_error: Option<String>,
    /// Its loops; empty unless it is initialized.
    pub loops: Vec<LoopStatus>,
}

/// The state of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopState {
    /// It does not run: its controller has only been initialized, or the manager's loops are stopped.
    Stopped,
    /// It waits for its caches to sync, and after a takeover until they show all writes of the last leader.
    WaitingForCaches,
    /// The loop is running now.
    Running,
    /// It has failed or panicked, and is started again after a back-off.
    Restarting,
    /// It has returned: a task with nothing more to do.
    Ended,
}

/// The status of a loop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoopStatus {
    /// Name of the loop.
    pub name: &'static str,
    /// State of the loop.
    pub state: LoopState,
    /// Time for which it has been in that state.
    pub state_for: Duration,
    /// Number of failures and panics of the loop.
    pub failures: u64,
    /// The last of these errors, kept after recovery.
    pub last_error: Option<String>,
    /// The resources whose caches it reads.
    pub reads: Vec<Resource>,
    /// The resources whose caches it reads and that have not synced, or may lack writes of the last leader.
    pub unsynced: Vec<Resource>,
    /// The keys that are held back.
    pub held: HeldKeys,
    /// The key with which it makes no progress, and for how long; absent while it makes progress or has nothing to do.
    pub stall: Option<Stall>,
}

impl ControllerState {
    /// The state as a label of metrics: its name in snake case.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Disabled(_) => "disabled",
            Self::Pending => "pending",
            Self::Initializing => "initializing",
            Self::Skipped => "skipped",
            Self::Initialized => "initialized",
            Self::WaitingForCaches => "waiting_for_caches",
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

impl ControllerStatus {
    /// Returns the problem that keeps the controller from its work, as a sentence for operators. `None` if it has no
    /// problem, or is not supposed to run.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let seconds = self.state_for.as_secs();
        let error = self.last_error.as_deref().unwrap_or("without an error");
        match &self.state {
            ControllerState::Initializing if self.state_for >= INIT_PATIENCE => {
                Some(format!("its initialization has not ended for {seconds} s"))
            }
            ControllerState::Restarting => {
                Some(format!("it has failed {} times, the last time with: {error}", self.failures))
            }
            ControllerState::WaitingForCaches => {
                let unsynced = self.loops.iter().flat_map(|one| &one.unsynced).map(ToString::to_string);
                let unsynced: BTreeSet<String> = unsynced.collect();
                let unsynced = unsynced.into_iter().collect::<Vec<_>>().join(", ");
                Some(format!("it has waited {seconds} s for the caches of {unsynced}"))
            }
            ControllerState::Running => self.loops.iter().find_map(|one| {
                let Stall { key, duration } = one.stall.as_ref()?;
                let (name, seconds) = (one.name, duration.as_secs());
                Some(format!("its loop {name} has made no progress with {key} for {seconds} s"))
            }),
            ControllerState::Disabled(_)
            | ControllerState::Pending
            | ControllerState::Initializing
            | ControllerState::Skipped
            | ControllerState::Initialized
            | ControllerState::Stopping
            | ControllerState::Stopped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

    fn status(state: ControllerState, seconds: u64) -> ControllerStatus {
        let stall = Some(Stall { key: "a/b".to_owned(), duration: Duration::from_secs(130) });
        let one = LoopStatus {
            name: "web",
            state: LoopState::Running,
            state_for: Duration::ZERO,
            failures: 0,
            last_error: None,
            reads: Vec::new(),
            unsynced: vec![PODS],
            held: HeldKeys::default(),
            stall,
        };
        let (state_for, last_error) = (Duration::from_secs(seconds), Some("no quota".to_owned()));
        ControllerStatus {
            name: "a-controller",
            state,
            state_for,
            failures: 3,
            last_error,
            loops: vec![one.clone(), one],
        }
    }

    #[test]
    fn a_problem_is_what_keeps_a_controller_from_its_work() {
        for (state, seconds, problem) in [
            (ControllerState::Initializing, 9, None),
            (ControllerState::Initializing, 25, Some("its initialization has not ended for 25 s")),
            (ControllerState::Restarting, 1, Some("it has failed 3 times, the last time with: no quota")),
            (ControllerState::WaitingForCaches, 7, Some("it has waited 7 s for the caches of pods")),
            (ControllerState::Running, 200, Some("its loop web has made no progress with a/b for 130 s")),
            (ControllerState::Disabled(String::new()), 200, None),
            (ControllerState::Skipped, 200, None),
            (ControllerState::Initialized, 200, None),
        ] {
            assert_eq!(status(state.clone(), seconds).problem().as_deref(), problem, "{state:?}");
        }
        let idle = ControllerStatus { loops: Vec::new(), ..status(ControllerState::Running, 1) };
        assert_eq!(idle.problem(), None);
    }
}
