//! The supervised state of controllers, as operators see it.

use std::time::Duration;

use kcm_api::Resource;

/// The state of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControllerState {
    /// It does not run, for this reason: `--controllers`, or a feature gate.
    Disabled(String),
    /// It waits for its turn: controllers are initialized one after another.
    Pending,
    /// Its `InitFunc` runs.
    Initializing,
    /// The cluster does not serve what it needs. It is initialized again when the served resources change.
    Skipped,
    /// It is initialized, and its loops wait: for the informers to start, or while the manager's loops are stopped.
    Initialized,
    /// Loops of it wait for their caches to sync.
    WaitingForCaches,
    /// Its loops run.
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
    /// Its canonical name.
    pub name: &'static str,
    /// Its state; that of its loops, once they run.
    pub state: ControllerState,
    /// How long it has been in that state.
    pub state_for: Duration,
    /// How often its `InitFunc` or a loop has failed or panicked.
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
    /// It waits for its caches to sync.
    WaitingForCaches,
    /// It runs.
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
    /// Its name.
    pub name: &'static str,
    /// Its state.
    pub state: LoopState,
    /// How long it has been in that state.
    pub state_for: Duration,
    /// How often it has failed or panicked.
    pub failures: u64,
    /// The last of these errors, kept after recovery.
    pub last_error: Option<String>,
    /// The resources whose caches it reads and that have not synced.
    pub unsynced: Vec<Resource>,
}
