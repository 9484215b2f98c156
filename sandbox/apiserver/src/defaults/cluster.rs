//! Defaults that depend on other objects: priorities, storage classes, addresses and ports of services.
//!
//! # Upstream
//! The admission plugins `Priority`, `RuntimeClass` and `DefaultStorageClass`, and the allocators of `pkg/registry/core/service`

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::json::{self, at, list, set, set_default, text};
use crate::kinds::Kind;
use crate::random::Random;
use crate::status::{FieldError, Status};
use crate::store::storage::Store;

const PRIORITY_CLASSES: Resource =
    Resource::cluster_scoped("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass");
const RUNTIME_CLASSES: Resource = Resource::cluster_scoped("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass");
const STORAGE_CLASSES: Resource = Resource::cluster_scoped("storage.k8s.io", "v1", "storageclasses", "StorageClass");
const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");

/// Fills in what admission takes from the cluster.
pub(crate) fn of_cluster(store: &Store, kind: &Kind, object: &mut Value) -> Result<(), Status> {
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "pods") => {
            priority(store, &kind.resource, object)?;
            overhead(store, &kind.resource, object)
        }
        ("", "persistentvolumeclaims") => {
            default_class(store, object);
            Ok(())
        }
        ("", "services") => {
            super::network::families(object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn priority(store: &Store, pods: &Resource, pod: &mut Value) -> Result<(), Status> {
    let refuse = |pod: &Value, why: String| Err(Status::forbidden(pods, json::name(pod), &why));
    let asked = text(pod, &["spec", "priorityClassName"]).filter(|name| !name.is_empty()).map(str::to_owned);
    let class: Option<Arc<Value>> = match &asked {
        Some(name) => store.value(&PRIORITY_CLASSES, &ObjectKey::cluster_scoped(name.as_str())),
        None => store
            .list(&PRIORITY_CLASSES, None)
            .map(|(_, class)| class.value())
            .filter(|class| at(class, &["globalDefault"]) == Some(&Value::Bool(true)))
            .min_by_key(|class| at(class, &["value"]).and_then(Value::as_i64)),
    };
    let system = SYSTEM_CLASSES.iter().find(|(name, _)| Some(*name) == asked.as_deref());
    let value = match (&class, system) {
        (Some(class), _) => at(class, &["value"]).and_then(Value::as_i64).unwrap_or(0),
        (None, Some((_, value))) => *value,
        (None, None) => match asked {
            Some(name) => return refuse(pod, format!("no PriorityClass with name {name} was found")),
            None => 0,
        },
    };
    let policy =
        class.as_deref().and_then(|class| text(class, &["preemptionPolicy"])).unwrap_or("PreemptLowerPriority");
    if let Some(given) = at(pod, &["spec", "priority"]).and_then(Value::as_i64).filter(|given| *given != value) {
        return refuse(
            pod,
            format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
            ),
        );
    }
    if let Some(given) = text(pod, &["spec", "preemptionPolicy"]).filter(|given| *given != policy) {
        return refuse(
            pod,
            format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            ),
        );
    }
    set(pod, &["spec", "priority"], Some(value.into()));
    set(pod, &["spec", "preemptionPolicy"], Some(policy.into()));
    if let Some(class) = class {
        set(pod, &["spec", "priorityClassName"], Some(json::name(&class).into()));
    }
    Ok(())
}

/// Sets the overhead of a pod to that of its runtime class.
fn overhead(store: &Store, pods: &Resource, pod: &mut Value) -> Result<(), Status> {
    let refuse = |pod: &Value, why: &str| Err(Status::forbidden(pods, json::name(pod), why));
    let given = at(pod, &["spec", "overhead"]).cloned();
    let wanted = match text(pod, &["spec", "runtimeClassName"]).filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => match store.value(&RUNTIME_CLASSES, &ObjectKey::cluster_scoped(name)) {
            Some(class) => at(&class, &["overhead", "podFixed"]).cloned(),
            None => return refuse(pod, &format!("pod rejected: RuntimeClass {name:?} not found")),
        },
    };
    match (given, wanted) {
        (Some(_), None) => {
            refuse(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        }
        (Some(given), Some(wanted)) if given != wanted => {
            refuse(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        }
        (_, Some(wanted)) => {
            set(pod, &["spec", "overhead"], Some(wanted));
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

fn default_class(store: &Store, claim: &mut Value) {
    if at(claim, &["spec", "storageClassName"]).is_some() {
        return;
    }
    let is_default = |class: &Arc<Value>| {
        text(class, &["metadata", "annotations", "storageclass.kubernetes.io/is-default-class"]) == Some("true")
    };
    // The newest of several wins.
    let newest = |class: &Arc<Value>| {
        let created = text(class, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned();
        (created, std::cmp::Reverse(json::name(class).to_owned()))
    };
    if let Some(class) =
        store.list(&STORAGE_CLASSES, None).map(|(_, class)| class.value()).filter(is_default).max_by_key(newest)
    {
        set_default(claim, &["spec", "storageClassName"], json::name(&class));
    }
}

/// Addresses of services are those of `10.0.0.0/24` without the first, which is that of the API server.
const NETWORK: &str = "10.0.0.";
/// Addresses below are kept for services that name one, as long as others are free.
const FIRST_FREE: u64 = 17;
const LAST: u64 = 254;
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

/// Gives a service the addresses and ports that it needs, or refuses those that it may not have.
pub(crate) fn allocate(store: &Store, random: &mut Random, kind: &Kind, service: &mut Value) -> Result<(), Status> {
    if !(kind.resource.group.is_empty() && kind.resource.plural == "services") {
        return Ok(());
    }
    let of_type = text(service, &["spec", "type"]).unwrap_or_default().to_owned();
    if of_type == "ExternalName" {
        return Ok(());
    }
    let (name, namespace) = (json::name(service), text(service, &["metadata", "namespace"]));
    let is_other =
        |other: &Arc<Value>| json::name(other) != name || text(other, &["metadata", "namespace"]) != namespace;
    let others: Vec<Arc<Value>> =
        store.list(&SERVICES, None).map(|(_, other)| other.value()).filter(is_other).collect();
    let mut errors = Vec::new();
    address(&others, random, service, &mut errors);
    if of_type == "NodePort"
        || (of_type == "LoadBalancer"
            && at(service, &["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false)))
    {
        node_ports(&others, random, service, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", "Service", json::name(service), &errors)) }
}

fn address(others: &[Arc<Value>], random: &mut Random, service: &mut Value, errors: &mut Vec<FieldError>) {
    let taken: BTreeSet<&str> = others.iter().filter_map(|other| text(other, &["spec", "clusterIP"])).collect();
    let wanted = text(service, &["spec", "clusterIP"]).unwrap_or_default();
    let address = match wanted {
        "" => {
            let count = LAST - FIRST_FREE + 1;
            let start = random.below(count);
            let upper = (0..count).map(|step| FIRST_FREE + (start + step) % count);
            upper.chain(2..FIRST_FREE).map(|last| format!("{NETWORK}{last}")).find(|free| !taken.contains(&**free))
        }
        "None" => Some("None".to_owned()),
        given => {
            let refuse = |why: String| {
                FieldError::invalid("spec.clusterIPs", json!([given]), format!("failed to allocate IP {given}: {why}"))
            };
            let last = given.strip_prefix(NETWORK).and_then(|last| last.parse::<u64>().ok());
            if last.is_none_or(|last| !(1..=LAST).contains(&last)) {
                errors.push(refuse("the provided network does not match the current range".to_owned()));
            } else if taken.contains(given) {
                errors.push(refuse("provided IP is already allocated".to_owned()));
            }
            Some(given.to_owned())
        }
    };
    // The list may have an address of another family beside it.
    let Some(address) = address else { return };
    if list(service, &["spec", "clusterIPs"]).is_empty() {
        set(service, &["spec", "clusterIPs"], Some(json!([address])));
    }
    set(service, &["spec", "clusterIP"], Some(address.into()));
}

fn node_ports(others: &[Arc<Value>], random: &mut Random, service: &mut Value, errors: &mut Vec<FieldError>) {
    let port_of = |port: &Value| at(port, &["nodePort"]).and_then(Value::as_u64);
    let mut taken: BTreeSet<u64> =
        others.iter().flat_map(|other| list(other, &["spec", "ports"])).filter_map(port_of).collect();
    taken.extend(others.iter().filter_map(|other| at(other, &["spec", "healthCheckNodePort"])?.as_u64()));
    for (index, port) in list(service, &["spec", "ports"]).iter().enumerate() {
        let Some(number) = port_of(port) else { continue };
        let field = format!("spec.ports[{index}].nodePort");
        if !NODE_PORTS.contains(&number) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            errors.push(FieldError::invalid(
                field,
                number,
                format!("provided port is not in the valid range. The range of valid ports is {first}-{last}"),
            ));
        } else if taken.contains(&number) {
            errors.push(FieldError::invalid(field, number, "provided port is already allocated"));
        }
    }
    taken.extend(list(service, &["spec", "ports"]).iter().filter_map(port_of));
    let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let mut is_full = false;
    let mut next = |taken: &mut BTreeSet<u64>| {
        if is_full {
            return None;
        }
        let start = random.below(count);
        let free =
            (0..count).map(|step| NODE_PORTS.start() + (start + step) % count).find(|free| !taken.contains(free));
        taken.extend(free);
        is_full = free.is_none();
        free
    };
    for port in super::items(service, &["spec", "ports"]) {
        if port_of(port).is_none() {
            set(port, &["nodePort"], next(&mut taken).map(Into::into));
        }
    }
    let is_local = text(service, &["spec", "type"]) == Some("LoadBalancer")
        && text(service, &["spec", "externalTrafficPolicy"]) == Some("Local");
    if is_local && at(service, &["spec", "healthCheckNodePort"]).is_none() {
        set(service, &["spec", "healthCheckNodePort"], next(&mut taken).map(Into::into));
    }
}
