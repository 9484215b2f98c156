//! The pairs of `--feature-gates`.

use std::collections::BTreeMap;

use super::versions::Versions;
use super::{removed, upstream};
use crate::did_you_mean::nearest;
use crate::error::{Problem, excerpt};
use crate::gate::Gate;
use crate::value::{Kind, parse_bool};

/// The component whose gates these are.
const COMPONENT: &str = "kube";

/// Reads pairs such as `Gate=true` or `kube:Gate=true`; the last pair for a gate counts.
pub(super) fn read<P: AsRef<str>>(
    versions: Versions,
    own: &[Gate],
    pairs: &[P],
) -> Result<BTreeMap<String, bool>, Vec<Problem>> {
    let mut explicit = BTreeMap::new();
    let mut problems = Vec::new();
    let with_component = pairs.iter().filter(|pair| pair.as_ref().contains(':')).count();
    if (1..pairs.len()).contains(&with_component) {
        problems.push(Problem::MixedGatePrefixes);
    }
    for pair in pairs {
        match read_pair(versions, own, pair.as_ref()) {
            Ok((name, on)) => drop(explicit.insert(name, on)),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(explicit) } else { Err(problems) }
}

fn read_pair(versions: Versions, own: &[Gate], pair: &str) -> Result<(String, bool), Problem> {
    let wrong_type = || Problem::WrongType {
        setting: "feature-gates".to_owned(),
        given: excerpt(pair),
        expected: Kind::FeatureGates.expected().to_owned(),
    };
    let (name, on) = pair.split_once('=').ok_or_else(wrong_type)?;
    let (component, name) = name.split_once(':').unwrap_or((COMPONENT, name));
    if component.trim() != COMPONENT {
        return Err(Problem::UnknownGateComponent { component: component.trim().to_owned() });
    }
    let name = name.trim();
    let on = parse_bool(on.trim()).ok_or_else(wrong_type)?;
    let gate = match upstream::find(name) {
        Some(known) => known.at(versions).ok_or_else(|| Problem::GateTooNew {
            gate: name.to_owned(),
            version: format!("1.{}", versions.emulated()),
        })?,
        None => *own.iter().find(|gate| gate.name == name).ok_or_else(|| unknown(own, name))?,
    };
    if gate.locked && gate.default != on {
        return Err(Problem::LockedGate { gate: name.to_owned(), locked_to: gate.default });
    }
    Ok((name.to_owned(), on))
}

fn unknown(own: &[Gate], name: &str) -> Problem {
    if let Some(advice) = removed::advice(name) {
        return Problem::RemovedGate { gate: name.to_owned(), advice };
    }
    let known = upstream::upstream().map(|gate| gate.name).chain(own.iter().map(|gate| gate.name));
    Problem::UnknownGate { gate: name.to_owned(), nearest: nearest(name, known).map(str::to_owned) }
}
