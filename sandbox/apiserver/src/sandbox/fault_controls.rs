//! Controls of injected faults: [`FaultControls`] and [`InjectedFault`].

use std::sync::Arc;
use std::time::Duration;

use kcm_api::Resource;

use crate::faults::{Cut, Fault, Outage};
use crate::service::shared::Shared;

/// Injects and removes faults.
///
/// Faults of watches and lists are set per resource and apply to all clients.
#[derive(Clone)]
pub struct FaultControls {
    pub(super) shared: Arc<Shared>,
}

impl std::fmt::Debug for FaultControls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultControls").finish_non_exhaustive()
    }
}

impl FaultControls {
    /// Adds a fault for requests.
    #[expect(clippy::must_use_candidate, reason = "the fault is at work even if the returned handle is unused")]
    pub fn inject(&self, fault: Fault) -> InjectedFault {
        let id = self.shared.change_rules(|state| state.faults.inject(fault));
        InjectedFault { shared: self.shared.clone(), id }
    }

    /// Holds back the events of all watches of a resource until they are released; no event is lost.
    ///
    /// A watch that is held for longer than the event window ends when it is released.
    pub fn hold_watches(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.of(resource).held = true);
    }

    /// Sends the events that [`FaultControls::hold_watches`] held back.
    pub fn release_watches(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.of(resource).held = false);
    }

    /// Delays the events of a resource by `delay` and keeps their order; zero ends it.
    pub fn delay_events(&self, resource: &Resource, delay: Duration) {
        self.shared.change_rules(|state| state.faults.of(resource).delay = delay);
    }

    /// Drops the next `count` events of a resource on all watches; bookmarks continue as if they had been sent.
    pub fn drop_events(&self, resource: &Resource, count: usize) {
        self.shared.change_rules(|state| state.faults.of(resource).drop_next = count);
    }

    /// Ends the open watches of a resource.
    pub fn cut_watches(&self, resource: &Resource, how: Cut) {
        self.shared.change_rules(|state| state.faults.cut(resource, how));
    }

    /// Ends the next watch of a resource after `events` events, initial ones and bookmarks included.
    pub fn cut_next_watch(&self, resource: &Resource, events: usize, how: Cut) {
        self.shared.change_rules(|state| state.faults.of(resource).cut_next = Some((events, how)));
    }

    /// Silences the open watches of a resource for good, without ending them.
    pub fn silence_watches(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.silence(resource));
    }

    /// Serves lists and initial events of a resource from its current state, if the request allows an old state
    /// (`resourceVersion=0`, or a version that is not newer).
    pub fn freeze_lists(&self, resource: &Resource) {
        self.shared.change_rules(|state| {
            let version = state.server.store.version();
            state.faults.of(resource).stale = Some(version);
        });
    }

    /// Serves current lists again, after [`FaultControls::freeze_lists`].
    pub fn thaw_lists(&self, resource: &Resource) {
        self.shared.change_rules(|state| state.faults.of(resource).stale = None);
    }

    /// Breaks all watches, and all requests from now on, as if the API server was killed. Objects stay as they are.
    pub fn stop_api_server(&self) {
        self.shared.change_rules(|state| state.faults.begin_outage(Outage::ApiServer));
    }

    /// Fails all requests for resources, and the health checks, as if etcd was killed. Watches stay open.
    pub fn stop_etcd(&self) {
        self.shared.change_rules(|state| state.faults.begin_outage(Outage::Etcd));
    }

    /// Ends [`FaultControls::stop_api_server`] and [`FaultControls::stop_etcd`].
    pub fn end_outage(&self) {
        self.shared.change_rules(|state| state.faults.end_outage());
    }

    /// Removes all faults; watches that were ended or silenced and events that were dropped stay so.
    pub fn clear(&self) {
        self.shared.change_rules(|state| state.faults.clear());
    }
}

/// Handle of an active fault. Dropping it does not remove the fault.
#[derive(Clone)]
pub struct InjectedFault {
    shared: Arc<Shared>,
    id: u64,
}

impl std::fmt::Debug for InjectedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InjectedFault").field("id", &self.id).finish_non_exhaustive()
    }
}

impl InjectedFault {
    /// Returns the number of matched requests, including those that passed.
    #[must_use]
    pub fn matched(&self) -> usize {
        self.shared.lock().faults.counts(self.id).0
    }

    /// Returns the number of requests that the fault hit.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.shared.lock().faults.counts(self.id).1
    }

    /// Removes the fault from the sandbox.
    pub fn remove(&self) {
        self.shared.change_rules(|state| state.faults.remove(self.id));
    }
}
