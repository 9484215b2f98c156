//! Services, what is behind them, and what leads to them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::phrase::{NONE, first_of, or, text_of};
use super::row::Row;

/// Highest number of hosts, addresses or ports in a cell.
const SHOWN: usize = 3;

pub(super) fn external_address(row: &Row<'_>) -> String {
    let own: Vec<&str> = row.list("/spec/externalIPs").iter().filter_map(Value::as_str).collect();
    match row.str("/spec/type") {
        Some("ClusterIP" | "NodePort") => or(&own.join(","), NONE).to_owned(),
        Some("LoadBalancer") => {
            let balancer = balancer_addresses(row);
            let all = std::iter::once(balancer.as_str()).filter(|addresses| !addresses.is_empty()).chain(own);
            or(&all.collect::<Vec<_>>().join(","), "<pending>").to_owned()
        }
        Some("ExternalName") => row.text("/spec/externalName").to_owned(),
        Some(_) | None => "<unknown>".to_owned(),
    }
}

/// Addresses of a load balancer in order, or its host names if there are none.
pub(super) fn balancer_addresses(row: &Row<'_>) -> String {
    let addresses: BTreeSet<&str> = row
        .list("/status/loadBalancer/ingress")
        .iter()
        .map(|ingress| or(text_of(ingress, "ip"), text_of(ingress, "hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn service_ports(row: &Row<'_>) -> String {
    let piece = |port: &Value| {
        let (number, protocol) = (&port["port"], text_of(port, "protocol"));
        match port["nodePort"].as_i64().unwrap_or(0) {
            0 => format!("{number}/{protocol}"),
            node => format!("{number}:{node}/{protocol}"),
        }
    };
    row.list("/spec/ports").iter().map(piece).collect::<Vec<_>>().join(",")
}

pub(super) fn endpoints(row: &Row<'_>) -> String {
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

pub(super) fn slice_ports(row: &Row<'_>) -> String {
    let piece = |port: &Value| match (&port["port"], port["name"].as_str()) {
        (Value::Null, None) => "*".to_owned(),
        (Value::Null, Some(name)) => name.to_owned(),
        (number, _) => number.to_string(),
    };
    first_of(&row.list("/ports").iter().map(piece).collect::<Vec<_>>(), SHOWN)
}

pub(super) fn slice_addresses(row: &Row<'_>) -> String {
    let addresses = row.list("/endpoints").iter().filter_map(|endpoint| endpoint["addresses"].as_array()).flatten();
    first_of(&addresses.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>(), SHOWN)
}

pub(super) fn hosts(row: &Row<'_>) -> String {
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

pub(super) fn parameters(row: &Row<'_>) -> Value {
    let Some(parameters) = row.at("/spec/parameters") else { return NONE.into() };
    let (kind, name) = (text_of(parameters, "kind"), text_of(parameters, "name"));
    match parameters["apiGroup"].as_str() {
        Some(group) => format!("{kind}.{group}/{name}").into(),
        None => format!("{kind}/{name}").into(),
    }
}

pub(super) fn parent(row: &Row<'_>) -> Value {
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
