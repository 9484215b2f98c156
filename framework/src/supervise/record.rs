//! The record of a controller: what its supervisor notes, and the handle of the manager reads.

use std::sync::Arc;

use kcm_client::error_chain;
use kcm_informers::{Cache, Moment};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::status::{ControllerState, ControllerStatus, LoopState, LoopStatus};
use crate::controller::{DebugPage, HealthCheck, Loops};
use crate::explain::Inspect;
use crate::progress::{Progress, Stall};

/// The record of one controller.
#[derive(Debug)]
pub(crate) struct Record {
    name: &'static str,
    noted: Mutex<Noted>,
}

struct Noted {
    state: Since<ControllerState>,
    failures: Failures,
    loops: Vec<LoopRecord>,
    health: Option<Arc<HealthCheck>>,
    debug: Option<Arc<DebugPage>>,
}

/// A state, and when it began.
struct Since<S> {
    state: S,
    since: Instant,
}

#[derive(Default)]
struct Failures {
    count: u64,
    last: Option<String>,
}

struct LoopRecord {
    name: &'static str,
    reads: Vec<Arc<dyn Cache>>,
    /// The moment from which the caches must be current.
    current_since: Option<Moment>,
    state: Since<LoopState>,
    failures: Failures,
    inspect: Option<Arc<dyn Inspect>>,
    progress: Option<Arc<dyn Progress>>,
    /// The key with which the loop makes no progress, and since when.
    stall: Option<(String, Instant)>,
}

impl<S: PartialEq> Since<S> {
    fn now(state: S) -> Self {
        Self { state, since: Instant::now() }
    }

    fn enter(&mut self, state: S) {
        if self.state != state {
            *self = Self::now(state);
        }
    }
}

impl Failures {
    fn note(&mut self, error: &(dyn std::error::Error + 'static)) {
        self.count += 1;
        self.last = Some(error_chain(error));
    }
}

impl Record {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        let noted = Noted {
            state: Since::now(ControllerState::Stopped),
            failures: Failures::default(),
            loops: Vec::new(),
            health: None,
            debug: None,
        };
        Arc::new(Self { name, noted: Mutex::new(noted) })
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn enter(&self, state: ControllerState) {
        self.noted.lock().state.enter(state);
    }

    /// Notes an error of the `InitFunc`.
    pub(super) fn failed(&self, error: &(dyn std::error::Error + 'static)) {
        let noted = &mut *self.noted.lock();
        noted.failures.note(error);
        noted.state.enter(ControllerState::Restarting);
    }

    /// Notes what an `InitFunc` returned.
    pub(super) fn initialized(&self, running: &Loops) {
        let noted = &mut *self.noted.lock();
        noted.state.enter(ControllerState::Initialized);
        noted.health.clone_from(&running.health);
        noted.debug.clone_from(&running.debug);
        let loops = running.all.iter().map(|one| LoopRecord {
            name: one.name,
            reads: one.reads.clone(),
            current_since: None,
            state: Since::now(LoopState::Stopped),
            failures: Failures::default(),
            inspect: one.inspect.clone(),
            progress: one.progress.clone(),
            stall: None,
        });
        noted.loops = loops.collect();
    }

    /// Forgets what the `InitFunc` returned, and with it what that keeps alive.
    pub(super) fn clear(&self) {
        let forgotten = {
            let noted = &mut *self.noted.lock();
            (noted.health.take(), noted.debug.take(), std::mem::take(&mut noted.loops))
        };
        // Dropped without the lock, as the values are the controller's.
        drop(forgotten);
    }

    /// Notes a loop that waits until its caches have synced, and are current since then.
    pub(super) fn loop_waits(&self, index: usize, since: Option<Moment>) {
        if let Some(one) = self.noted.lock().loops.get_mut(index) {
            one.current_since = since;
            one.state.enter(LoopState::WaitingForCaches);
        }
    }

    pub(super) fn loop_enters(&self, index: usize, state: LoopState) {
        if let Some(one) = self.noted.lock().loops.get_mut(index) {
            one.state.enter(state);
        }
    }

    /// Notes the key with which a loop makes no progress, and since when; or that it makes progress.
    pub(super) fn loop_stalls(&self, index: usize, stall: Option<(String, Instant)>) {
        if let Some(one) = self.noted.lock().loops.get_mut(index) {
            one.stall = stall;
        }
    }

    /// Notes an error of a loop.
    pub(super) fn loop_failed(&self, index: usize, error: &(dyn std::error::Error + 'static)) {
        let noted = &mut *self.noted.lock();
        noted.failures.note(error);
        if let Some(one) = noted.loops.get_mut(index) {
            one.failures.note(error);
            one.state.enter(LoopState::Restarting);
        }
    }

    /// The health check and the debug page, while the controller is initialized.
    pub(crate) fn pages(&self) -> (Option<Arc<HealthCheck>>, Option<Arc<DebugPage>>) {
        let noted = self.noted.lock();
        (noted.health.clone(), noted.debug.clone())
    }

    /// The loops with keys, and their states, while the controller is initialized.
    pub(crate) fn inspected(&self) -> Vec<(LoopState, Arc<dyn Inspect>)> {
        let noted = self.noted.lock();
        noted.loops.iter().filter_map(|one| Some((one.state.state, Arc::clone(one.inspect.as_ref()?)))).collect()
    }

    /// Returns `true` if the controller runs, and `None` unless it has been started.
    pub(crate) fn runs(&self) -> Option<bool> {
        match self.noted.lock().overall().0 {
            ControllerState::Running | ControllerState::WaitingForCaches => Some(true),
            ControllerState::Restarting | ControllerState::Stopping => Some(false),
            ControllerState::Disabled(_)
            | ControllerState::Pending
            | ControllerState::Initializing
            | ControllerState::Skipped
            | ControllerState::Initialized
            | ControllerState::Stopped => None,
        }
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        let noted = self.noted.lock();
        let (state, since) = noted.overall();
        ControllerStatus {
            name: self.name,
            state,
            state_for: since.elapsed(),
            failures: noted.failures.count,
            last_error: noted.failures.last.clone(),
            loops: noted.loops.iter().map(LoopRecord::status).collect(),
        }
    }
}

impl Noted {
    /// The state of the controller; if its loops run, the worst of their states.
    fn overall(&self) -> (ControllerState, Instant) {
        if self.state.state != ControllerState::Running {
            return (self.state.state.clone(), self.state.since);
        }
        for (state, overall) in [
            (LoopState::Restarting, ControllerState::Restarting),
            (LoopState::WaitingForCaches, ControllerState::WaitingForCaches),
        ] {
            let since = self.loops.iter().filter(|one| one.state.state == state).map(|one| one.state.since).min();
            if let Some(since) = since {
                return (overall, since);
            }
        }
        let since = self.loops.iter().map(|one| one.state.since).max();
        (ControllerState::Running, since.unwrap_or(self.state.since))
    }
}

impl LoopRecord {
    fn status(&self) -> LoopStatus {
        let is_ready = |cache: &Arc<dyn Cache>| {
            cache.has_synced() && self.current_since.is_none_or(|since| cache.is_current(since))
        };
        let unsynced = self.reads.iter().filter(|cache| !is_ready(cache)).map(|cache| cache.resource().clone());
        LoopStatus {
            name: self.name,
            state: self.state.state,
            state_for: self.state.since.elapsed(),
            failures: self.failures.count,
            last_error: self.failures.last.clone(),
            reads: self.reads.iter().map(|cache| cache.resource().clone()).collect(),
            unsynced: unsynced.collect(),
            held: self.progress.as_ref().map(|progress| progress.held()).unwrap_or_default(),
            stall: self.stall.as_ref().map(|(key, since)| Stall { key: key.clone(), duration: since.elapsed() }),
        }
    }
}

impl std::fmt::Debug for Noted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Noted").field("state", &self.state.state).finish_non_exhaustive()
    }
}
