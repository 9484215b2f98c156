//! The state that the loops share.

use kcm_framework::api::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::monitor::Monitor;
use super::tainting::Tainting;
use super::taints::Permission;
use super::zone::Rates;
use crate::shared::Watching;

/// The health of all Nodes and the Nodes that wait for a taint.
pub(super) struct Shared(Mutex<State>);

pub(super) struct State {
    pub(super) monitor: Monitor,
    pub(super) tainting: Tainting,
    pub(super) watching: Watching,
    /// Number of the current pass.
    pub(super) pass: u64,
    /// Time at which the last pass ended.
    pub(super) passed_at: Option<Instant>,
}

impl Shared {
    pub(super) fn new(rates: Rates) -> Self {
        Self(Mutex::new(State::new(rates)))
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock())
    }

    /// Returns what may be done to the Node with taints that evict.
    pub(super) fn permission(&self, node: &ObjectKey) -> Permission {
        let state = self.0.lock();
        if state.tainting.is_all_disrupted() {
            Permission::Remove
        } else if state.tainting.is_granted(node) {
            Permission::Add
        } else {
            Permission::Keep
        }
    }
}

impl State {
    fn new(rates: Rates) -> Self {
        Self {
            monitor: Monitor::default(),
            tainting: Tainting::new(rates),
            watching: Watching::new(Instant::now()),
            pass: 0,
            passed_at: None,
        }
    }
}
