//! Controllers of pods that run for good, and the budgets of their pods.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, integer, text};
use super::phrase::{self, NONE, text_of};
use super::pods::{CONTAINERS, IMAGES};
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "deployments" => DEPLOYMENTS,
        "replicasets" => REPLICA_SETS,
        "statefulsets" => STATEFUL_SETS,
        "daemonsets" => DAEMON_SETS,
        "controllerrevisions" => CONTROLLER_REVISIONS,
        _ => PLAIN,
    }
}

const DEPLOYMENTS: Columns = &[
    NAME,
    READY_OF_WANTED,
    text("Up-to-date", "Pods of the newest template.", |row| row.number("/status/updatedReplicas")),
    text("Available", "Pods that are available.", |row| row.number("/status/availableReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    text("Selector", "Which pods are selected.", |row| {
        phrase::selector(row.at("/spec/selector")).unwrap_or_else(|| "<invalid>".to_owned()).into()
    })
    .wide(),
];

const REPLICA_SETS: Columns = &[NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR];

pub(super) const REPLICATION_CONTROLLERS: Columns = &[
    NAME,
    DESIRED,
    CURRENT,
    READY,
    AGE,
    CONTAINERS,
    IMAGES,
    text("Selector", "Which pods are selected.", |row| phrase::labels(row.at("/spec/selector")).into()).wide(),
];

const STATEFUL_SETS: Columns = &[NAME, READY_OF_WANTED, AGE, CONTAINERS, IMAGES];

const DAEMON_SETS: Columns = &[
    NAME,
    integer("Desired", "Nodes that should run a pod.", |row| row.number("/status/desiredNumberScheduled")),
    integer("Current", "Nodes that run a pod and should.", |row| row.number("/status/currentNumberScheduled")),
    integer("Ready", "Nodes whose pod is ready.", |row| row.number("/status/numberReady")),
    integer("Up-to-date", "Nodes whose pod is of the newest template.", |row| {
        row.number("/status/updatedNumberScheduled")
    }),
    integer("Available", "Nodes whose pod is available.", |row| row.number("/status/numberAvailable")),
    text("Node Selector", "Labels of the nodes.", |row| {
        phrase::labels(row.at("/spec/template/spec/nodeSelector")).into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CONTROLLER_REVISIONS: Columns = &[
    NAME,
    text("Controller", "The controller of the object.", controller),
    text("Revision", "The number of the revision.", |row| row.number("/revision")),
    AGE,
];

pub(super) const POD_DISRUPTION_BUDGETS: Columns = &[
    NAME,
    text("Min Available", "Pods that must stay available.", |row| number_or_share(row, "/spec/minAvailable")),
    text("Max Unavailable", "Pods that may be unavailable.", |row| number_or_share(row, "/spec/maxUnavailable")),
    integer("Allowed Disruptions", "Pods that may be disrupted now.", |row| row.number("/status/disruptionsAllowed")),
    AGE,
];

const READY_OF_WANTED: Column = text("Ready", "Pods that are ready, of those wanted.", |row| {
    format!("{}/{}", row.int("/status/readyReplicas"), row.int("/spec/replicas")).into()
});
const DESIRED: Column = integer("Desired", "Pods wanted.", |row| row.number("/spec/replicas"));
const CURRENT: Column = integer("Current", "Pods there are.", |row| row.number("/status/replicas"));
const READY: Column = integer("Ready", "Pods that are ready.", |row| row.number("/status/readyReplicas"));

/// Which pods belong to an object with a label selector.
pub(super) const SELECTOR: Column =
    text("Selector", "Which pods are selected.", |row| phrase::selector_or_none(row.at("/spec/selector"))).wide();

fn controller(row: &Row<'_>) -> Value {
    let controls = |owner: &&Value| owner["controller"] == true;
    let Some(owner) = row.list("/metadata/ownerReferences").iter().find(controls) else { return NONE.into() };
    let kind = text_of(owner, "kind");
    let kind = match text_of(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    };
    format!("{}/{}", kind.to_lowercase(), text_of(owner, "name")).into()
}

fn number_or_share(row: &Row<'_>, pointer: &str) -> Value {
    match row.at(pointer) {
        None => "N/A".into(),
        Some(Value::String(share)) => share.as_str().into(),
        Some(number) => number.to_string().into(),
    }
}
