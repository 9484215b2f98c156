//! The claims that wait for a volume, a class or a Pod, and their events.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use kcm_framework::api::ObjectKey;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::events::BinderEvent;

/// Number of claims that a volume enqueues when it becomes available. It can be bound to one of them only.
const WOKEN_BY_A_VOLUME: usize = 8;
/// Time after which an event of a claim that still waits for the same reason is repeated.
pub(super) const REPEATED_AFTER: Duration = Duration::from_mins(10);

#[derive(Debug)]
struct Entry {
    class: Box<str>,
    /// Position in the order in which the claims of a class began to wait; `None` if no volume enqueues the claim.
    position: Option<u64>,
}

/// The claims that wait.
///
/// A claim that waits is enqueued by a change that could end the wait. Of the changes that this registry misses, the sync
/// period makes up.
#[derive(Debug, Default)]
pub(super) struct WaitingClaims {
    claims: HashMap<ObjectKey, Entry>,
    by_class: HashMap<Box<str>, BTreeMap<u64, ObjectKey>>,
    next: u64,
}

impl WaitingClaims {
    /// Adds a claim of a class. It keeps its position until a volume enqueues it. `takes_any` is false for a claim that
    /// takes only a volume that is reserved for it.
    pub(super) fn add(&mut self, claim: &ObjectKey, class: &str, takes_any: bool) {
        let known = self.claims.get(claim);
        if known.is_some_and(|entry| *entry.class == *class && entry.position.is_some() == takes_any) {
            return;
        }
        self.remove(claim);
        let position = takes_any.then_some(self.next);
        if let Some(position) = position {
            self.next += 1;
            self.by_class.entry(class.into()).or_default().insert(position, claim.clone());
        }
        self.claims.insert(claim.clone(), Entry { class: class.into(), position });
    }

    /// Removes a claim that waits no longer.
    pub(super) fn remove(&mut self, claim: &ObjectKey) {
        let Some(Entry { class, position: Some(position) }) = self.claims.remove(claim) else { return };
        if let Some(of_class) = self.by_class.get_mut(&class) {
            of_class.remove(&position);
            if of_class.is_empty() {
                self.by_class.remove(&class);
            }
        }
    }

    pub(super) fn contains(&self, claim: &ObjectKey) -> bool {
        self.claims.contains_key(claim)
    }

    /// Returns all claims that wait for a class.
    pub(super) fn of_class(&self, class: &str) -> Vec<ObjectKey> {
        self.claims.iter().filter(|(_, entry)| *entry.class == *class).map(|(claim, _)| claim.clone()).collect()
    }

    /// Returns the claims that a volume of a class enqueues, those that wait for the longest time first. The next volume
    /// enqueues others.
    pub(super) fn wake(&mut self, class: &str) -> Vec<ObjectKey> {
        let Some(of_class) = self.by_class.get_mut(class) else { return Vec::new() };
        let mut woken = Vec::new();
        while woken.len() < WOKEN_BY_A_VOLUME
            && let Some((_, claim)) = of_class.pop_first()
        {
            if let Some(entry) = self.claims.get_mut(&claim) {
                entry.position = None;
            }
            woken.push(claim);
        }
        if of_class.is_empty() {
            self.by_class.remove(class);
        }
        woken
    }
}

/// The last events of each object, one of each reason, so that an event is not repeated at each reconcile.
#[derive(Debug, Default)]
pub(super) struct LastEvents(Mutex<HashMap<ObjectKey, Vec<(BinderEvent, Instant)>>>);

impl LastEvents {
    /// Returns `true` if an event is sent: the first event of its reason, an event with another message, and an event whose
    /// last copy is 10 minutes old.
    pub(super) fn is_due(&self, object: &ObjectKey, event: &BinderEvent, now: Instant) -> bool {
        let mut events = self.0.lock();
        let of_object = events.entry(object.clone()).or_default();
        let Some(last) = of_object.iter_mut().find(|(last, _)| last.reason == event.reason) else {
            of_object.push((event.clone(), now));
            return true;
        };
        let is_due = last.0 != *event || now.duration_since(last.1) >= REPEATED_AFTER;
        if is_due {
            *last = (event.clone(), now);
        }
        is_due
    }

    pub(super) fn forget(&self, object: &ObjectKey) {
        self.0.lock().remove(object);
    }
}
