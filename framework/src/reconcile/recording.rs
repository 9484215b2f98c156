//! Records the reconciles of a loop, so that they can be explained.

use std::sync::Arc;
use std::time::Duration;

use kcm_client::clock::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{LoopContext, Session};
use crate::explain::{Decision, Ended, Journal, KeyError, Seen, Trigger, TriggerCause, Triggers, object_of, rfc3339};
use crate::queue_key::QueueKey;

/// The recording of the reconciles of one loop.
pub(super) struct Recording<K> {
    name: &'static str,
    triggers: Arc<Triggers<K>>,
    journal: Arc<Journal>,
    clock: Arc<dyn Clock>,
    last_error: Mutex<Option<KeyError>>,
}

/// The beginning of one reconcile.
pub(super) struct Begun {
    at: Instant,
    attempt: u32,
    triggers: Vec<Trigger>,
    seen: Option<Seen>,
}

/// By how much the wall clock may be behind the clock of the queue.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(10);

impl<K: QueueKey> Recording<K> {
    pub(super) fn new(name: &'static str, triggers: Arc<Triggers<K>>, context: &LoopContext) -> Self {
        let (journal, clock) = (Arc::clone(&context.journal), Arc::clone(&context.clock));
        Self { name, triggers, journal, clock, last_error: Mutex::default() }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.journal.is_enabled()
    }

    pub(super) fn triggers(&self) -> &Triggers<K> {
        &self.triggers
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(super) fn last_error(&self) -> Option<KeyError> {
        self.last_error.lock().clone()
    }

    /// The beginning of a reconcile of `key`.
    pub(super) fn begin(&self, key: &K, attempt: u32, session: &Session) -> Begun {
        let at = Instant::now();
        if !self.is_enabled() {
            return Begun { at, attempt, triggers: Vec::new(), seen: None };
        }
        let mut triggers = self.triggers.take(key, at);
        if triggers.is_empty() {
            triggers.push(Trigger::of(self.unrecorded_cause(key, attempt)));
        }
        Begun { at, attempt, triggers, seen: session.seen() }
    }

    /// The cause of a key without a trigger, which follows from its last reconcile.
    fn unrecorded_cause(&self, key: &K, attempt: u32) -> TriggerCause {
        if attempt > 1 {
            return TriggerCause::BackOff;
        }
        let Some(last) = self.journal.last(self.name, &object_of(key)) else { return TriggerCause::Unrecorded };
        let Ended::Succeeded { requeue_after: Some(delay) } = last.ended else { return TriggerCause::Unrecorded };
        let ago = Duration::try_from(self.clock.now().duration_since(last.at)).unwrap_or_default();
        if ago + CLOCK_TOLERANCE >= delay { TriggerCause::Requeue } else { TriggerCause::Unrecorded }
    }

    /// Records a reconcile of `key` that has ended.
    pub(super) fn end(&self, key: &K, beginning: Begun, session: &Session, ended: Ended) {
        let at = self.clock.now();
        if let Ended::Failed { error, .. } | Ended::Unreachable { error } | Ended::Panicked(error) = &ended {
            let error = KeyError { key: key.to_string(), at: rfc3339(at), error: error.to_string() };
            *self.last_error.lock() = Some(error);
        }
        if !self.is_enabled() {
            return;
        }
        let Begun { at: began, attempt, triggers, seen } = beginning;
        let decision = Decision {
            at,
            took: began.elapsed(),
            attempt,
            triggers: triggers.into_boxed_slice(),
            seen,
            noted: session.notes().take(),
            ended,
        };
        self.journal.add(self.name, &object_of(key), decision);
    }
}
