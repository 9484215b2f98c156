//! The health of Nodes: how long each has been silent. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::views::{NodeConditionStatus, NodeReady};
use kcm_framework::api::{ObjectKey, Uid};
use tokio::time::Instant;

/// The signs of life of each Node.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    nodes: BTreeMap<ObjectKey, Record>,
}

#[derive(Debug)]
struct Record {
    uid: Uid,
    ready: Option<NodeReady>,
    renewed: Option<Timestamp>,
    /// Time of the last sign of life, by the clock of this process: clocks of kubelets do not count.
    alive_at: Instant,
    /// The last pass that saw the Node.
    pass: u64,
}

/// Signs of life of a Node in the caches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signs<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a Uid,
    pub(super) ready: Option<NodeReady>,
    /// `spec.renewTime` of its lease.
    pub(super) renewed: Option<Timestamp>,
}

/// The periods of the settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Periods {
    /// For Nodes that have reported.
    pub(super) monitor_grace: Duration,
    /// For Nodes without a condition `Ready`.
    pub(super) startup_grace: Duration,
}

/// The times of a pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) now: Instant,
    /// Time since which the API server has been watched without a break. Silence before it does not count.
    pub(super) watched_since: Instant,
    /// Number of the pass.
    pub(super) pass: u64,
}

/// Result of looking at a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// `true` if the Node was not known before.
    pub(super) is_new: bool,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The Node has reported within its grace period.
    Alive,
    /// The Node is silent, and its condition says so.
    KnownSilent,
    /// The Node is silent, and its condition does not say so yet.
    Silent,
}

impl Monitor {
    /// Looks at a Node. Any change of a heartbeat or of a lease is a sign of life, so that a kubelet whose clock went back
    /// counts as alive.
    pub(super) fn look(&mut self, signs: Signs<'_>, periods: Periods, times: Times) -> Look {
        let record = self.nodes.get_mut(signs.key).filter(|record| record.uid == *signs.uid);
        let (alive_at, is_new) = match record {
            None => {
                let Signs { uid, ready, renewed, .. } = signs;
                let record = Record { uid: uid.clone(), ready, renewed, alive_at: times.now, pass: times.pass };
                self.nodes.insert(signs.key.clone(), record);
                (times.now, true)
            }
            Some(record) => {
                if record.shows_life(signs) {
                    record.alive_at = times.now;
                }
                (record.ready, record.renewed, record.pass) = (signs.ready, signs.renewed, times.pass);
                (record.alive_at, false)
            }
        };
        let grace = if signs.ready.is_some() { periods.monitor_grace } else { periods.startup_grace };
        let silent_for = times.now.saturating_duration_since(alive_at.max(times.watched_since));
        let is_known = signs.ready.is_some_and(|ready| ready.status == NodeConditionStatus::Unknown);
        let verdict = match (silent_for > grace, is_known) {
            (false, _) => Verdict::Alive,
            (true, true) => Verdict::KnownSilent,
            (true, false) => Verdict::Silent,
        };
        Look { is_new, verdict }
    }

    /// Compares the lease that a live read returned. Returns `true` if the kubelet has renewed it since.
    pub(super) fn is_renewed(&mut self, key: &ObjectKey, renewed: Option<Timestamp>, now: Instant) -> bool {
        let Some(record) = self.nodes.get_mut(key) else { return false };
        let is_renewed = renewed.is_some() && renewed != record.renewed;
        if is_renewed {
            // The cache shows it later, which is no further sign of life.
            record.renewed = renewed;
            record.alive_at = now;
        }
        is_renewed
    }

    /// Gives every Node its grace period again.
    pub(super) fn begin_again(&mut self, now: Instant) {
        self.nodes.values_mut().for_each(|record| record.alive_at = now);
    }

    /// Forgets the Nodes that the pass did not see, and returns them.
    pub(super) fn forget_unseen(&mut self, pass: u64) -> Vec<(ObjectKey, Uid)> {
        let mut unseen = Vec::new();
        self.nodes.retain(|key, record| {
            let is_seen = record.pass == pass;
            if !is_seen {
                unseen.push((key.clone(), record.uid.clone()));
            }
            is_seen
        });
        unseen
    }

    /// The uid of the Node of that name, if it is known.
    pub(super) fn uid(&self, key: &ObjectKey) -> Option<&Uid> {
        self.nodes.get(key).map(|record| &record.uid)
    }
}

impl Record {
    fn shows_life(&self, signs: Signs<'_>) -> bool {
        let has_reported = match (self.ready, signs.ready) {
            (None, None) => false,
            (Some(before), Some(after)) => before.last_heartbeat != after.last_heartbeat,
            (None, Some(_)) | (Some(_), None) => true,
        };
        has_reported || signs.renewed.is_some() && self.renewed != signs.renewed
    }
}
