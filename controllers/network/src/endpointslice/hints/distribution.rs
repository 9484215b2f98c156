//! Hints by `spec.trafficDistribution`: traffic stays in the zone, or on the node, of its endpoint.

use super::FamilySlices;
use crate::shared::slices::{Endpoint, Hint, Hints};

/// Where traffic should stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::endpointslice) enum TrafficDistribution {
    /// `PreferClose`: in the zone.
    Close,
    /// `PreferSameZone`: in the zone.
    SameZone,
    /// `PreferSameNode`: on the node, else in the zone.
    SameNode,
}

impl TrafficDistribution {
    /// The distribution of that name; absent where there is none.
    pub(in crate::endpointslice) fn named(name: &str) -> Option<Self> {
        [Self::Close, Self::SameZone, Self::SameNode].into_iter().find(|known| known.as_str() == name)
    }

    /// Its name.
    pub(in crate::endpointslice) const fn as_str(self) -> &'static str {
        match self {
            Self::Close => "PreferClose",
            Self::SameZone => "PreferSameZone",
            Self::SameNode => "PreferSameNode",
        }
    }

    /// Sets the hints of all ready endpoints.
    ///
    /// # Upstream
    /// `trafficdist.ReconcileHints`: endpoints that are not ready keep the hints that they have.
    pub(in crate::endpointslice) fn set_hints(self, slices: &mut FamilySlices) {
        slices.update_where(|slice| {
            let mut ready = slice.endpoints.iter().filter(|endpoint| endpoint.is_ready());
            ready.any(|endpoint| endpoint.hints.clone().unwrap_or_default() != self.hints(endpoint).unwrap_or_default())
        });
        for endpoint in slices.written().flat_map(|draft| &mut draft.endpoints).filter(|endpoint| endpoint.is_ready()) {
            endpoint.hints = self.hints(endpoint);
        }
    }

    fn hints(self, endpoint: &Endpoint) -> Option<Hints> {
        let hint = |name: &String| Hint { name: name.clone() };
        let for_zones: Vec<_> = endpoint.zone.iter().map(hint).collect();
        let for_nodes: Vec<_> = match self {
            Self::SameNode => endpoint.node_name.iter().map(hint).collect(),
            Self::Close | Self::SameZone => Vec::new(),
        };
        (!for_zones.is_empty() || !for_nodes.is_empty()).then_some(Hints { for_zones, for_nodes })
    }
}
