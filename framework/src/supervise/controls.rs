//! The requests of operators to all controllers while the manager runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kcm_informers::{Moment, Moments};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::controller::{ControllerDescriptor, Selection};
use crate::takeover::{Predecessor, Takeover};

/// The controls of a manager, which supervisors follow.
pub(crate) struct Controls {
    /// The names of all controllers.
    names: Vec<&'static str>,
    selection: watch::Sender<Selection>,
    /// The controllers whose loops may not run, each with how long they have to stop.
    stopped: watch::Sender<BTreeMap<&'static str, Duration>>,
    /// The controllers that run their loops.
    active: watch::Sender<BTreeSet<&'static str>>,
    /// Time for which running reconciles may finish when a controller stops by itself.
    grace: Duration,
    moments: Moments,
    /// The last takeover of each controller that has one.
    takeovers: watch::Sender<Vec<Arc<Takeover>>>,
    /// `true` while a takeover is likely to begin soon.
    expects_takeover: watch::Sender<bool>,
}

/// A controller that runs its loops, until it is dropped.
pub(super) struct Active<'a> {
    controls: &'a Controls,
    controller: &'static str,
}

impl Controls {
    pub(crate) fn new(names: Vec<&'static str>, selection: Selection, grace: Duration) -> Self {
        let selection = watch::Sender::new(selection);
        Self {
            names,
            selection,
            stopped: watch::Sender::default(),
            active: watch::Sender::default(),
            grace,
            moments: Moments::default(),
            takeovers: watch::Sender::default(),
            expects_takeover: watch::Sender::default(),
        }
    }

    pub(crate) const fn grace(&self) -> Duration {
        self.grace
    }

    pub(crate) fn select(&self, selection: Selection) {
        self.selection.send_replace(selection);
    }

    /// The moments of the manager.
    pub(crate) const fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The last takeover of each controller that has one.
    pub(crate) fn takeovers(&self) -> watch::Receiver<Vec<Arc<Takeover>>> {
        self.takeovers.subscribe()
    }

    /// Sets if a takeover is likely to begin soon.
    pub(crate) fn expect_takeover(&self, is_expected: bool) {
        self.expects_takeover.send_if_modified(|expects| std::mem::replace(expects, is_expected) != is_expected);
    }

    /// `true` while a takeover is likely to begin soon.
    pub(crate) fn expects_takeover(&self) -> watch::Receiver<bool> {
        self.expects_takeover.subscribe()
    }

    /// The moment from which the caches of a controller must be current, if it takes over.
    pub(super) fn since(&self, controller: &str) -> Option<Moment> {
        let takeovers = self.takeovers.borrow();
        takeovers.iter().find(|takeover| takeover.controllers.contains(&controller)).map(|takeover| takeover.since)
    }

    /// Starts the loops of the controllers that `includes` names, each when its caches show all writes of `predecessor`.
    pub(crate) fn start_loops_after(&self, includes: impl Fn(&str) -> bool, predecessor: Predecessor) {
        let takeover = Takeover {
            since: self.moments.next(),
            predecessor,
            controllers: self.names.iter().copied().filter(|controller| includes(controller)).collect(),
            ended: CancellationToken::new(),
        };
        self.takeovers.send_modify(|takeovers| {
            takeovers.retain(|earlier| {
                let is_of_others = !earlier.controllers.iter().any(|controller| includes(controller));
                if !is_of_others {
                    earlier.ended.cancel();
                }
                is_of_others
            });
            takeovers.push(Arc::new(takeover));
        });
        self.start_loops(includes);
    }

    /// Starts the loops of the controllers that `includes` names.
    pub(crate) fn start_loops(&self, includes: impl Fn(&str) -> bool) {
        self.stopped.send_modify(|stopped| stopped.retain(|controller, _| !includes(controller)));
    }

    /// Asks the loops of the controllers that `includes` names to stop, and waits until they have.
    pub(crate) async fn stop_loops(&self, includes: impl Fn(&str) -> bool, grace: Duration) {
        for takeover in &*self.takeovers.borrow() {
            if takeover.controllers.iter().all(|controller| includes(controller)) {
                takeover.ended.cancel();
            }
        }
        let named = self.names.iter().copied().filter(|controller| includes(controller));
        self.stopped.send_modify(|stopped| stopped.extend(named.map(|controller| (controller, grace))));
        wait(&self.active, |active| !active.iter().any(|controller| includes(controller))).await;
    }

    /// Returns `true` if the selection enables that controller.
    pub(crate) fn enables(&self, controller: &ControllerDescriptor) -> bool {
        self.selection.borrow().enables(controller)
    }

    pub(super) async fn enabled(&self, controller: &ControllerDescriptor) {
        wait(&self.selection, |selection| selection.enables(controller)).await;
    }

    pub(super) async fn disabled(&self, controller: &ControllerDescriptor) {
        wait(&self.selection, |selection| !selection.enables(controller)).await;
    }

    pub(super) async fn loops_may_run(&self, controller: &str) {
        wait(&self.stopped, |stopped| !stopped.contains_key(controller)).await;
    }

    /// Waits until the loops of a controller must stop; returns how long they have for it.
    pub(super) async fn loops_must_stop(&self, controller: &str) -> Duration {
        let stopped = wait(&self.stopped, |stopped| stopped.contains_key(controller)).await;
        stopped.get(controller).copied().unwrap_or_default()
    }

    /// Notes a controller that runs its loops.
    pub(super) fn active(&self, controller: &'static str) -> Active<'_> {
        self.active.send_if_modified(|active| active.insert(controller));
        Active { controls: self, controller }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.controls.active.send_if_modified(|active| active.remove(self.controller));
    }
}

/// Waits for a value that `holds`, and returns it.
async fn wait<T: Clone>(sender: &watch::Sender<T>, holds: impl Fn(&T) -> bool) -> T {
    let mut receiver = sender.subscribe();
    let value = receiver.wait_for(|value| holds(value)).await.map(|value| value.clone());
    value.expect("the sender must live as long as its reference")
}
