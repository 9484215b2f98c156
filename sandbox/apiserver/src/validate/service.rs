//! Services, endpoints and endpoint slices.
//!
//! # Upstream
//! `ValidateService` and `ValidateEndpoints` of `pkg/apis/core/validation`, `pkg/apis/discovery/validation`, and the
//! allocators of `pkg/registry/core/service`

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::field_path::{Errors, FieldPath};
use super::{go_format, metadata, names};
use crate::json::at;
use crate::status::FieldError;

const PORT: [(&str, &str, &str); 6] = [
    ("Name", "name", "\"\""),
    ("Protocol", "protocol", "\"\""),
    ("AppProtocol", "appProtocol", "null"),
    ("Port", "port", "0"),
    ("TargetPort", "targetPort", "0"),
    ("NodePort", "nodePort", "0"),
];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn service(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let kind = spec.get("type");
    let is_headless = spec.get("clusterIP").text() == "None";
    let is_external = kind.text() == "ExternalName";
    let ports = spec.get("ports");
    if ports.is_empty() && !is_headless && !is_external {
        errors.push(ports.required(""));
    }
    match kind.text() {
        "LoadBalancer" | "NodePort" if is_headless => {
            let ips = spec.get("clusterIPs");
            let first = Value::from("None");
            let detail = format!("may not be set to 'None' for {} services", kind.text());
            errors.push(ips.index(0, &first).invalid(detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let field_path = spec.get(field);
                let is_set = !field_path.is_empty() || (field == "clusterIPs" && !spec.get("clusterIP").is_empty());
                if is_set {
                    errors.push(field_path.forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.get("externalName");
            let plain = name.text().trim_end_matches('.');
            if plain.is_empty() {
                errors.push(name.required(""));
            } else {
                name.refuse(plain, names::subdomain, errors);
            }
        }
        _ => {}
    }
    self::ports(&ports, errors);
    metadata::labels(&spec.get("selector"), errors);
    affinity(&spec, errors);
    addresses(&spec, errors);
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    kind.one_of(&known, errors);
    if kind.text() == "ClusterIP" {
        for port in ports.items() {
            if port.get("nodePort").number().unwrap_or(0) != 0 {
                errors.push(port.get("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
            }
        }
    }
    node_ports(&ports, errors);
    exposure(&spec, errors);
}

fn ports(ports: &FieldPath<'_, '_>, errors: &mut Errors) {
    let needs_names = ports.list().len() > 1;
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in ports.items() {
        let (name, number, target, protocol) =
            (port.get("name"), port.get("port"), port.get("targetPort"), port.get("protocol"));
        if name.is_empty() {
            if needs_names {
                errors.push(name.required(""));
            }
        } else {
            name.follows(names::label, errors);
            name.must_be_new(&mut names, errors);
        }
        names::port_number(&number, errors);
        protocol.one_of(&PROTOCOLS, errors);
        names::port(&target, errors);
        let key = (number.number(), protocol.text());
        if !numbers.insert(key) {
            // Upstream compares by these two and prints no other field.
            let shown = serde_json::json!({ "protocol": protocol.text(), "port": number.value });
            errors.push(FieldError::duplicate_shown(port.to_string(), go_format::go(&shown, &PORT), ""));
        }
    }
}

fn node_ports(ports: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for port in ports.items() {
        let node_port = port.get("nodePort");
        let Some(number) = node_port.number().filter(|number| *number != 0) else { continue };
        if !known.insert((port.get("protocol").text(), number)) {
            // Upstream finds this in the allocator.
            errors.push(node_port.invalid("provided port is already allocated"));
        }
    }
}

fn affinity(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    spec.get("sessionAffinity").one_of(&["ClientIP", "None"], errors);
    let seconds = spec.get("sessionAffinityConfig.clientIP.timeoutSeconds");
    seconds.refuse_number(
        |seconds| !(1..=86_400).contains(&seconds),
        "must be greater than 0 and less than 86400",
        errors,
    );
}

fn family_of(address: &str) -> Option<&'static str> {
    address.parse::<IpAddr>().ok().map(|address| if address.is_ipv4() { "IPv4" } else { "IPv6" })
}

fn addresses(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let families = spec.get("ipFamilies");
    let mut known = BTreeSet::new();
    let is_headless = spec.get("clusterIP").text() == "None";
    for family in families.items() {
        let before = errors.len();
        family.one_of(&["IPv4", "IPv6"], errors);
        if !known.insert(family.text()) {
            errors.push(family.duplicate());
        } else if family.text() == "IPv6" && errors.len() == before && !is_headless {
            errors.push(family.invalid("not configured on this cluster"));
        }
    }
    let policy = spec.get("ipFamilyPolicy");
    policy.one_of(&["PreferDualStack", "RequireDualStack", "SingleStack"], errors);
    if policy.text() == "RequireDualStack" && !is_headless {
        errors.push(policy.invalid("this cluster is not configured for dual-stack services"));
    }
    for (index, address) in spec.get("clusterIPs").items().enumerate() {
        if address.text() == "None" {
            continue;
        }
        address.follows(names::ip, errors);
        let wanted = families.list().get(index).and_then(Value::as_str);
        if let (Some(family), Some(wanted)) = (family_of(address.text()), wanted)
            && family != wanted
            && spec.get("type").text() != "ExternalName"
        {
            errors.retain(|error| !error.is_about(&families.to_string()));
            errors.push(address.invalid(format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`")));
        }
    }
}

fn exposure(spec: &FieldPath<'_, '_>, errors: &mut Errors) {
    let kind = spec.get("type").text();
    let is_balanced = kind == "LoadBalancer";
    let ips = spec.get("externalIPs");
    for address in ips.items() {
        external_address(&address, errors);
    }
    let external = spec.get("externalTrafficPolicy");
    let is_exposed = matches!(kind, "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && !ips.is_empty());
    if external.is_given() && !is_exposed {
        errors.push(external.invalid("may only be set for externally-accessible services"));
    } else if is_exposed && external.is_given() {
        external.one_of(&["Cluster", "Local"], errors);
    }
    spec.get("internalTrafficPolicy").one_of(&["Cluster", "Local"], errors);
    let ranges = spec.named("LoadBalancerSourceRanges").holding(spec.get("loadBalancerSourceRanges").value);
    if !ranges.is_empty() {
        if is_balanced {
            for range in ranges.items() {
                range.follows(names::cidr, errors);
            }
        } else {
            errors.push(ranges.forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if spec.get(field).is_given() && !is_balanced {
            errors.push(spec.get(field).forbidden("may only be used when `type` is 'LoadBalancer'"));
        }
    }
}

/// Refuses loopback, unspecified and link-local addresses.
fn external_address(field_path: &FieldPath<'_, '_>, errors: &mut Errors) {
    let Ok(address) = field_path.text().parse::<IpAddr>() else {
        field_path.follows(names::ip, errors);
        return;
    };
    let problem = if address.is_unspecified() {
        Some(format!("may not be unspecified ({address})"))
    } else if address.is_loopback() {
        Some("may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned())
    } else {
        let (link_local, multicast) = match address {
            IpAddr::V4(v4) => (v4.is_link_local(), v4.is_multicast() && v4.octets()[..3] == [224, 0, 0]),
            IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
        };
        if link_local {
            Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned())
        } else if multicast {
            Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned())
        } else {
            None
        }
    };
    errors.extend(problem.map(|problem| field_path.invalid(problem)));
}

pub(super) fn service_change(subresource: Option<&str>, old: &Value, new: &Value, errors: &mut Errors) {
    let root = FieldPath::root(new);
    if subresource == Some("status") {
        let ingress = root.get("status.loadBalancer.ingress");
        if !ingress.is_empty() && root.get("spec.type").text() != "LoadBalancer" {
            errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        }
        return;
    }
    let (before, after) = (root.get("spec.type").text(), at(old, &["spec", "type"]).and_then(Value::as_str));
    if before == "ExternalName" || after == Some("ExternalName") {
        return;
    }
    let first = |service: &Value| {
        let ip = at(service, &["spec", "clusterIP"]).and_then(Value::as_str).unwrap_or_default();
        ip.to_owned()
    };
    let (was, is) = (first(old), first(new));
    if !was.is_empty() && was != is {
        let ips = root.get("spec.clusterIPs");
        let list = serde_json::json!([is]);
        let field_path = ips.index(0, &list).holding(&list);
        errors.clear();
        errors.push(field_path.invalid("may not change once set"));
    }
}

pub(super) fn endpoints(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    for subset in object.get("subsets").items() {
        let (ready, not_ready) = (subset.get("addresses"), subset.get("notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for list in [&ready, &not_ready] {
            for address in list.items() {
                let ip = address.get("ip");
                let problems = names::ip(ip.text());
                if problems.is_empty() {
                    external_address(&ip, errors);
                } else {
                    ip.follows(names::ip, errors);
                    errors.push(ip.invalid("must be a valid IP address"));
                }
            }
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            let name = port.get("name");
            if name.is_empty() {
                if ports.list().len() > 1 {
                    errors.push(name.required(""));
                }
            } else {
                name.follows(names::label, errors);
            }
            names::port_number(&port.get("port"), errors);
            port.get("protocol").one_of(&PROTOCOLS, errors);
        }
    }
}

const LARGEST_ENDPOINT: usize = 100;

pub(super) fn slice(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let kind = object.get("addressType");
    kind.must_be_one_of(&["FQDN", "IPv4", "IPv6"], errors);
    for endpoint in object.get("endpoints").items() {
        let addresses = endpoint.get("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required(""));
        } else if addresses.list().len() > LARGEST_ENDPOINT {
            errors.push(FieldError::too_many(addresses.to_string(), addresses.list().len(), LARGEST_ENDPOINT));
        }
        for address in addresses.items() {
            match kind.text() {
                "IPv4" | "IPv6" => {
                    let problems = names::ip(address.text());
                    if problems.is_empty() {
                        if family_of(address.text()) == Some(kind.text()) {
                            external_address(&address, errors);
                        } else {
                            errors.push(address.invalid(format!("must be an {} address", kind.text())));
                        }
                    } else {
                        address.follows(names::ip, errors);
                    }
                }
                "FQDN" => address.follows(names::subdomain, errors),
                _ => {}
            }
        }
        for (field, rule) in [("nodeName", names::subdomain as names::Rule), ("hostname", names::label)] {
            let name = endpoint.get(field);
            if name.is_given() {
                name.follows(rule, errors);
            }
        }
    }
    let mut known = BTreeSet::new();
    for port in object.get("ports").items() {
        let name = port.get("name");
        name.may_follow(names::label, errors);
        name.must_be_new(&mut known, errors);
        port.get("protocol").one_of(&PROTOCOLS, errors);
    }
}
