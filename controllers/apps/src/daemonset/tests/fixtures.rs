//! Fixtures beside those of all controllers.

use std::sync::Arc;

use kcm_framework::api::scheduling::ComparisonOperators;
use kcm_framework::api::views::{DaemonSet, Node, Pod, PodTargetNode};
use kcm_framework::api::{Need, Needs, PartReader};
use serde_json::{Value, json};

use crate::daemonset::backoff::FailedPodBackoff;
use crate::daemonset::changes::{CreateReason, DeleteReason, PodChanges};
use crate::daemonset::gates::Gates;
use crate::daemonset::revision::CurrentRevision;
use crate::daemonset::rollout::Limits;
use crate::daemonset::snapshot::Snapshot;
pub(crate) use crate::tests::cluster::{NAMESPACE, key, now};
use crate::tests::fixtures::{ObjectBuilder, ago, build};
pub(crate) use crate::tests::fixtures::{PodBuilder, pod};

pub(crate) type DaemonSetBuilder = ObjectBuilder<DaemonSet>;
pub(crate) type NodeBuilder = ObjectBuilder<Node>;

/// The default feature gates.
pub(crate) const DEFAULTS: Gates = Gates { comparison: ComparisonOperators::Disabled };

/// The hash of the present template.
pub(crate) const NEW: &str = "new";

/// A daemon set that selects `app=agent`, as the API serves one; one node may be unavailable.
pub(crate) fn daemon_set(name: &str) -> DaemonSetBuilder {
    DaemonSetBuilder::from(json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "10",
            "generation": 1,
            "creationTimestamp": ago(3600),
        },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } },
            "revisionHistoryLimit": 10,
            "template": {
                "metadata": { "labels": { "app": "agent" } },
                "spec": { "containers": [{ "name": "main", "image": "image:1" }] },
            },
        },
        "status": {},
    }))
}

impl DaemonSetBuilder {
    pub(crate) fn rolling(self, surge: impl Into<Value>, unavailable: impl Into<Value>) -> Self {
        let limits = json!({ "maxSurge": surge.into(), "maxUnavailable": unavailable.into() });
        self.with("/spec/updateStrategy", "rollingUpdate", limits)
    }

    pub(crate) fn on_delete(self) -> Self {
        self.with("/spec", "updateStrategy", json!({ "type": "OnDelete" }))
    }

    pub(crate) fn min_ready_seconds(self, seconds: i32) -> Self {
        self.with("/spec", "minReadySeconds", json!(seconds))
    }

    pub(crate) fn pod_spec(self, name: &str, value: Value) -> Self {
        self.with("/spec/template/spec", name, value)
    }

    pub(crate) fn annotations(self, annotations: Value) -> Self {
        self.with("/metadata", "annotations", annotations)
    }
}

/// A node without labels and taints.
pub(crate) fn node(name: &str) -> NodeBuilder {
    NodeBuilder::from(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "uid": format!("uid-of-{name}"), "labels": {} },
        "spec": {},
        "status": {},
    }))
}

impl NodeBuilder {
    pub(crate) fn taint(self, key: &str, effect: &str) -> Self {
        self.with("/spec", "taints", json!([{ "key": key, "effect": effect }]))
    }
}

/// A running pod of the daemon set `agent` on a node, of a revision, that is not ready.
pub(crate) fn daemon_pod(name: &str, node: &str, revision: &str) -> PodBuilder {
    let labels = json!({ "app": "agent", "controller-revision-hash": revision });
    pod(name).node(node).labels(labels).owner("DaemonSet", "agent", "uid-of-agent")
}

impl PodBuilder {
    /// Not scheduled yet, and made for a node.
    pub(crate) fn made_for(self, node: &str) -> Self {
        let by_name = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        let required = json!({ "nodeSelectorTerms": [{ "matchFields": [by_name] }] });
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
        self.unassigned().phase("Pending").with("/spec", "affinity", affinity)
    }
}

/// Reads the nodes that unscheduled pods are made for.
pub(crate) fn targets() -> PartReader<PodTargetNode> {
    let needs: Needs = [Need::part::<PodTargetNode>()].into_iter().collect();
    needs.reader().expect("it is declared")
}

/// A set, nodes and pods that plans are made of.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) set: Arc<DaemonSet>,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) pods: Vec<Arc<Pod>>,
}

impl World {
    /// The nodes are in the order of their names.
    pub(crate) fn of(set: &DaemonSetBuilder, nodes: &[NodeBuilder], pods: &[PodBuilder]) -> Self {
        Self { set: set.build(), nodes: build(nodes), pods: build(pods) }
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let revision = CurrentRevision::new(&self.set, NEW);
        Snapshot::of((&self.set, &self.nodes, &self.pods), targets(), revision, Arc::default(), DEFAULTS, now())
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits::of(&self.set, self.snapshot().desired()).expect("the strategy must be valid")
    }

    pub(crate) fn managed(&self) -> PodChanges {
        crate::daemonset::manage::plan(&self.snapshot(), self.limits(), &FailedPodBackoff::default())
    }

    pub(crate) fn rolled(&self) -> PodChanges {
        crate::daemonset::rollout::plan(&self.snapshot(), self.limits())
    }
}

/// The nodes that get pods, and why.
pub(crate) fn created(changes: &PodChanges) -> Vec<(&str, CreateReason)> {
    changes.create.iter().map(|creation| (&*creation.node, creation.reason)).collect()
}

/// The pods that are deleted, and why.
pub(crate) fn deleted(changes: &PodChanges) -> Vec<(&str, DeleteReason)> {
    changes.delete.iter().map(|deletion| (deletion.pod.metadata.key.name(), deletion.reason.clone())).collect()
}
