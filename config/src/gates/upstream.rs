//! Upstream's feature gates, as data.

use std::str::FromStr;

use crate::gate::{Gate, GateStage};

/// The gates that upstream's kube-controller-manager 1.36 knows, from its registries of features.
///
/// Each stage as `MINOR:STAGE:on|off[:locked]`, from which minor version of Kubernetes 1 on it holds; 0 for those that are
/// older than every version that can be emulated.
const TABLE: &str = include_str!("../../data/feature-gates.tsv");

/// A gate that upstream's kube-controller-manager knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamGate {
    /// Name of the gate, as upstream.
    pub name: &'static str,
    /// Whether kube-controller-manager reads the gate. It also knows gates that it never reads.
    pub is_read: bool,
    requires: &'static str,
    stages: &'static str,
}

impl UpstreamGate {
    /// Returns the gates that must be on if this gate is.
    pub fn requires(&self) -> impl Iterator<Item = &'static str> {
        self.requires.split(',').filter(|name| !name.is_empty())
    }

    /// Returns the gate as it is in this minor version of Kubernetes 1, or `None` if that version does not have it.
    #[must_use]
    pub fn at(&self, minor: u16) -> Option<Gate> {
        let stages = self.stages.split(' ').filter_map(Stage::read);
        let stage = stages.take_while(|stage| stage.since <= minor).last()?;
        Some(Gate { name: self.name, default: stage.default, stage: stage.kind, locked: stage.locked })
    }
}

/// A stage of a gate, and since when it holds.
struct Stage {
    since: u16,
    kind: GateStage,
    default: bool,
    locked: bool,
}

impl Stage {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let since = u16::from_str(parts.next()?).ok()?;
        let kind = match parts.next()? {
            "Alpha" => GateStage::Alpha,
            "Beta" => GateStage::Beta,
            "GA" => GateStage::Ga,
            "Deprecated" => GateStage::Deprecated,
            _ => return None,
        };
        let default = parts.next()? == "on";
        Some(Self { since, kind, default, locked: parts.next() == Some("locked") })
    }
}

/// Every gate of upstream, sorted by name. The table is read anew by each call, and nothing of it is kept.
pub fn upstream() -> impl Iterator<Item = UpstreamGate> {
    TABLE.lines().skip(1).filter_map(|line| {
        let mut fields = line.split('\t');
        let (name, read, requires, stages) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(UpstreamGate { name, is_read: read == "read", requires, stages })
    })
}

/// The gate of this name.
pub(super) fn find(name: &str) -> Option<UpstreamGate> {
    upstream().find(|gate| gate.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::versions::CURRENT;

    #[test]
    fn every_row_of_the_table_is_read_whole() {
        assert_eq!(upstream().count(), TABLE.lines().count() - 1);
        for gate in upstream() {
            let stages: Vec<_> = gate.stages.split(' ').map(Stage::read).collect();
            assert!(stages.iter().all(Option::is_some), "{gate:?}");
            assert!(stages.iter().flatten().is_sorted_by_key(|stage| stage.since), "{gate:?}");
            assert!(gate.at(CURRENT).is_some(), "{gate:?}");
            assert!(gate.requires().all(|required| find(required).is_some()), "{gate:?}");
        }
        assert!(upstream().is_sorted_by_key(|gate| gate.name));
    }
}
