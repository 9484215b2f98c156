//! The state of a reconcile loop, for operators.

use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use kcm_workqueue::{Held, KeyStage, KeyStatus};
use tokio::time::Instant;

use super::worker::Workers;
use crate::consistency::pending_writes::PendingWrite;
use crate::explain::{
    Inspect, KeyExplanation, KeyState, LoopKey, LoopKeys, QueueStatus, Reader, WaitExplanation, object_of,
    rounded_seconds,
};
use crate::progress::{HeldKeys, Progress, STALLED_AFTER, Stall};
use crate::queue_key::QueueKey;

impl<K: QueueKey> Workers<K> {
    fn resource(&self) -> Option<&Resource> {
        self.primary.resource(&self.core.caches)
    }

    fn waits_for(&self, status: &KeyStatus<K>) -> Vec<WaitExplanation> {
        let KeyStatus { key, stage, is_added: _, due_in, failures } = status;
        let mut waits = Vec::new();
        let is_reachable = self.core.api.connection().is_reachable();
        if let KeyStage::Ready(_) = stage
            && is_reachable
        {
            waits.push(WaitExplanation::new("Worker", "a worker of the loop"));
        }
        if let Some((writes, check_at)) = self.tracker.pending_writes_of(key) {
            waits.extend(writes.iter().map(|write| self.pending_write(write)));
            let check = WaitExplanation::new("LiveCheck", "a live list that checks these writes");
            waits.push(check.due_in(check_at.saturating_duration_since(Instant::now())));
        }
        if let Some(due_in) = due_in {
            let wait = match failures {
                0 => WaitExplanation::new("Requeue", "the time at which it is due"),
                1 => WaitExplanation::new("BackOff", "the back-off after its failure"),
                failures => WaitExplanation::new("BackOff", format!("the back-off after {failures} failures in a row")),
            };
            waits.push(wait.due_in(*due_in));
        }
        waits
    }

    fn pending_write(&self, write: &PendingWrite) -> WaitExplanation {
        let (cache, object) = match write {
            PendingWrite::Version { cache, object, .. }
            | PendingWrite::Deletion { cache, object, .. }
            | PendingWrite::OutcomeUnknown { cache, object, .. } => (*cache, object),
        };
        let resource = self.core.caches[cache].resource();
        WaitExplanation::new(
            "PendingWrite",
            match write {
                PendingWrite::Version { version, .. } => {
                    format!("the cache of {resource} to reach version {version}, which it wrote to {object}")
                }
                PendingWrite::Deletion { .. } => {
                    format!("the cache of {resource} to show the deletion of {object}")
                }
                PendingWrite::OutcomeUnknown { .. } => {
                    format!("the outcome of a write to {resource} {object}, whose response was lost")
                }
            },
        )
    }

    /// Returns the wait of a key that the queue may not know.
    fn held_back(&self, object: &ObjectKey) -> Option<WaitExplanation> {
        if !self.core.api.connection().is_reachable() {
            return Some(WaitExplanation::new("ApiServer", "the API server, which cannot be reached"));
        }
        let reason = self.guard.reason(|key| object_of(key) == *object)?;
        Some(WaitExplanation::new("Undecodable", reason))
    }
}

impl<K: QueueKey> Progress for Workers<K> {
    fn stall(&self) -> Option<Stall> {
        let preparing = self.preparing.lock().map(|began| began.elapsed());
        let preparing = preparing.and_then(|lasts| Stall::after(STALLED_AFTER, "its preparation", lasts));
        let at_barrier = || self.gate.as_ref()?.stall();
        let parked = || {
            let Held { key, age } = self.queue.parked().longest?;
            Stall::after(STALLED_AFTER, &key, age)
        };
        let queued = || {
            let Held { key, age } = self.queue.stalled(STALLED_AFTER)?;
            Stall::after(STALLED_AFTER, &key, age)
        };
        preparing.or_else(at_barrier).or_else(parked).or_else(queued)
    }

    fn held(&self) -> HeldKeys {
        let (parked, barrier) = (self.queue.parked(), self.gate.as_ref().map(Progress::held).unwrap_or_default());
        let parked_for = parked.longest.map_or(Duration::ZERO, |longest| longest.age);
        HeldKeys {
            awaiting_writes: parked.count + barrier.awaiting_writes,
            longest_wait: parked_for.max(barrier.longest_wait),
            undecodable: self.guard.held(),
        }
    }
}

impl<K: QueueKey> Inspect for Workers<K> {
    fn queue_status(&self) -> QueueStatus {
        let resource = self.resource();
        QueueStatus {
            controller: self.core.controller.to_owned(),
            name: self.core.name.to_owned(),
            resource: resource.map(Resource::to_string),
            kind: resource.map(|resource| resource.kind.to_string()),
            pending_writes: self.tracker.pending_writes(),
            last_error: self.recording.last_error(),
            ..QueueStatus::of(self.queue.snapshot())
        }
    }

    fn queue_counts(&self) -> QueueStatus {
        QueueStatus {
            controller: self.core.controller.to_owned(),
            name: self.core.name.to_owned(),
            ..QueueStatus::of_counts(self.queue.key_counts())
        }
    }

    fn keys(&self) -> LoopKeys {
        let keys = self.queue.find(|_| true).into_iter().map(|status| LoopKey {
            object: object_of(&status.key),
            state: state_of(status.stage).0,
            is_added: status.is_added,
            due_in: status.due_in,
            failures: status.failures,
            pending_writes: self.tracker.pending_writes_of(&status.key).map(|(writes, _)| writes).unwrap_or_default(),
        });
        LoopKeys {
            controller: self.core.controller,
            name: self.core.name,
            reads: self.core.caches.iter().map(|cache| cache.resource().clone()).collect(),
            resource: self.resource().cloned(),
            keys: keys.collect(),
        }
    }

    fn explain(&self, object: &ObjectKey) -> KeyExplanation {
        let statuses = self.queue.find(|key| object_of(key) == *object);
        let resources: Vec<String> = self.core.caches.iter().map(|cache| cache.resource().to_string()).collect();
        let reader = Reader { resources: &resources, now: self.core.context.clock.now() };
        let mut waits_for: Vec<_> = statuses.iter().flat_map(|status| self.waits_for(status)).collect();
        waits_for.extend(self.held_back(object));
        let state = statuses.first().map(|status| state_of(status.stage));
        let (state, age) = state.unwrap_or_default();
        let triggers = self.recording.triggers().waiting(|key| object_of(key) == *object);
        KeyExplanation {
            controller: self.core.controller.to_owned(),
            name: self.core.name.to_owned(),
            resource: self.resource().map(Resource::to_string),
            key: object.to_string(),
            exists: self
                .primary
                .cache_of(object, &self.core.caches)
                .map(|cache| self.core.caches[cache].object_state(object).is_some()),
            state,
            state_seconds: age.map(rounded_seconds),
            failures: statuses.iter().map(|status| status.failures).max().unwrap_or(0),
            waits_for,
            pending_triggers: reader.triggers(&triggers),
            reconciles: reader.reconciles(&self.recording.journal().decisions(self.core.name, object)),
        }
    }
}

/// The state of a key, and the time that it has been in it.
const fn state_of(stage: KeyStage) -> (KeyState, Option<Duration>) {
    match stage {
        KeyStage::Idle => (KeyState::Idle, None),
        KeyStage::Ready(age) => (KeyState::Ready, Some(age)),
        KeyStage::Processing(age) => (KeyState::Processing, Some(age)),
        KeyStage::Parked(age) => (KeyState::WaitingForWrites, Some(age)),
    }
}
