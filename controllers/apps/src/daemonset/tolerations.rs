//! The tolerations that every daemon pod has besides those of its template.

use kcm_framework::api::scheduling::{ComparisonOperators, Toleration};
use kcm_framework::api::views::{DaemonSetView, Taint};
use serde::Serialize;
use serde_json::value::RawValue;

/// A toleration of a key and an effect, whatever the value, with the operator `Exists`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Exists {
    key: &'static str,
    operator: &'static str,
    effect: &'static str,
}

impl Exists {
    const fn new(key: &'static str, effect: &'static str) -> Self {
        Self { key, operator: "Exists", effect }
    }

    fn tolerates(self, taint: &Taint) -> bool {
        self.key == &*taint.key && self.effect == &*taint.effect
    }

    /// Whether a toleration of a template says the same, apart from how long it tolerates.
    fn is(self, toleration: &Toleration) -> bool {
        let same = self.key == &*toleration.key && self.effect == &*toleration.effect;
        same && self.operator == &*toleration.operator && toleration.value.is_empty()
    }
}

const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";

/// A daemon stays on a node with problems: it may be what repairs the node.
const OF_ALL: &[Exists] = &[
    Exists::new("node.kubernetes.io/not-ready", NO_EXECUTE),
    Exists::new("node.kubernetes.io/unreachable", NO_EXECUTE),
    Exists::new("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    Exists::new("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    Exists::new("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    Exists::new("node.kubernetes.io/unschedulable", NO_SCHEDULE),
];

/// A daemon in the network of its node does not need that of pods.
const OF_HOST_NETWORK: &[Exists] = &[Exists::new("node.kubernetes.io/network-unavailable", NO_SCHEDULE)];

/// The tolerations that a daemon pod gets, in the order in which they are added.
///
/// # Upstream
/// `util.AddOrUpdateDaemonPodTolerations`.
fn added(set: &DaemonSetView) -> impl Iterator<Item = Exists> {
    let of_host_network = if set.host_network { OF_HOST_NETWORK } else { &[] };
    OF_ALL.iter().chain(of_host_network).copied()
}

/// Whether the pods of the set tolerate the taint.
pub(super) fn is_tolerated(set: &DaemonSetView, taint: &Taint, comparison: ComparisonOperators) -> bool {
    set.tolerations.iter().any(|toleration| toleration.tolerates(taint, comparison))
        || added(set).any(|toleration| toleration.tolerates(taint))
}

/// The tolerations of a pod: those of the template, of which one that is added takes the place of one that says the same
/// for some time only.
pub(super) fn of_pod(set: &DaemonSetView, template: &[&RawValue]) -> Result<Vec<Box<RawValue>>, serde_json::Error> {
    let mut tolerations = Vec::with_capacity(template.len() + OF_ALL.len() + OF_HOST_NETWORK.len());
    let added: Vec<Exists> = added(set).collect();
    for raw in template {
        let toleration: Toleration = serde_json::from_str(raw.get())?;
        tolerations.push(match added.iter().find(|added| added.is(&toleration)) {
            Some(added) => serde_json::value::to_raw_value(added)?,
            None => (*raw).to_owned(),
        });
    }
    let is_there = |added: &&Exists| set.tolerations.iter().any(|toleration| added.is(toleration));
    for added in added.iter().filter(|added| !is_there(added)) {
        tolerations.push(serde_json::value::to_raw_value(added)?);
    }
    Ok(tolerations)
}
