//! Zones: their names, their states, and the rates that follow. Pure.

use kcm_framework::api::{InternedStr, Labels};

/// The beta label of a dimension, and the label that replaced it. The first that exists counts, also if it is empty.
const ZONE: [&str; 2] = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
const REGION: [&str; 2] = ["failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"];

/// Returns the key of the zone of a Node with these labels, empty if it is in none.
///
/// # Upstream
/// `GetZoneKey` of `k8s.io/component-helpers/node/topology`.
pub(super) fn zone_of(labels: &Labels) -> InternedStr {
    let of = |names: [&str; 2]| names.into_iter().find_map(|name| labels.get(name)).unwrap_or_default();
    let (region, zone) = (of(REGION), of(ZONE));
    if region.is_empty() && zone.is_empty() {
        return InternedStr::default();
    }
    format!("{region}:\0:{zone}").into()
}

/// Returns `true` if the Node does not count for its zone.
pub(super) fn is_excluded(labels: &Labels) -> bool {
    labels.get("node.kubernetes.io/exclude-disruption").is_some()
}

/// State of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneState {
    Normal,
    /// Many Nodes are not ready.
    Partial,
    /// No Node is ready.
    Full,
}

/// Nodes of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ZoneCount {
    pub(super) ready: usize,
    pub(super) not_ready: usize,
}

impl ZoneCount {
    pub(super) const fn nodes(self) -> usize {
        self.ready + self.not_ready
    }

    /// Returns the state. In single precision, as upstream.
    #[expect(clippy::cast_precision_loss, reason = "upstream compares in single precision")]
    pub(super) fn state(self, unhealthy: f32) -> ZoneState {
        let share = self.not_ready as f32 / self.nodes() as f32;
        if self.ready == 0 && self.not_ready > 0 {
            ZoneState::Full
        } else if self.not_ready > 2 && share >= unhealthy {
            ZoneState::Partial
        } else {
            ZoneState::Normal
        }
    }
}

/// The rates of the settings, in Nodes per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) eviction: f32,
    pub(super) secondary: f32,
    /// A zone with more Nodes is large.
    pub(super) large: i32,
    /// Share of Nodes that are not ready from which a zone is disrupted.
    pub(super) unhealthy: f32,
}

impl Rates {
    /// Returns the rate at which Nodes of a zone are tainted.
    pub(super) fn of(&self, state: ZoneState, nodes: usize) -> f32 {
        let is_large = i32::try_from(nodes).is_ok_and(|nodes| nodes > self.large);
        match state {
            ZoneState::Normal | ZoneState::Full => self.eviction,
            ZoneState::Partial if is_large => self.secondary,
            ZoneState::Partial => 0.0,
        }
    }
}
