//! The taints and labels that a Node is to have. Pure.

use jiff::Timestamp;
use kcm_framework::api::scheduling::Taint;
use kcm_framework::api::views::{Node, NodeConditionStatus, NodeHealth};
use serde_json::{Map, Value, json};

use crate::shared::{NOT_READY, UNREACHABLE};

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// Label of a Node, and the beta label that repeats it.
const REPEATED_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

/// Permission to change the taints of a Node that evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    /// A taint that evicts may be added.
    Add,
    /// A taint that evicts stays, and none is added.
    Keep,
    /// No Node of the cluster is ready: taints that evict are removed.
    Remove,
}

/// A taint, without its value and its time.
type Wanted = (&'static str, &'static str);

/// The changes of a Node.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Changes {
    /// All taints of the Node, if they change.
    pub(super) taints: Option<Vec<Value>>,
    /// The labels to set.
    pub(super) labels: Map<String, Value>,
    /// `true` if a Node that had no taint that evicts gets one.
    pub(super) begins_eviction: bool,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.taints.is_none() && self.labels.is_empty()
    }
}

/// Plans the changes of a Node.
pub(super) fn plan(node: &Node, health: &NodeHealth, permission: Permission, now: Timestamp) -> Changes {
    let has = |wanted: Wanted| node.taints.iter().any(|taint| is(taint, wanted));
    let no_execute = no_execute(node, health, permission);
    let mut wanted = no_schedule(health);
    // A taint that the rule leaves alone is as it is wanted.
    wanted.extend(match no_execute {
        Evicting::Wanted(key) => Some((key, NO_EXECUTE)),
        Evicting::Unwanted | Evicting::AsItIs => None,
    });
    let is_governed = |taint: &Taint| {
        let is_schedule = &*taint.effect == NO_SCHEDULE && CONDITION_TAINTS.contains(&&*taint.key);
        let is_execute = &*taint.effect == NO_EXECUTE && [NOT_READY, UNREACHABLE].contains(&&*taint.key);
        is_schedule || is_execute && no_execute != Evicting::AsItIs
    };
    let is_kept = |taint: &&Taint| !is_governed(taint) || wanted.iter().any(|wanted| is(taint, *wanted));
    let kept: Vec<Value> = node.taints.iter().filter(is_kept).map(written).collect();
    let missing: Vec<Wanted> = wanted.iter().copied().filter(|wanted| !has(*wanted)).collect();
    // The time of the opposite taint goes on.
    let unhealthy_since = node.taints.iter().filter(|taint| taint.evicts() && is_governed(taint));
    let unhealthy_since = unhealthy_since.filter_map(|taint| taint.time_added).min();
    let added = missing.iter().map(|(key, effect)| {
        let since = if *effect == NO_EXECUTE { unhealthy_since } else { None };
        json!({ "key": key, "effect": effect, "timeAdded": in_seconds(since.unwrap_or(now)) })
    });
    let is_changed = kept.len() < node.taints.len() || !missing.is_empty();
    Changes {
        taints: is_changed.then(|| kept.into_iter().chain(added).collect()),
        labels: labels(node),
        begins_eviction: missing.iter().any(|(_, effect)| *effect == NO_EXECUTE)
            && !has((NOT_READY, NO_EXECUTE))
            && !has((UNREACHABLE, NO_EXECUTE)),
    }
}

/// Returns `true` if the Node is to get a taint that evicts, and has none.
pub(super) fn lacks_taint(node: &Node, status: NodeConditionStatus) -> bool {
    let is_unhealthy = matches!(status, NodeConditionStatus::False | NodeConditionStatus::Unknown);
    let is_tainted =
        [NOT_READY, UNREACHABLE].iter().any(|key| node.taints.iter().any(|taint| is(taint, (key, NO_EXECUTE))));
    is_unhealthy && !is_tainted
}

const CONDITION_TAINTS: [&str; 7] = [
    NOT_READY,
    UNREACHABLE,
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/unschedulable",
];

/// The taints with the effect `NoSchedule`.
fn no_schedule(health: &NodeHealth) -> Vec<Wanted> {
    let ready = health.ready.map_or(NodeConditionStatus::Absent, |ready| ready.status);
    let is_true = |status: NodeConditionStatus| status == NodeConditionStatus::True;
    let rules = [
        ready == NodeConditionStatus::False,
        ready == NodeConditionStatus::Unknown,
        is_true(health.memory_pressure),
        is_true(health.disk_pressure),
        is_true(health.pid_pressure),
        is_true(health.network_unavailable),
        health.unschedulable,
    ];
    CONDITION_TAINTS
        .into_iter()
        .zip(rules)
        .filter(|(_, is_wanted)| *is_wanted)
        .map(|(key, _)| (key, NO_SCHEDULE))
        .collect()
}

/// Rule for the taints of a Node's health with the effect `NoExecute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evicting {
    /// The Node is to have the taint with this key.
    Wanted(&'static str),
    /// The Node is to have none.
    Unwanted,
    /// The Node keeps what it has.
    AsItIs,
}

fn no_execute(node: &Node, health: &NodeHealth, permission: Permission) -> Evicting {
    let status = health.ready.map_or(NodeConditionStatus::Absent, |ready| ready.status);
    let wanted = match status {
        NodeConditionStatus::True => return Evicting::Unwanted,
        NodeConditionStatus::False => NOT_READY,
        NodeConditionStatus::Unknown => UNREACHABLE,
        NodeConditionStatus::Absent | NodeConditionStatus::Other => return Evicting::AsItIs,
    };
    match permission {
        Permission::Remove => Evicting::Unwanted,
        Permission::Keep if lacks_taint(node, status) => Evicting::Unwanted,
        Permission::Add | Permission::Keep => Evicting::Wanted(wanted),
    }
}

/// The beta labels that differ from the labels that replaced them.
fn labels(node: &Node) -> Map<String, Value> {
    let labels = &node.metadata.labels;
    let differs = |(stable, beta): (&str, &str)| {
        let value = labels.get(stable)?;
        (labels.get(beta) != Some(value)).then(|| (beta.to_owned(), json!(value)))
    };
    REPEATED_LABELS.into_iter().filter_map(differs).collect()
}

fn is(taint: &Taint, (key, effect): (&str, &str)) -> bool {
    &*taint.key == key && &*taint.effect == effect
}

/// The taint as the API server has it.
fn written(taint: &Taint) -> Value {
    let mut json = json!({ "key": &*taint.key, "effect": &*taint.effect });
    if !taint.value.is_empty() {
        json["value"] = json!(&*taint.value);
    }
    if let Some(added) = taint.time_added {
        json["timeAdded"] = json!(in_seconds(added));
    }
    json
}

/// As the API serves times: whole seconds.
fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
