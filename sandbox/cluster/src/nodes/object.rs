//! Nodes and their leases as objects. Pure.

use serde_json::{Value, json};

use kcm_sandbox_apiserver::json;

/// The simulated machine of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Counts from 1; the addresses are derived from it.
    pub(crate) number: usize,
}

const CPU: &str = "8";
const MEMORY: &str = "16Gi";
const STORAGE: &str = "100Gi";
const PODS: &str = "110";
const KUBELET: &str = "v1.37.2";

impl Machine {
    /// Returns the IP of the node.
    pub(crate) fn address(&self) -> String {
        format!("172.18.{}.{}", self.number / 250 % 256, self.number % 250 + 2)
    }

    /// Returns the pod IP prefix of the node, without the last octet.
    pub(crate) fn pod_network(&self) -> String {
        format!("10.{}.{}", 128 + self.number / 256 % 128, self.number % 256)
    }
}

/// Builds a new node, as its kubelet registers it.
pub(crate) fn node(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": {} })
}

/// Returns the node with the labels and spec fields that its kubelet adds; `None` if nothing is missing.
pub(crate) fn registered(old: &Value, machine: &Machine) -> Option<Value> {
    let mut node = old.clone();
    let name = json::name(old).to_owned();
    for (label, value) in [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", &name),
        ("kubernetes.io/os", "linux"),
    ] {
        json::set_default(&mut node, &["metadata", "labels", label], value);
    }
    let network = format!("{}.0/24", machine.pod_network());
    json::set_default(&mut node, &["spec", "podCIDRs"], json!([network]));
    json::set_default(&mut node, &["spec", "podCIDR"], network);
    (node != *old).then_some(node)
}

/// Returns the status that a running kubelet reports; an existing capacity is preserved.
pub(crate) fn status(old: &Value, machine: &Machine, stamp: &str) -> Value {
    let mut status = json::at(old, &["status"]).cloned().unwrap_or_else(|| json!({}));
    for (resource, amount) in [("cpu", CPU), ("memory", MEMORY), ("ephemeral-storage", STORAGE), ("pods", PODS)] {
        json::set_default(&mut status, &["capacity", resource], amount);
    }
    let capacity = status["capacity"].clone();
    json::set_default(&mut status, &["allocatable"], capacity);
    json::set(
        &mut status,
        &["addresses"],
        Some(json!([
            { "type": "InternalIP", "address": machine.address() },
            { "type": "Hostname", "address": json::name(old) },
        ])),
    );
    json::set(&mut status, &["daemonEndpoints"], Some(json!({ "kubeletEndpoint": { "Port": 10250 } })));
    json::set(&mut status, &["nodeInfo"], Some(node_info(json::uid(old))));
    for (kind, is, reason, message) in [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ] {
        let heartbeat = Some(stamp);
        set_condition(&mut status, &Condition { kind, is, reason, message, heartbeat }, stamp);
    }
    status
}

fn node_info(uid: &str) -> Value {
    let machine = uid.replace('-', "");
    json!({
        "machineID": machine, "systemUUID": uid, "bootID": uid, "kernelVersion": "6.12.0-sandbox",
        "osImage": "Sandbox", "containerRuntimeVersion": "sandbox://1.0.0", "kubeletVersion": KUBELET,
        "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
    })
}

/// A condition of a node.
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) is: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    /// The heartbeat time; `None` keeps it, for conditions that the kubelet does not set.
    pub(crate) heartbeat: Option<&'a str>,
}

/// Sets a condition; `lastTransitionTime` changes only with the status.
pub(crate) fn set_condition(status: &mut Value, condition: &Condition<'_>, stamp: &str) {
    let mut conditions = json::list(status, &["conditions"]).to_vec();
    let known = conditions.iter().position(|known| json::text(known, &["type"]) == Some(condition.kind));
    let old = known.map_or(Value::Null, |at| conditions[at].clone());
    let same = json::text(&old, &["status"]) == Some(condition.is);
    let since = json::text(&old, &["lastTransitionTime"]).filter(|_| same).unwrap_or(stamp);
    let heartbeat = condition.heartbeat.or(json::text(&old, &["lastHeartbeatTime"])).unwrap_or(stamp);
    let new = json!({
        "type": condition.kind, "status": condition.is, "reason": condition.reason, "message": condition.message,
        "lastHeartbeatTime": heartbeat, "lastTransitionTime": since,
    });
    match known {
        Some(at) => conditions[at] = new,
        None => conditions.push(new),
    }
    json::set(status, &["conditions"], Some(conditions.into()));
}

/// Returns the status of a condition.
pub(crate) fn condition<'a>(node: &'a Value, kind: &str) -> Option<&'a str> {
    json::list(node, &["status", "conditions"])
        .iter()
        .find(|condition| json::text(condition, &["type"]) == Some(kind))
        .and_then(|condition| json::text(condition, &["status"]))
}

/// Builds the lease of a kubelet.
pub(crate) fn lease(node: &Value, renewed: &str) -> Value {
    let name = json::name(node);
    json!({
        "metadata": {
            "name": name, "namespace": "kube-node-lease",
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "name": name, "uid": json::uid(node),
            }],
        },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_addresses_are_unique() {
        let mut addresses: Vec<_> =
            (1..=3000).map(|number| (Machine { number }.address(), Machine { number }.pod_network())).collect();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 3000);
    }

    #[test]
    fn a_condition_keeps_its_transition_time_while_its_status_is_unchanged() {
        let mut status = json!({});
        let at = |is, heartbeat| Condition { kind: "Ready", is, reason: "R", message: "m", heartbeat };
        set_condition(&mut status, &at("True", Some("1")), "1");
        set_condition(&mut status, &at("True", Some("2")), "2");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "1");
        assert_eq!(status["conditions"][0]["lastHeartbeatTime"], "2");
        set_condition(&mut status, &at("Unknown", None), "3");
        assert_eq!(status["conditions"][0]["lastTransitionTime"], "3");
        assert_eq!(status["conditions"][0]["lastHeartbeatTime"], "2");
    }

    #[test]
    fn existing_capacity_is_preserved() {
        let node = json!({
            "metadata": { "name": "big", "labels": { "kubernetes.io/arch": "arm64" } },
            "status": { "capacity": { "cpu": "64" } },
        });
        let machine = Machine { number: 1 };
        let node = registered(&node, &machine).expect("labels are missing");
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/arch"], "arm64");
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "big");
        assert_eq!(registered(&node, &machine), None);
        let status = status(&node, &machine, "1");
        assert_eq!(
            (status["allocatable"]["cpu"].as_str(), status["capacity"]["pods"].as_str()),
            (Some("64"), Some(PODS))
        );
    }
}
