//! Faults of whole machines: processes that die or stop, outages, clocks that jump, and pods that fail.

use std::time::Duration;

use super::{Conductor, launch};
use crate::deliver::Received;
use crate::gate::{Gate, Waiting};
use crate::history::Author;
use crate::holds::{Hold, is_free};
use crate::kubelets::{self, Step};
use crate::requests::{Deviation, Landing, Nature, nature_of, take};
use crate::schedule::{Failure, Place, Relist, Settings, What};

/// Time after an outage within which requests are repeated that it has failed.
const RECOVERY: Duration = Duration::from_mins(1);

/// The next step of the kubelets, as far as perturbations concern it.
#[derive(Default)]
pub(super) struct NextStep {
    is_counted: bool,
    pub(super) hold: Option<Hold>,
    failure: Option<(usize, Failure)>,
}

impl Conductor<'_> {
    /// The next step of the kubelets. They look at the pods again after a write only.
    pub(super) fn kubelet_step(&mut self) -> Option<Step> {
        let version = self.sandbox.version();
        if self.kubelets_rest_at == Some(version) {
            return None;
        }
        let step = kubelets::next(&self.sandbox);
        self.kubelets_rest_at = step.is_none().then_some(version);
        step
    }

    /// A step of the scheduler or a kubelet. Returns `false` if there is none now.
    pub(super) fn kubelet_acts(&mut self) -> bool {
        if self.is_out() {
            return false;
        }
        let Some(step) = self.kubelet_step() else { return false };
        if !self.kubelet.is_counted {
            let nature = if step.can_fail() { Nature::PodStep } else { Nature::Other };
            let mut deviations = self.pass(Place::Kubelet, nature);
            let held = |what: &What| if let What::Hold(until) = what { Some(*until) } else { None };
            if let Some((index, until)) = take(&mut deviations, held) {
                self.applies(index);
                self.kubelet.hold = Some(self.hold(until));
            }
            let fails = |what: &What| if let What::Pod(failure) = what { Some(*failure) } else { None };
            self.kubelet.failure = take(&mut deviations, fails);
            self.kubelet.is_counted = true;
        }
        if !is_free(self.kubelet.hold.as_ref(), self.progress, None) {
            return false;
        }
        let failure = std::mem::take(&mut self.kubelet).failure.filter(|_| step.can_fail());
        let has_acted = match failure {
            Some((index, failure)) => {
                self.applies(index);
                step.fail(&self.sandbox, failure)
            }
            None => step.take(&self.sandbox),
        };
        if has_acted {
            self.note("the kubelet acts");
            self.record_of(&Author::Cluster);
        }
        has_acted
    }

    /// Applies the perturbations of a request that concern the whole process or cluster. Returns `None` if the request is
    /// lost by them.
    pub(super) fn strike(&mut self, waiting: Waiting, deviations: &mut Vec<Deviation>) -> Option<Waiting> {
        let jump = |what: &What| if let What::Clock(seconds) = what { Some(*seconds) } else { None };
        while let Some((index, seconds)) = take(deviations, jump) {
            self.applies(index);
            self.wall.jump(seconds);
        }
        let pause = |what: &What| if let What::Pause(time) = what { Some(*time) } else { None };
        if let Some((index, time)) = take(deviations, pause) {
            self.applies(index);
            self.paused_until = Some(self.clock.elapsed() + time);
        }
        let outage = |what: &What| if let What::Outage(time) = what { Some(*time) } else { None };
        if let Some((index, time)) = take(deviations, outage) {
            self.applies(index);
            self.out_until = self.clock.elapsed() + time;
            self.last_fault = self.last_fault.max(self.out_until + RECOVERY);
            for cache in std::mem::take(&mut self.caches) {
                self.note(&format!("the watch of {} breaks", cache.name));
                cache.cut(Relist::Broken, &self.sandbox, &mut self.received);
            }
        }
        let in_flight = |what: &What| if let What::KillInFlight(until) = what { Some(*until) } else { None };
        // Nothing can guard a creation that lands after its reason has passed.
        if let Some((index, until)) = take(deviations, in_flight)
            && nature_of(&waiting) != Nature::Creation
        {
            self.applies(index);
            let (name, key) = (waiting.name(), waiting.key());
            let seen = self.reconciles.get(&(name.clone(), key.clone())).map(|reconcile| reconcile.seen.clone());
            let author = Author::Loop { process: self.number, name, key };
            self.landing.push(Landing { waiting, author, seen, hold: Some(self.hold(until)) });
            self.kill(Duration::ZERO, Settings::Same);
            return None;
        }
        Some(waiting)
    }

    /// Returns `true` while the API server cannot be reached.
    pub(super) fn is_out(&self) -> bool {
        self.clock.elapsed() < self.out_until
    }

    /// Lets a request of a process that is dead reach the API server.
    pub(super) fn land(&mut self) -> bool {
        let now = self.progress;
        let Some(index) = self.landing.iter().position(|one| is_free(one.hold.as_ref(), now, None)) else {
            return false;
        };
        let Landing { waiting, author, seen, .. } = self.landing.remove(index);
        self.exchange_late(waiting, &author, seen.as_ref());
        self.last_fault = self.last_fault.max(self.clock.elapsed());
        true
    }

    /// Continues a process that was stopped. Its clock jumps to the time of the world.
    pub(super) fn resume(&mut self) -> bool {
        let Some(until) = self.paused_until.take() else { return false };
        let time = until.saturating_sub(self.clock.elapsed());
        self.clock.advance_to(until);
        self.progress.time = self.clock.elapsed();
        self.note("the process continues");
        self.process.jump(time);
        self.last_fault = self.last_fault.max(self.clock.elapsed());
        true
    }

    pub(super) fn kill(&mut self, restart: Duration, settings: Settings) {
        self.history.kills += 1;
        self.caches.clear();
        self.received = Received::default();
        self.reconciles.clear();
        self.answers.clear();
        self.held.clear();
        self.counts.clear();
        self.number += 1;
        self.gate = Gate::default();
        self.paused_until = None;
        self.began = self.clock.elapsed() + restart;
        self.clock.advance_to(self.began);
        self.progress.time = self.began;
        let manager = self.scenario.manager_with(settings, &self.outside);
        self.process = launch(&manager, &self.wall, &self.gate, self.number, &self.pulse);
        self.last_fault = self.last_fault.max(self.clock.elapsed());
        self.begin();
    }

    /// Counts the start of a process.
    pub(super) fn begin(&mut self) {
        let mut deviations = self.pass(Place::Start, Nature::Other);
        let order = |what: &What| if let What::Order(order) = what { Some(*order) } else { None };
        if let Some((index, order)) = take(&mut deviations, order) {
            self.applies(index);
            self.shuffle.begin(order);
        }
    }
}
