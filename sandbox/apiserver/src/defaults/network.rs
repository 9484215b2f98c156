//! Services, endpoints and policies of the network.

use serde_json::{Value, json};

use super::{default_text, items};
use crate::json::{at, list, set, set_default, text};

pub(super) fn service(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    default_text(spec, &["type"], "ClusterIP");
    default_text(spec, &["sessionAffinity"], "None");
    match text(spec, &["sessionAffinity"]) {
        Some("None") => set(spec, &["sessionAffinityConfig"], None),
        Some("ClientIP") => set_default(spec, &["sessionAffinityConfig", "clientIP", "timeoutSeconds"], 10_800),
        _ => {}
    }
    for port in items(spec, &["ports"]) {
        default_text(port, &["protocol"], "TCP");
        if at(port, &["targetPort"]).is_none_or(|target| *target == 0 || *target == "") {
            let number = at(port, &["port"]).cloned().unwrap_or_else(|| 0.into());
            set(port, &["targetPort"], Some(number));
        }
    }
    let kind = text(spec, &["type"]).unwrap_or_default().to_owned();
    if matches!(&*kind, "NodePort" | "LoadBalancer") {
        default_text(spec, &["externalTrafficPolicy"], "Cluster");
    }
    if matches!(&*kind, "ClusterIP" | "NodePort" | "LoadBalancer") {
        set_default(spec, &["internalTrafficPolicy"], "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, &["allocateLoadBalancerNodePorts"], true);
    }
}

/// Says which families of addresses a service has; what the API server decides here belongs to no client.
///
/// # Upstream
/// `initIPFamilyFields` of `pkg/registry/core/service/storage`
pub(super) fn families(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if text(spec, &["type"]) == Some("ExternalName") {
        return;
    }
    // The addresses and their families say the same thing twice.
    if at(spec, &["clusterIPs"]).is_none()
        && let Some(address) = text(spec, &["clusterIP"]).filter(|address| !address.is_empty()).map(str::to_owned)
    {
        set(spec, &["clusterIPs"], Some(json!([address])));
    }
    let is_headless = text(spec, &["clusterIP"]) == Some("None");
    let has_selector = at(spec, &["selector"]).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if at(spec, &["ipFamilyPolicy"]).is_none() && at(spec, &["ipFamilies"]).is_none() && is_headless && !has_selector {
        set(spec, &["ipFamilyPolicy"], Some("RequireDualStack".into()));
        set(spec, &["ipFamilies"], Some(json!(["IPv4", "IPv6"])));
    }
    set_default(spec, &["ipFamilyPolicy"], "SingleStack");
    if list(spec, &["ipFamilies"]).is_empty() {
        set(spec, &["ipFamilies"], Some(json!(["IPv4"])));
    }
}

pub(super) fn endpoints(endpoints: &mut Value) {
    for subset in items(endpoints, &["subsets"]) {
        for port in items(subset, &["ports"]) {
            default_text(port, &["protocol"], "TCP");
        }
    }
}

pub(super) fn endpoint_slice(slice: &mut Value) {
    for port in items(slice, &["ports"]) {
        set_default(port, &["name"], "");
        set_default(port, &["protocol"], "TCP");
    }
}

pub(super) fn policy(policy: &mut Value) {
    for (rules, protocol) in [("ingress", "TCP"), ("egress", "TCP")] {
        for rule in items(policy, &["spec", rules]) {
            for port in items(rule, &["ports"]) {
                set_default(port, &["protocol"], protocol);
            }
        }
    }
    if list(policy, &["spec", "policyTypes"]).is_empty() {
        let has_egress = !list(policy, &["spec", "egress"]).is_empty();
        set(
            policy,
            &["spec", "policyTypes"],
            Some(if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) }),
        );
    }
}

pub(super) fn ingress_class(class: &mut Value) {
    if at(class, &["spec", "parameters"]).is_some() {
        set_default(class, &["spec", "parameters", "scope"], "Cluster");
    }
}
