//! Services, what is behind them, and what leads to them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::column::{AGE, NAME, Row, text};
use super::phrase::{self, NONE, UNSET, first_of, or, text_of};
use super::{Columns, PLAIN};

pub(super) fn of(plural: &str) -> Columns {
    match plural {
        "endpointslices" => ENDPOINT_SLICES,
        "ingresses" => INGRESSES,
        "ingressclasses" => INGRESS_CLASSES,
        "networkpolicies" => NETWORK_POLICIES,
        "ipaddresses" => IP_ADDRESSES,
        "servicecidrs" => SERVICE_CIDRS,
        _ => PLAIN,
    }
}

pub(super) const SERVICES: Columns = &[
    NAME,
    text("Type", "How the service is exposed.", |row| row.text("/spec/type")),
    text("Cluster-IP", "The address within the cluster.", |row| row.text_or("/spec/clusterIPs/0", NONE)),
    text("External-IP", "The addresses beyond the cluster.", |row| external_address(row).into()),
    text("Port(s)", "Ports, with those of the nodes.", |row| or(&service_ports(row), NONE).into()),
    AGE,
    text("Selector", "Which pods serve.", |row| phrase::labels(row.at("/spec/selector")).into()).wide(),
];

pub(super) const ENDPOINTS: Columns =
    &[NAME, text("Endpoints", "Addresses and ports that serve.", |row| endpoints(row).into()), AGE];

const ENDPOINT_SLICES: Columns = &[
    NAME,
    text("AddressType", "The kind of the addresses.", |row| row.text("/addressType")),
    text("Ports", "Ports that serve.", |row| or(&slice_ports(row), UNSET).into()),
    text("Endpoints", "Addresses that serve.", |row| or(&slice_addresses(row), UNSET).into()),
    AGE,
];

const INGRESSES: Columns = &[
    NAME,
    text("Class", "The class that serves the ingress.", |row| row.text_or("/spec/ingressClassName", NONE)),
    text("Hosts", "Hosts that rules are for.", |row| hosts(row).into()),
    text("Address", "Where the load balancer listens.", |row| balancer_addresses(row).into()),
    text("Ports", "Ports that are open.", |row| {
        if row.list("/spec/tls").is_empty() { "80".into() } else { "80, 443".into() }
    }),
    AGE,
];

const INGRESS_CLASSES: Columns = &[
    text("Name", "Name of the class.", |row| row.name_of_default(&["ingressclass.kubernetes.io/is-default-class"]))
        .named(),
    text("Controller", "The controller that serves the class.", |row| row.text("/spec/controller")),
    text("Parameters", "An object with further parameters.", parameters),
    AGE,
];

const NETWORK_POLICIES: Columns = &[
    NAME,
    text("Pod-Selector", "Which pods the policy is for.", |row| phrase::selector_or_none(row.at("/spec/podSelector"))),
    AGE,
];

const IP_ADDRESSES: Columns = &[NAME, text("ParentRef", "What the address belongs to.", parent)];

const SERVICE_CIDRS: Columns = &[
    NAME,
    text("CIDRs", "Ranges of addresses.", |row| {
        row.list("/spec/cidrs").iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",").into()
    }),
    AGE,
];

/// How many hosts, addresses or ports are named.
const SHOWN: usize = 3;

fn external_address(row: &Row<'_>) -> String {
    let own: Vec<&str> = row.list("/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match row.str("/spec/type") {
        Some("ClusterIP" | "NodePort") => or(&own.join(","), NONE).to_owned(),
        Some("LoadBalancer") => {
            let balancer = balancer_addresses(row);
            let all = std::iter::once(balancer.as_str()).filter(|addresses| !addresses.is_empty()).chain(own);
            or(&all.collect::<Vec<_>>().join(","), "<pending>").to_owned()
        }
        Some("ExternalName") => row.str("/spec/externalName").unwrap_or_default().to_owned(),
        Some(_) | None => "<unknown>".to_owned(),
    }
}

/// Addresses of a load balancer in order; names only where there are none.
fn balancer_addresses(row: &Row<'_>) -> String {
    let addresses: BTreeSet<&str> = row
        .list("/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| or(text_of(ingress, "ip"), text_of(ingress, "hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn service_ports(row: &Row<'_>) -> String {
    let piece = |port: &Value| {
        let (number, protocol) = (&port["port"], text_of(port, "protocol"));
        match port["nodePort"].as_i64().unwrap_or(0) {
            0 => format!("{number}/{protocol}"),
            node => format!("{number}:{node}/{protocol}"),
        }
    };
    row.list("/spec/ports").iter().map(piece).collect::<Vec<_>>().join(",")
}

fn endpoints(row: &Row<'_>) -> String {
    let subsets = row.list("/subsets");
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let items = |field: &str| subset[field].as_array().map_or(&[][..], Vec::as_slice);
        let addresses = || items("addresses").iter().map(|address| text_of(address, "ip"));
        // A headless service may have no ports.
        if items("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in items("ports") {
            all.extend(addresses().map(|address| with_port(address, &port["port"])));
        }
    }
    first_of(&all, SHOWN)
}

fn with_port(address: &str, port: &Value) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

fn slice_ports(row: &Row<'_>) -> String {
    let piece = |port: &Value| match (&port["port"], port["name"].as_str()) {
        (Value::Null, None) => "*".to_owned(),
        (Value::Null, Some(name)) => name.to_owned(),
        (number, _) => number.to_string(),
    };
    first_of(&row.list("/ports").iter().map(piece).collect::<Vec<_>>(), SHOWN)
}

fn slice_addresses(row: &Row<'_>) -> String {
    let addresses = row.list("/endpoints").iter().filter_map(|endpoint| endpoint["addresses"].as_array()).flatten();
    first_of(&addresses.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>(), SHOWN)
}

fn hosts(row: &Row<'_>) -> String {
    let rules = row.list("/spec/rules");
    let mut hosts: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= hosts.len() == SHOWN;
        let host = text_of(rule, "host");
        if !more && !host.is_empty() {
            hosts.push(host);
        }
    }
    let list = hosts.join(",");
    // Rules beyond are counted, hosts of theirs or not.
    if more { format!("{list} + {} more...", rules.len() - SHOWN) } else { or(&list, "*").to_owned() }
}

fn parameters(row: &Row<'_>) -> Value {
    let Some(parameters) = row.at("/spec/parameters") else { return NONE.into() };
    let (kind, name) = (text_of(parameters, "kind"), text_of(parameters, "name"));
    match parameters["apiGroup"].as_str() {
        Some(group) => format!("{kind}.{group}/{name}").into(),
        None => format!("{kind}/{name}").into(),
    }
}

fn parent(row: &Row<'_>) -> Value {
    let Some(parent) = row.at("/spec/parentRef") else { return NONE.into() };
    let (resource, name) = (text_of(parent, "resource"), text_of(parent, "name"));
    let resource = match text_of(parent, "group") {
        "" => resource.to_lowercase(),
        group => format!("{resource}.{group}").to_lowercase(),
    };
    match text_of(parent, "namespace") {
        "" => format!("{resource}/{name}").into(),
        namespace => format!("{resource}/{namespace}/{name}").into(),
    }
}
