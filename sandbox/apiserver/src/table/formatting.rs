//! The functions that columns name, which format cells.

use serde_json::Value;

use super::duration::human_duration;
use super::phrase::{self, or, text_of};
use super::pods::Summary;
use super::row::Row;
use super::{autoscaling, cluster, events, extension, network, pods, workloads};

/// Makes a cell of a row, by the arguments of its column.
pub(super) type Formatting = fn(&Row<'_>, &Arguments) -> Value;

/// The arguments of a formatting; those that are not given are empty.
#[derive(Debug, Clone)]
pub(super) struct Arguments(Vec<&'static str>);

impl Arguments {
    pub(super) fn of(words: &'static str) -> Self {
        Self(words.split_ascii_whitespace().collect())
    }

    fn get(&self, at: usize) -> &'static str {
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// The formatting of a name.
pub(super) fn of(name: &str) -> Option<Formatting> {
    generic(name).or_else(|| computed(name))
}

/// Formattings of what is at a JSON pointer, their first argument; the last one stands for an absent value.
fn generic(name: &str) -> Option<Formatting> {
    Some(match name {
        "text" => |row, args| row.str(args.get(0)).unwrap_or(args.get(1)).into(),
        // An empty string counts as absent.
        "filled" => |row, args| or(row.text(args.get(0)), args.get(1)).into(),
        "either" => |row, args| row.str(args.get(0)).unwrap_or(row.text(args.get(1))).into(),
        "number" => |row, args| row.int(args.get(0)).into(),
        "value" => |row, args| row.at(args.get(0)).cloned().unwrap_or_else(|| args.get(1).into()),
        // A value of any type as a string.
        "scalar" => |row, args| match row.at(args.get(0)) {
            None => args.get(1).into(),
            Some(Value::String(text)) => text.as_str().into(),
            Some(other) => other.to_string().into(),
        },
        "flag" => |row, args| row.flag(args.get(0)).unwrap_or(args.get(1) == "true").into(),
        "flag-text" => |row, args| match (row.at(args.get(0)), row.flag(args.get(0))) {
            (None, _) => args.get(1).into(),
            (_, Some(true)) => "True".into(),
            (Some(_), _) => "False".into(),
        },
        // Of several lists or maps together.
        "count" => |row, args| args.0.iter().map(|pointer| row.len(pointer)).sum::<usize>().into(),
        "ratio" => |row, args| format!("{}/{}", row.int(args.get(0)), row.int(args.get(1))).into(),
        // Two fields of a map.
        "pair" => |row, args| match row.at(args.get(0)) {
            None => args.get(3).into(),
            Some(map) => format!("{}/{}", text_of(map, args.get(1)), text_of(map, args.get(2))).into(),
        },
        // A field of the items of a list.
        "joined" => |row, args| match row.at(args.get(0)) {
            None => args.get(2).into(),
            Some(_) => phrase::joined(row.list(args.get(0)), args.get(1)).into(),
        },
        "strings" => |row, args| {
            let strings: Vec<&str> = row.list(args.get(0)).iter().filter_map(Value::as_str).collect();
            or(&strings.join(","), args.get(1)).into()
        },
        // A field of the item of a type.
        "item" => |row, args| {
            let item = row.list(args.get(0)).iter().find(|item| item["type"] == *args.get(1));
            item.map_or(args.get(3), |item| text_of(item, args.get(2))).into()
        },
        "since" => |row, args| match row.at(args.get(0)) {
            None => args.get(1).into(),
            Some(_) => row.since_time(row.time(args.get(0))).into(),
        },
        "duration" => |row, args| match row.at(args.get(0)) {
            None => args.get(1).into(),
            Some(_) => human_duration(row.int(args.get(0))).into(),
        },
        "labels" => |row, args| phrase::labels(row.at(args.get(0))).into(),
        // Strings for an invalid and for an empty selector follow.
        "selector" => |row, args| phrase::selector(row.at(args.get(0)), args.get(1), args.get(2)).into(),
        "amount" => |row, args| phrase::amount(row.at(args.get(0)), args.get(1)).into(),
        "access-modes" => |row, args| cluster::access_modes(row.list(args.get(0))).into(),
        _ => return None,
    })
}

/// Formattings of one kind of object.
fn computed(name: &str) -> Option<Formatting> {
    Some(match name {
        "age-or-null" => |row, _| match row.at("/metadata/creationTimestamp") {
            None => Value::Null,
            Some(_) => row.since_time(row.time("/metadata/creationTimestamp")).into(),
        },
        "name-of-default" => name_of_default,
        "pod-ready" => |row, _| Summary::of(row).ready(),
        "pod-status" => |row, _| Summary::of(row).status.into(),
        "pod-restarts" => |row, _| Summary::of(row).restarts(row),
        "pod-readiness-gates" => |row, _| pods::readiness_gates(row),
        "controller" => |row, _| workloads::controller(row),
        "job-status" => |row, _| workloads::job_status(row).into(),
        "job-completions" => |row, _| workloads::job_completions(row).into(),
        "job-duration" => |row, _| workloads::job_duration(row).into(),
        "metrics" => |row, _| autoscaling::metrics(row).into(),
        "service-addresses" => |row, _| network::external_address(row).into(),
        "service-ports" => |row, _| or(&network::service_ports(row), phrase::NONE).into(),
        "endpoints" => |row, _| network::endpoints(row).into(),
        "slice-ports" => |row, _| or(&network::slice_ports(row), phrase::UNSET).into(),
        "slice-addresses" => |row, _| or(&network::slice_addresses(row), phrase::UNSET).into(),
        "ingress-hosts" => |row, _| network::hosts(row).into(),
        "ingress-ports" => |row, _| if row.list("/spec/tls").is_empty() { "80".into() } else { "80, 443".into() },
        "balancer-addresses" => |row, _| network::balancer_addresses(row).into(),
        "ingress-parameters" => |row, _| network::parameters(row),
        "parent" => |row, _| network::parent(row),
        "phase" => |row, _| cluster::phase(row).into(),
        // A claim without a volume has neither.
        "claim-capacity" => |row, _| match row.text("/spec/volumeName") {
            "" => "".into(),
            _ => phrase::amount(row.at("/status/capacity"), "storage").into(),
        },
        "claim-access-modes" => |row, _| match row.text("/spec/volumeName") {
            "" => "".into(),
            _ => cluster::access_modes(row.list("/status/accessModes")).into(),
        },
        "node-status" => |row, _| cluster::node_status(row).into(),
        "node-roles" => |row, _| or(&cluster::node_roles(row), phrase::NONE).into(),
        "kernel" => |row, _| cluster::kernel(row),
        "quota" => |row, args| cluster::quota(row, args.get(0) == "limits").into(),
        "resource-claim-state" => |row, _| cluster::resource_claim_state(row).into(),
        "subjects" => |row, args| cluster::subjects(row, args.get(0)),
        "certificate-state" => |row, _| cluster::certificate_state(row).into(),
        "event-last-seen" => |row, _| events::last_seen(row).into(),
        "event-first-seen" => |row, _| events::first_seen(row).into(),
        "event-object" => |row, _| events::object(row),
        "event-source" => |row, _| events::source(row),
        "event-message" => |row, _| row.text("/message").trim().into(),
        "event-count" => |row, _| events::count(row).into(),
        "policy-parameters" => |row, _| extension::parameters(row),
        "api-service-available" => |row, _| extension::available(row),
        _ => return None,
    })
}

/// The name, and whether an annotation makes the object the default of its kind.
fn name_of_default(row: &Row<'_>, annotations: &Arguments) -> Value {
    let given = row.at("/metadata/annotations");
    let is_set =
        |annotation: &&str| given.and_then(|given| given.get(*annotation)).is_some_and(|value| value == "true");
    let name = row.text("/metadata/name");
    if annotations.0.iter().any(is_set) { format!("{name} (default)").into() } else { name.into() }
}
