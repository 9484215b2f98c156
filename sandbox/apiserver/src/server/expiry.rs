//! Expiry of events. Pure.
//!
//! # Upstream
//! `--event-ttl` of kube-apiserver; every write of an event restarts its TTL.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kcm_api::ObjectKey;

use crate::kinds::EVENTS;
use crate::request::Now;
use crate::server::Server;

/// TTL of an event.
pub const EVENT_LIFE: Duration = Duration::from_hours(1);

/// The expiry times of events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expiry {
    by_key: BTreeMap<ObjectKey, Duration>,
    by_time: BTreeSet<(Duration, ObjectKey)>,
}

impl Expiry {
    pub(crate) fn written(&mut self, key: ObjectKey, now: Duration) {
        self.removed(&key);
        let due = now + EVENT_LIFE;
        self.by_time.insert((due, key.clone()));
        self.by_key.insert(key, due);
    }

    pub(crate) fn removed(&mut self, key: &ObjectKey) {
        if let Some(due) = self.by_key.remove(key) {
            self.by_time.remove(&(due, key.clone()));
        }
    }

    fn next_due(&self, now: Duration) -> Option<ObjectKey> {
        self.by_time.first().filter(|(due, _)| *due <= now).map(|(_, key)| key.clone())
    }
}

impl Server {
    pub(crate) fn has_expired(&self, now: Now) -> bool {
        self.expiry.next_due(now.elapsed).is_some()
    }

    pub(crate) fn expire(&mut self, now: Now) {
        while let Some(key) = self.expiry.next_due(now.elapsed) {
            self.expiry.removed(&key);
            self.store.remove(&EVENTS, &key, now.elapsed);
        }
    }
}
