//! Nodes, namespaces and what else a cluster is made of.

use std::collections::BTreeSet;

use serde_json::Value;

use super::column::{AGE, NAME, Row, text};
use super::phrase::{self, NONE, or, text_of};
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "nodes" => NODES,
        "namespaces" => NAMESPACES,
        "configmaps" => CONFIG_MAPS,
        "secrets" => SECRETS,
        "resourcequotas" => RESOURCE_QUOTAS,
        "componentstatuses" => COMPONENT_STATUSES,
        "leases" => LEASES,
        "runtimeclasses" => RUNTIME_CLASSES,
        "flowschemas" => FLOW_SCHEMAS,
        "prioritylevelconfigurations" => PRIORITY_LEVELS,
        _ => PLAIN,
    }
}

const NODES: Columns = &[
    NAME,
    text("Status", "Whether the node is ready, and whether pods are placed on it.", |row| node_status(row).into()),
    text("Roles", "What the node is for.", |row| or(&node_roles(row), NONE).into()),
    AGE,
    text("Version", "The version of the kubelet.", |row| row.text("/status/nodeInfo/kubeletVersion")),
    text("Internal-IP", "The address within the cluster.", |row| node_address(row, "InternalIP")).wide(),
    text("External-IP", "The address beyond the cluster.", |row| node_address(row, "ExternalIP")).wide(),
    text("OS-Image", "The operating system.", |row| row.filled_or("/status/nodeInfo/osImage", UNKNOWN)).wide(),
    text("Kernel-Version", "The kernel and the architecture.", kernel).wide(),
    text("Container-Runtime", "What runs the containers.", |row| {
        row.filled_or("/status/nodeInfo/containerRuntimeVersion", UNKNOWN)
    })
    .wide(),
];

const NAMESPACES: Columns =
    &[NAME, text("Status", "The phase of the namespace.", |row| row.text("/status/phase")), AGE];

const CONFIG_MAPS: Columns =
    &[NAME, text("Data", "How many entries there are.", |row| (row.len("/data") + row.len("/binaryData")).into()), AGE];

const SECRETS: Columns = &[
    NAME,
    text("Type", "What the secret is for.", |row| row.text("/type")),
    text("Data", "How many entries there are.", |row| row.count("/data")),
    AGE,
];

const RESOURCE_QUOTAS: Columns = &[
    NAME,
    text("Request", "What is used of each request and count.", |row| quota(row, false).into()),
    text("Limit", "What is used of each limit.", |row| quota(row, true).into()),
    AGE,
];

const COMPONENT_STATUSES: Columns = &[
    NAME,
    text("Status", "Whether the component is healthy.", |row| {
        match health(row).map(|health| text_of(health, "status")) {
            None => "Unknown".into(),
            Some("True") => "Healthy".into(),
            Some(_) => "Unhealthy".into(),
        }
    }),
    text("Message", "What the component says.", |row| {
        health(row).map_or("", |health| text_of(health, "message")).into()
    }),
    text("Error", "What went wrong.", |row| health(row).map_or("", |health| text_of(health, "error")).into()),
];

const LEASES: Columns = &[NAME, text("Holder", "Who holds the lease.", |row| row.text("/spec/holderIdentity")), AGE];

const RUNTIME_CLASSES: Columns = &[NAME, text("Handler", "What runs the pods.", |row| row.text("/handler")), AGE];

const FLOW_SCHEMAS: Columns = &[
    NAME,
    text("PriorityLevel", "The level of the requests.", |row| row.text("/spec/priorityLevelConfiguration/name")),
    text("MatchingPrecedence", "The lowest that matches wins.", |row| row.number("/spec/matchingPrecedence")),
    text("DistinguisherMethod", "What tells flows apart.", |row| row.text_or("/spec/distinguisherMethod/type", NONE)),
    AGE,
    text("MissingPL", "Whether the level is not there.", |row| {
        row.condition("Dangling").map_or("?", |condition| text_of(condition, "status")).into()
    }),
];

const PRIORITY_LEVELS: Columns = &[
    NAME,
    text("Type", "Whether requests are limited.", |row| row.text("/spec/type")),
    text("NominalConcurrencyShares", "The share of the level.", |row| {
        number_or_none(row, "/spec/limited/nominalConcurrencyShares")
    }),
    text("Queues", "How many queues there are.", |row| {
        number_or_none(row, "/spec/limited/limitResponse/queuing/queues")
    }),
    text("HandSize", "How many queues a flow has.", |row| {
        number_or_none(row, "/spec/limited/limitResponse/queuing/handSize")
    }),
    text("QueueLengthLimit", "How many requests a queue holds.", |row| {
        number_or_none(row, "/spec/limited/limitResponse/queuing/queueLengthLimit")
    }),
    AGE,
];

const UNKNOWN: &str = "<unknown>";

fn node_status(row: &Row<'_>) -> String {
    let ready = match row.condition("Ready") {
        None => "Unknown",
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    let cordoned = if row.flag("/spec/unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}")
}

/// Roles as labels name them, in either form.
fn node_roles(row: &Row<'_>) -> String {
    let labels = row.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let role = |(key, value): (&'_ String, &'_ Value)| {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str()?,
            None => return None,
        };
        (!role.is_empty()).then(|| role.to_owned())
    };
    let roles: BTreeSet<String> = labels.filter_map(role).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn node_address(row: &Row<'_>, kind: &str) -> Value {
    let address = row.list("/status/addresses").iter().find(|address| address["type"] == *kind);
    address.map_or(NONE, |address| text_of(address, "address")).into()
}

fn kernel(row: &Row<'_>) -> Value {
    let kernel = or(row.str("/status/nodeInfo/kernelVersion").unwrap_or_default(), UNKNOWN);
    match row.str("/status/nodeInfo/architecture") {
        None | Some("") => kernel.into(),
        Some(architecture) => format!("{kernel} ({architecture})").into(),
    }
}

/// What is used of each resource of a quota, limits or all others.
fn quota(row: &Row<'_>, limits: bool) -> String {
    let hard = row.at("/status/hard");
    let mut names: Vec<&String> = hard.and_then(Value::as_object).into_iter().flat_map(|hard| hard.keys()).collect();
    names.sort_unstable();
    let piece = |name: &String| {
        let used = phrase::amount(row.at("/status/used"), name);
        format!("{name}: {used}/{}", phrase::amount(hard, name))
    };
    let pieces = names.into_iter().filter(|name| name.starts_with("limits.") == limits).map(piece);
    pieces.collect::<Vec<_>>().join(", ")
}

fn health<'a>(row: &Row<'a>) -> Option<&'a Value> {
    row.list("/conditions").iter().find(|condition| condition["type"] == "Healthy")
}

fn number_or_none(row: &Row<'_>, pointer: &str) -> Value {
    row.at(pointer).cloned().unwrap_or_else(|| NONE.into())
}
