//! Upstream's feature gates, as data.

use std::str::FromStr;

use super::versions::Versions;
use crate::gate::{Gate, GateStage};

/// The gates that upstream's kube-controller-manager 1.37 knows, from its registries of features.
///
/// Each stage as `MINOR:STAGE:on|off[:locked][:compat=MINOR]`, from which minor version of Kubernetes 1 on it holds; 0 for
/// those that are older than every version that can be emulated. `compat` is the oldest minimum compatibility version at
/// which the stage holds.
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

    /// Returns the gate as it is in these versions of Kubernetes, or `None` if they do not have it.
    ///
    /// # Upstream
    /// `featureSpecAtEmulationAndMinCompatVersion` of `k8s.io/component-base/featuregate/feature_gate.go`.
    #[must_use]
    pub fn at(&self, versions: Versions) -> Option<Gate> {
        let stages = self.stages.split(' ').filter_map(Stage::read);
        let stage = stages.rev().find(|stage| stage.holds_in(versions))?;
        Some(Gate { name: self.name, default: stage.default, stage: stage.kind, locked: stage.locked })
    }
}

/// A stage of a gate, and since when it holds.
struct Stage {
    since: u16,
    kind: GateStage,
    default: bool,
    locked: bool,
    /// The oldest minimum compatibility version.
    compatible: Option<u16>,
}

impl Stage {
    fn holds_in(&self, versions: Versions) -> bool {
        self.since <= versions.emulated() && self.compatible.is_none_or(|oldest| oldest <= versions.compatible())
    }

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
        let mut stage = Self { since, kind, default: parts.next()? == "on", locked: false, compatible: None };
        for part in parts {
            match part.strip_prefix("compat=") {
                Some(minor) => stage.compatible = Some(u16::from_str(minor).ok()?),
                None if part == "locked" => stage.locked = true,
                None => return None,
            }
        }
        Some(stage)
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

    #[test]
    fn every_row_of_the_table_is_read_whole() {
        assert_eq!(upstream().count(), TABLE.lines().count() - 1);
        for gate in upstream() {
            let stages: Vec<_> = gate.stages.split(' ').map(Stage::read).collect();
            assert!(stages.iter().all(Option::is_some), "{gate:?}");
            assert!(stages.iter().flatten().is_sorted_by_key(|stage| stage.since), "{gate:?}");
            assert!(gate.at(Versions::default()).is_some(), "{gate:?}");
            assert!(gate.requires().all(|required| find(required).is_some()), "{gate:?}");
        }
        assert!(upstream().is_sorted_by_key(|gate| gate.name));
    }

    #[test]
    fn a_stage_may_depend_on_the_minimum_compatibility_version() {
        let gate = find("DRAFractionalCapacityRange").expect("it is in the table");
        let default = |emulated, compatible| {
            gate.at(Versions::new(emulated, compatible).expect("legal")).map(|gate| gate.default)
        };
        assert_eq!(default(37, 37), Some(true));
        assert_eq!(default(37, 36), Some(false));
        assert_eq!(default(36, 36), None, "it is not there yet");
    }
}
