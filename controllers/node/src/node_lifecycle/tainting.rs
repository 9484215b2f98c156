//! Which Nodes may get a taint that evicts, and when: the states of the zones, their queues, and their rates. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kcm_framework::api::{InternedStr, ObjectKey};
use tokio::time::Instant;

use super::limiter::Limiter;
use super::zone::{Rates, ZoneCount, ZoneState};

/// The Nodes that wait for a taint, zone by zone.
#[derive(Debug)]
pub(super) struct Tainting {
    rates: Rates,
    zones: BTreeMap<InternedStr, Zone>,
    /// The Nodes that may be tainted.
    granted: BTreeSet<ObjectKey>,
    /// `true` if a complete pass has judged the zones.
    is_judged: bool,
    is_all_disrupted: bool,
}

#[derive(Debug)]
struct Zone {
    /// Absent until a complete pass has counted Nodes of the zone.
    state: Option<ZoneState>,
    limiter: Limiter,
    queue: VecDeque<ObjectKey>,
}

/// A Node after its health was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) key: ObjectKey,
    pub(super) zone: InternedStr,
    /// `true` if the Node does not count for its zone.
    pub(super) is_excluded: bool,
    /// `true` if the condition `Ready` is true.
    pub(super) is_ready: bool,
    /// `true` if the Node is to get a taint that it lacks.
    pub(super) lacks_taint: bool,
}

/// Change of the mode in which no zone has a ready Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disruption {
    /// The mode did not change.
    Unchanged,
    /// Now no Node is ready: probably the control plane is cut off. All taints are removed.
    Begins,
    /// Some Node is ready again: all others get their grace period again.
    Ends,
}

impl Tainting {
    pub(super) const fn new(rates: Rates) -> Self {
        Self { rates, zones: BTreeMap::new(), granted: BTreeSet::new(), is_judged: false, is_all_disrupted: false }
    }

    /// Judges the zones after a complete pass.
    pub(super) fn judge(&mut self, counts: &BTreeMap<InternedStr, ZoneCount>, now: Instant) -> Disruption {
        self.is_judged = true;
        let state_of = |count: &ZoneCount| count.state(self.rates.unhealthy);
        let is_all_disrupted = !counts.is_empty() && counts.values().all(|count| state_of(count) == ZoneState::Full);
        let disruption = match (self.is_all_disrupted, is_all_disrupted) {
            (false, true) => Disruption::Begins,
            (true, false) if !counts.is_empty() => Disruption::Ends,
            (true | false, _) => Disruption::Unchanged,
        };
        match disruption {
            Disruption::Begins => {
                self.is_all_disrupted = true;
                self.granted.clear();
                self.zones.values_mut().for_each(|zone| zone.queue.clear());
            }
            Disruption::Ends => self.is_all_disrupted = false,
            Disruption::Unchanged => {}
        }
        // The bucket of a zone whose Nodes do not count is kept, so that a pass brings no new token.
        for (_, zone) in self.zones.iter_mut().filter(|(name, _)| !counts.contains_key(*name)) {
            zone.state = None;
            zone.limiter.set_rate(self.rates.eviction, now);
        }
        self.zones
            .retain(|name, zone| counts.contains_key(name) || !zone.queue.is_empty() || !zone.limiter.is_full(now));
        for (name, count) in counts {
            let state = state_of(count);
            let rate = self.rates.of(state, count.nodes());
            let zone = self.zones.entry(name.clone()).or_insert_with(|| Zone::new(self.rates.eviction, now));
            if zone.state != Some(state) {
                tracing::info!(zone = %name.replace('\0', ""), ?state, rate, "The state of a zone has changed");
            }
            zone.state = Some(state);
            // The rate follows the number of Nodes too, which may cross the threshold while the state stays.
            zone.limiter.set_rate(rate, now);
        }
        disruption
    }

    /// Enqueues the Nodes that lack a taint, in the order of the first pass that saw them, and forgets all others.
    pub(super) fn enqueue(&mut self, nodes: &[Judged], now: Instant) {
        let waits = |node: &&Judged| node.lacks_taint && !self.is_all_disrupted;
        let waiting: BTreeMap<&ObjectKey, &InternedStr> =
            nodes.iter().filter(waits).map(|node| (&node.key, &node.zone)).collect();
        self.granted.retain(|key| waiting.contains_key(key));
        let mut queued = BTreeSet::new();
        for (name, zone) in &mut self.zones {
            // A Node that changed its zone waits in the new one.
            zone.queue.retain(|key| waiting.get(key).is_some_and(|zone| *zone == name));
            queued.extend(zone.queue.iter().cloned());
        }
        for (key, name) in waiting {
            if !queued.contains(key) && !self.granted.contains(key) {
                let zone = self.zones.entry(name.clone()).or_insert_with(|| Zone::new(self.rates.eviction, now));
                zone.queue.push_back(key.clone());
            }
        }
    }

    /// Returns the Nodes that may be tainted from now on.
    pub(super) fn grant(&mut self, now: Instant) -> Vec<ObjectKey> {
        let mut granted = Vec::new();
        if !self.is_judged || self.is_all_disrupted {
            return granted;
        }
        for zone in self.zones.values_mut() {
            while !zone.queue.is_empty() && zone.limiter.take(now) {
                granted.extend(zone.queue.pop_front());
            }
        }
        self.granted.extend(granted.iter().cloned());
        granted
    }

    pub(super) fn is_granted(&self, key: &ObjectKey) -> bool {
        self.granted.contains(key)
    }

    /// Returns `true` while no zone has a ready Node.
    pub(super) const fn is_all_disrupted(&self) -> bool {
        self.is_all_disrupted
    }
}

impl Zone {
    const fn new(rate: f32, now: Instant) -> Self {
        Self { state: None, limiter: Limiter::new(rate, now), queue: VecDeque::new() }
    }
}
