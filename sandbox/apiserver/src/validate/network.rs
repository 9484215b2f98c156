//! Ingresses and network policies.
//!
//! # Upstream
//! `pkg/apis/networking/validation`

use std::net::IpAddr;

use serde_json::Value;

use super::field_path::{Errors, FieldPath};
use super::{names, selector};
use crate::status::FieldError;

pub(super) fn ingress(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (rules, default) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && default.is_absent() {
        let shown = if spec.is_empty() { Value::Null } else { spec.value.clone() };
        errors.push(spec.refused(shown, "either `defaultBackend` or `rules` must be specified"));
    }
    if default.is_given() {
        backend(&default, errors);
    }
    for rule in rules.items() {
        let name = rule.get("host");
        if !name.is_empty() {
            host(&name, errors);
            if name.text().parse::<IpAddr>().is_ok() {
                errors.push(name.invalid("must be a DNS name, not an IP address"));
            }
        }
        let http = rule.get("http");
        if http.is_given() {
            paths(&http.get("paths"), errors);
        }
    }
    for tls in spec.get("tls").items() {
        for name in tls.get("hosts").items() {
            host(&name, errors);
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_given() {
        class.follows(names::subdomain, errors);
    }
}

fn host(name: &FieldPath<'_, '_>, errors: &mut Errors) {
    let rule = if name.text().contains('*') { names::wildcard as names::Rule } else { names::subdomain };
    name.follows(rule, errors);
}

/// Parts that a path of type `Exact` or `Prefix` must not contain.
const BAD_PARTS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDS: [&str; 2] = ["/..", "/."];

fn paths(paths: &FieldPath<'_, '_>, errors: &mut Errors) {
    paths.must_be_set("", errors);
    for path in paths.items() {
        let (kind, given) = (path.get("pathType"), path.get("path"));
        match kind.text() {
            _ if kind.is_absent() => errors.push(kind.required("pathType must be specified")),
            "Exact" | "Prefix" => {
                if !given.text().starts_with('/') {
                    errors.push(given.refused(given.text(), "must be an absolute path"));
                }
                for bad in BAD_PARTS {
                    if given.text().contains(bad) {
                        errors.push(given.invalid(format!("must not contain '{bad}'")));
                    }
                }
                for bad in BAD_ENDS {
                    if given.text().ends_with(bad) {
                        errors.push(given.invalid(format!("cannot end with '{bad}'")));
                    }
                }
            }
            "ImplementationSpecific" => {
                if !given.is_empty() && !given.text().starts_with('/') {
                    errors.push(given.invalid("must be an absolute path"));
                }
            }
            _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
        }
        backend(&path.get("backend"), errors);
    }
}

fn backend(backend: &FieldPath<'_, '_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service.is_given(), resource.is_given()) {
        (true, true) => {
            errors.push(backend.refused("", "cannot set both resource and service backends"));
        }
        (false, false) => errors.push(backend.refused("", "resource or service backend is required")),
        (false, true) => {}
        (true, false) => {
            let name = service.get("name");
            name.must_follow(names::label, errors);
            let (port_name, number) = (service.get("port.name"), service.get("port.number"));
            match (!port_name.is_empty(), number.number().unwrap_or(0) != 0) {
                (true, true) => errors.push(backend.refused("", "cannot set both port name & port number")),
                (true, false) => port_name.follows(names::port_name, errors),
                (false, true) => names::port_number(&number, errors),
                (false, false) => errors.push(backend.required("port name or number is required")),
            }
        }
    }
}

pub(super) fn policy(object: &FieldPath<'_, '_>, errors: &mut Errors) {
    let spec = object.get("spec");
    selector::check(&spec.get("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(rules).items() {
            for port in rule.get("ports").items() {
                policy_port(&port, errors);
            }
            for peer in rule.get(peers).items() {
                policy_peer(&peer, errors);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.list().len() > 2 {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for kind in types.items() {
        kind.one_of(&["Ingress", "Egress"], errors);
    }
}

fn policy_port(port: &FieldPath<'_, '_>, errors: &mut Errors) {
    port.get("protocol").one_of(&["TCP", "UDP", "SCTP"], errors);
    let (number, end) = (port.get("port"), port.get("endPort"));
    if number.is_given() {
        names::port(&number, errors);
        if let (Some(first), Some(last)) = (number.number(), end.number()) {
            if last < first {
                errors.push(end.refused(last, "must be greater than or equal to `port`"));
            }
            if !(1..=65_535).contains(&last) {
                errors.push(end.invalid(names::PORT_RANGE));
            }
        } else if end.is_given() {
            errors.push(end.invalid("may not be specified when `port` is non-numeric"));
        }
    } else if end.is_given() {
        errors.push(end.invalid("may not be specified when `port` is not specified"));
    }
}

fn policy_peer(peer: &FieldPath<'_, '_>, errors: &mut Errors) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.get(field).is_given() {
            peers += 1;
            selector::check(&peer.get(field), errors);
        }
    }
    let block = peer.get("ipBlock");
    if block.is_given() {
        peers += 1;
        ip_block(&block, errors);
        if peers > 1 {
            errors.push(peer.forbidden("may not specify both ipBlock and another peer"));
        }
    }
    if peers == 0 {
        errors.push(peer.required("must specify a peer"));
    }
}

fn ip_block(block: &FieldPath<'_, '_>, errors: &mut Errors) {
    let cidr = block.get("cidr");
    if cidr.is_empty() {
        errors.push(cidr.required(""));
        return;
    }
    let Some(whole) = names::network(cidr.text()) else {
        cidr.follows(names::cidr, errors);
        return;
    };
    for except in block.get("except").items() {
        match names::network(except.text()) {
            None => except.follows(names::cidr, errors),
            Some(part) if !is_strictly_within(part, whole) => {
                errors.push(FieldError::invalid(
                    except.to_string(),
                    except.text(),
                    "must be a strict subset of `cidr`",
                ));
            }
            Some(_) => {}
        }
    }
}

fn is_strictly_within((part, longer): (IpAddr, u32), (whole, shorter): (IpAddr, u32)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    };
    let mask = u128::MAX.checked_shl(128 - shorter).unwrap_or(0);
    part.is_ipv4() == whole.is_ipv4() && longer > shorter && bits(part) & mask == bits(whole) & mask
}
