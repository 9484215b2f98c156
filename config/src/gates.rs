//! Feature gates, with upstream's names.

use std::collections::BTreeMap;

use crate::did_you_mean::nearest;
use crate::error::{Problem, excerpt};
use crate::value::{Kind, parse_bool};

/// One feature gate as a row of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Upstream's name.
    pub name: &'static str,
    /// Whether it is on by default.
    pub default: bool,
    /// Its stage.
    pub stage: GateStage,
    /// Whether it is locked to its default (upstream's `LockToDefault`).
    pub locked: bool,
}

/// The stage of a gate (upstream's `PreRelease`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateStage {
    /// Off by default; `AllAlpha=true` turns it on.
    Alpha,
    /// On by default, mostly; `AllBeta=false` turns it off.
    Beta,
    /// Generally available; the gate will be removed.
    Ga,
    /// Deprecated; the gate will be removed.
    Deprecated,
}

/// Whether `status.terminatingReplicas` of replica sets and deployments is counted.
pub const DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS: Gate =
    Gate { name: "DeploymentReplicaSetTerminatingReplicas", default: true, stage: GateStage::Beta, locked: false };

/// Whether the annotation `controller.kubernetes.io/pod-deletion-cost` ranks pods for deletion.
pub const POD_DELETION_COST: Gate =
    Gate { name: "PodDeletionCost", default: true, stage: GateStage::Beta, locked: false };

/// The gates that the implemented controllers read.
pub const KNOWN: &[Gate] = &[DEPLOYMENT_REPLICA_SET_TERMINATING_REPLICAS, POD_DELETION_COST];

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// The gates that were set explicitly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gates {
    explicit: BTreeMap<String, bool>,
}

impl Gates {
    /// Parses pairs such as `Gate=true` and checks them against the known gates.
    ///
    /// As upstream: the last pair for a gate wins, the name may have the prefix `kube:`, and
    /// `AllAlpha` and `AllBeta` set every gate of their stage that is not set itself.
    ///
    /// # Errors
    ///
    /// A [`Problem`] for each malformed pair, unknown gate, and change of a locked gate.
    pub fn parse<P: AsRef<str>>(known: &[Gate], pairs: &[P]) -> Result<Self, Vec<Problem>> {
        let mut gates = Self::default();
        let mut problems = Vec::new();
        for pair in pairs {
            match read_pair(known, pair.as_ref()) {
                Ok((name, on)) => drop(gates.explicit.insert(name, on)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(gates) } else { Err(problems) }
    }

    /// Whether the gate is on.
    #[must_use]
    pub fn enabled(&self, gate: &Gate) -> bool {
        if gate.locked {
            return gate.default;
        }
        let whole_stage = match gate.stage {
            GateStage::Alpha => self.explicit.get(ALL_ALPHA),
            GateStage::Beta => self.explicit.get(ALL_BETA),
            GateStage::Ga | GateStage::Deprecated => None,
        };
        self.explicit.get(gate.name).or(whole_stage).copied().unwrap_or(gate.default)
    }
}

fn read_pair(known: &[Gate], pair: &str) -> Result<(String, bool), Problem> {
    let wrong_type = || Problem::WrongType {
        setting: "feature-gates".to_owned(),
        given: excerpt(pair),
        expected: Kind::FeatureGates.expected().to_owned(),
    };
    let (name, on) = pair.split_once('=').ok_or_else(wrong_type)?;
    let name = name.trim();
    let name = name.strip_prefix("kube:").map_or(name, str::trim);
    let on = parse_bool(on.trim()).ok_or_else(wrong_type)?;
    let gate = known.iter().find(|gate| gate.name == name);
    match gate {
        None if name != ALL_ALPHA && name != ALL_BETA => {
            let nearest = nearest(name, known.iter().map(|gate| gate.name)).map(str::to_owned);
            Err(Problem::UnknownGate { gate: name.to_owned(), nearest })
        }
        Some(gate) if gate.locked && gate.default != on => {
            Err(Problem::LockedGate { gate: name.to_owned(), locked_to: gate.default })
        }
        None | Some(_) => Ok((name.to_owned(), on)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: Gate = Gate { name: "NewIdea", default: false, stage: GateStage::Alpha, locked: false };
    const BETA: Gate = Gate { name: "GoodIdea", default: true, stage: GateStage::Beta, locked: false };
    const DONE: Gate = Gate { name: "OldIdea", default: true, stage: GateStage::Ga, locked: true };
    const GATES: &[Gate] = &[ALPHA, BETA, DONE];

    fn enabled(pairs: &[&str]) -> [bool; 3] {
        let gates = Gates::parse(GATES, pairs).expect("the pairs are good");
        [&ALPHA, &BETA, &DONE].map(|gate| gates.enabled(gate))
    }

    #[test]
    fn the_last_value_of_a_gate_wins() {
        assert_eq!(enabled(&[]), [false, true, true]);
        assert_eq!(enabled(&["NewIdea=true", "GoodIdea=f"]), [true, false, true]);
        assert_eq!(enabled(&["NewIdea=true", " NewIdea = false "]), [false, true, true]);
        assert_eq!(enabled(&["kube:NewIdea=true"]), [true, true, true]);
        assert_eq!(enabled(&["OldIdea=true"]), [false, true, true]);
    }

    #[test]
    fn a_stage_sets_gates_that_are_not_set_themselves() {
        assert_eq!(enabled(&["AllAlpha=true", "AllBeta=false"]), [true, false, true]);
        assert_eq!(enabled(&["GoodIdea=true", "AllBeta=false"]), [false, true, true]);
    }

    #[test]
    fn every_bad_pair_is_reported() {
        let wrong = |given: &str| Problem::WrongType {
            setting: "feature-gates".to_owned(),
            given: format!("{given:?}"),
            expected: Kind::FeatureGates.expected().to_owned(),
        };
        assert_eq!(
            Gates::parse(GATES, &["GoodIdae=true", "Other=true", "OldIdea=false", "NewIdea", "NewIdea=yes"]),
            Err(vec![
                Problem::UnknownGate { gate: "GoodIdae".to_owned(), nearest: Some("GoodIdea".to_owned()) },
                Problem::UnknownGate { gate: "Other".to_owned(), nearest: None },
                Problem::LockedGate { gate: "OldIdea".to_owned(), locked_to: true },
                wrong("NewIdea"),
                wrong("NewIdea=yes"),
            ])
        );
    }
}
