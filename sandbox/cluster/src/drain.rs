//! Node drains: evict the pods of a node, and retry while disruption budgets refuse.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kcm_api::ObjectKey;
use serde_json::{Value, json};

use crate::nodes::Nodes;
use crate::timers::Timers;
use kcm_sandbox_apiserver::Status;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::{NODES, PODS};

/// Delay before a refused eviction is retried, as in `kubectl drain`.
const AGAIN: Duration = Duration::from_secs(5);

/// Nodes that are being drained.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    nodes: BTreeSet<Arc<str>>,
    timers: Timers<Arc<str>>,
}

/// Cordons or uncordons a node.
pub(crate) fn cordon(api: &DirectClient, node: &str, cordoned: bool) -> Result<(), Status> {
    let unschedulable = if cordoned { json!(true) } else { Value::Null };
    api.merge(&NODES, &ObjectKey::cluster_scoped(node), None, &json!({ "spec": { "unschedulable": unschedulable } }))
}

/// Reports whether a drain skips a pod.
pub(crate) fn stays(pod: &Value) -> bool {
    let owners = json::list(pod, &["metadata", "ownerReferences"]);
    let of_daemon_set = owners.iter().any(|owner| owner["controller"] == true && owner["kind"] == "DaemonSet");
    let of_kubelet = json::at(pod, &["metadata", "annotations", "kubernetes.io/config.mirror"]).is_some();
    of_daemon_set || of_kubelet || json::is_terminating(pod)
}

impl Drains {
    pub(crate) fn start(&mut self, node: &Arc<str>, now: Duration) {
        self.nodes.insert(node.clone());
        self.timers.set(node, Some(now));
    }

    pub(crate) fn stop(&mut self, node: &Arc<str>) {
        self.nodes.remove(node);
        self.timers.set(node, None);
    }

    pub(crate) fn contains(&self, node: &str) -> bool {
        self.nodes.contains(node)
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.timers.next()
    }

    pub(crate) fn act(&mut self, api: &DirectClient, nodes: &Nodes) {
        let now = api.now().elapsed;
        while let Some(name) = self.timers.pop_due(now) {
            let pods = nodes.pods_of(&name).filter_map(|key| Some((key, api.get(&PODS, key)?)));
            let leaving: Vec<_> = pods.filter(|(_, pod)| !stays(pod)).collect();
            // A refused eviction is retried; a pod that is not found is done.
            let refused = leaving.iter().filter(|(key, pod)| api.evict(key, json::uid(pod)).is_err()).count();
            if refused > 0 {
                self.timers.set(&name, Some(now + AGAIN));
            } else {
                self.nodes.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_skips_daemon_set_and_mirror_pods() {
        let owned = |kind: &str| json!([{ "kind": kind, "controller": true }]);
        for (name, metadata, expected) in [
            ("a pod alone", json!({}), false),
            ("of a replica set", json!({ "ownerReferences": owned("ReplicaSet") }), false),
            ("of a daemon set", json!({ "ownerReferences": owned("DaemonSet") }), true),
            ("of the kubelet", json!({ "annotations": { "kubernetes.io/config.mirror": "" } }), true),
            ("on its way already", json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), true),
        ] {
            assert_eq!(stays(&json!({ "metadata": metadata })), expected, "{name}");
        }
    }
}
