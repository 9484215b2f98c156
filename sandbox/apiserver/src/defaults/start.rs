//! State that clients cannot set: initial state of new objects, and fields that an update keeps.
//!
//! # Upstream
//! `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry`, and the admission plugins
//! `DefaultTolerationSeconds`, `StorageObjectInUseProtection` and `PodGroupProtection`

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{batch, devices, workloads};
use crate::json::{self, at, list, set, text};
use crate::kinds::Kind;
use crate::quantity::Quantity;

/// The state that a new object starts in.
pub(crate) fn initial_state(kind: &Kind, object: &mut Value) {
    if kind.is_custom() {
        if kind.status {
            set(object, &["status"], None);
        }
        return;
    }
    let status = match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "pods") => {
            tolerate_lost_nodes(object);
            if at(object, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64).is_some_and(|it| it < 0) {
                set(object, &["spec", "terminationGracePeriodSeconds"], Some(1.into()));
            }
            first_status(object)
        }
        ("", "namespaces") => {
            let mut finalizers = list(object, &["spec", "finalizers"]).to_vec();
            if !finalizers.contains(&"kubernetes".into()) {
                finalizers.push("kubernetes".into());
            }
            set(object, &["spec", "finalizers"], Some(finalizers.into()));
            json!({ "phase": "Active" })
        }
        // Nodes register themselves with what they know.
        ("", "nodes") => return,
        ("", "persistentvolumeclaims") => {
            protect(object, "kubernetes.io/pvc-protection");
            json!({ "phase": "Pending" })
        }
        ("", "persistentvolumes") => {
            protect(object, "kubernetes.io/pv-protection");
            let now = at(object, &["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
            json!({ "phase": "Pending", "lastPhaseTransitionTime": now })
        }
        ("scheduling.k8s.io", "podgroups") => {
            protect(object, "scheduling.k8s.io/podgroup-protection");
            json!({})
        }
        ("storage.k8s.io", "volumeattributesclasses") => {
            protect(object, "kubernetes.io/vac-protection");
            json!({})
        }
        ("apps", "daemonsets") => {
            workloads::count_templates(object, 1);
            json!({})
        }
        ("batch", "jobs") => {
            batch::generate_selector(object);
            json!({})
        }
        // Its status is a pointer, and a request with any status is completed.
        ("resource.k8s.io", "resourcepoolstatusrequests") => {
            set(object, &["status"], None);
            return;
        }
        ("resource.k8s.io", "devicetaintrules" | "resourceslices") => {
            let created = text(object, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
            devices::stamp(kind, None, object, &created);
            json!({})
        }
        _ => json!({}),
    };
    if kind.status {
        set(object, &["status"], Some(status));
    }
}

fn protect(object: &mut Value, finalizer: &str) {
    let mut finalizers = list(object, &["metadata", "finalizers"]).to_vec();
    if !finalizers.contains(&finalizer.into()) {
        finalizers.push(finalizer.into());
    }
    set(object, &["metadata", "finalizers"], Some(finalizers.into()));
}

fn tolerate_lost_nodes(pod: &mut Value) {
    let mut tolerations = list(pod, &["spec", "tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            let names = |field: &str, value: &str| {
                text(toleration, &[field]).is_none_or(|given| given.is_empty() || given == value)
            };
            names("key", key) && names("effect", "NoExecute")
        });
        if !is_tolerated {
            tolerations
                .push(json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }));
        }
    }
    set(pod, &["spec", "tolerations"], Some(tolerations.into()));
}

fn first_status(pod: &Value) -> Value {
    let mut status = json!({ "phase": "Pending", "qosClass": quality_of_service(pod) });
    if !list(pod, &["spec", "schedulingGates"]).is_empty() {
        let now = at(pod, &["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    status
}

/// # Upstream
/// `pkg/apis/core/v1/helper/qos.ComputePodQOS`; what is limited and not asked for counts as asked for.
fn quality_of_service(pod: &Value) -> &'static str {
    let whole = at(pod, &["spec", "resources"]).and_then(|_| pod.get("spec"));
    let holders: Vec<&Value> = match whole {
        Some(spec) => vec![spec],
        None => ["containers", "initContainers"].into_iter().flat_map(|field| list(pod, &["spec", field])).collect(),
    };
    let (mut any, mut guaranteed) = (false, true);
    for holder in holders {
        let limits = amounts(holder, "limits");
        let mut requests = amounts(holder, "requests");
        for (resource, amount) in &limits {
            requests.entry(resource).or_insert(*amount);
        }
        requests.retain(|_, amount| !amount.is_zero());
        any |= !requests.is_empty();
        guaranteed &= ["cpu", "memory"].into_iter().all(|resource| {
            let limit = limits.get(resource).filter(|limit| !limit.is_zero());
            limit.is_some_and(|limit| requests.get(resource).is_some_and(|request| request.compare(*limit).is_eq()))
        });
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn amounts<'a>(holder: &'a Value, field: &str) -> BTreeMap<&'a str, Quantity> {
    let map = at(holder, &["resources", field]).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter(|(resource, _)| matches!(resource.as_str(), "cpu" | "memory"))
        .filter_map(|(resource, amount)| Some((resource.as_str(), Quantity::of(amount)?)))
        .collect()
}

/// Carries fields over to an update that does not set them.
pub(crate) fn carry_over(kind: &Kind, subresource: Option<&str>, old: &Value, new: &mut Value) {
    if subresource.is_some() {
        return;
    }
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "pods") => tolerate_lost_nodes(new),
        ("apps", "daemonsets") => {
            let path = ["metadata", "annotations", workloads::TEMPLATE_GENERATION];
            let count: i64 = text(old, &path).and_then(|count| count.parse().ok()).unwrap_or(1);
            let template = |set: &Value| at(set, &["spec", "template"]).cloned();
            let changed = template(old) != template(new);
            workloads::count_templates(new, count + i64::from(changed));
        }
        ("", "services") => {
            super::network::families(new);
            keep_allocated(old, new);
        }
        _ => {}
    }
}

fn key_of_port(port: &Value) -> (Option<i64>, Option<&str>) {
    (port.get("port").and_then(Value::as_i64), text(port, &["protocol"]))
}

/// Keeps the addresses and ports of a service if the update names none, and releases those that its new type does not
/// use.
///
/// # Upstream
/// `patchAllocatedValues` and `dropTypeDependentFields` of `pkg/registry/core/service`
fn keep_allocated(old: &Value, new: &mut Value) {
    let of_type = |service: &Value| text(service, &["spec", "type"]).unwrap_or_default().to_owned();
    let has_node_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    let (before, after) = (of_type(old), of_type(new));
    if before != "ExternalName" && after != "ExternalName" {
        for field in ["clusterIP", "clusterIPs"] {
            let path = ["spec", field];
            if at(new, &path).is_none() {
                json::carry_over(old, new, &path);
            }
        }
    }
    if has_node_ports(&before) && has_node_ports(&after) {
        let known: BTreeMap<_, &Value> =
            list(old, &["spec", "ports"]).iter().rev().map(|other| (key_of_port(other), other)).collect();
        for port in super::items(new, &["spec", "ports"]) {
            if at(port, &["nodePort"]).is_none()
                && let Some(number) = known.get(&key_of_port(port)).and_then(|other| at(other, &["nodePort"])).cloned()
            {
                set(port, &["nodePort"], Some(number));
            }
        }
        if at(new, &["spec", "healthCheckNodePort"]).is_none() {
            json::carry_over(old, new, &["spec", "healthCheckNodePort"]);
        }
    }
    let mut given_up: Vec<&str> = Vec::new();
    if before != "ExternalName" && after == "ExternalName" {
        given_up.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    if has_node_ports(&before) && !has_node_ports(&after) {
        given_up.extend(["externalTrafficPolicy", "healthCheckNodePort"]);
        let node_port = |port: &Value| at(port, &["nodePort"]).and_then(Value::as_i64);
        let known: BTreeSet<Option<i64>> = list(old, &["spec", "ports"]).iter().map(node_port).collect();
        for port in super::items(new, &["spec", "ports"]) {
            if known.contains(&node_port(port)) {
                set(port, &["nodePort"], None);
            }
        }
    }
    if before == "LoadBalancer" && after != "LoadBalancer" {
        given_up.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    for field in given_up {
        let path = ["spec", field];
        if at(old, &path) == at(new, &path) {
            set(new, &path, None);
        }
    }
}
