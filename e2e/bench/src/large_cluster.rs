//! A cluster of the largest supported size: 5,000 nodes and 150,000 pods.
//!
//! No kubelet and no kwok runs: nodes and pods are written with their statuses straight to the API server, while no manager
//! runs, and no scheduler is needed because the pods name their nodes.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::manifests::{replica_set, template};
use super::objects::reference;
use super::size::Size;
use super::testbed::Testbed;
use super::workload::Workload;

/// All controllers that both managers have, but the one of the health of nodes: no kubelet renews a lease here, so it would
/// mark all pods as not ready.
pub(super) const CONTROLLERS: &str = "*,-node-lifecycle-controller";

const NODES: &str = "/api/v1/nodes";
const NAMESPACE: &str = "bench";
const SETS: &str = "/apis/apps/v1/namespaces/bench/replicasets";
const SERVICES: &str = "/api/v1/namespaces/bench/services";
const PODS: &str = "/api/v1/namespaces/bench/pods";
/// Pods of each replica set and service.
const PODS_EACH: usize = 100;
/// Replica sets in the small state.
const FEW: usize = 10;

/// The manager is started beside 1,000 pods and beside 150,000, and sees 5,000 changes of pods each time.
pub(super) async fn started_and_changed(testbed: &mut Testbed, size: Size) -> Result<()> {
    let nodes = testbed.scaled(size.pick(500, 5_000));
    let sets = testbed.scaled(size.pick(150, 1_500));
    let changes = testbed.scaled(size.pick(500, 5_000));
    testbed
        .restart_after("with 1,000 pods", async |it| {
            it.make_namespace(NAMESPACE).await?;
            it.many(nodes, async |number| it.post(NODES, &node(number)).await.map(drop)).await?;
            make_sets(it, 0, FEW, nodes).await
        })
        .await?;
    testbed.phase("changes beside 1,000 pods", async |it| change_pods(it, FEW, changes).await).await?;
    testbed.restart_after("with 150,000 pods", async |it| make_sets(it, FEW, sets, nodes).await).await?;
    testbed.phase("changes beside 150,000 pods", async |it| change_pods(it, sets, changes).await).await?;
    testbed
        .phase("a minute of rest", async |_| {
            tokio::time::sleep(Duration::from_secs(size.pick(5, 60))).await;
            Ok(())
        })
        .await
}

/// Creates replica sets and services with their pods, which run and are ready.
async fn make_sets(workload: &Workload, from: usize, to: usize, nodes: usize) -> Result<()> {
    workload
        .many(to - from, async |number| {
            let name = name_of(from + number);
            let owner = workload.post(SETS, &replica_set(&name, PODS_EACH)).await?;
            workload.post(SERVICES, &service(&name)).await?;
            for index in 0..PODS_EACH {
                let number = (from + number) * PODS_EACH + index;
                workload.post(PODS, &pod(&name, &owner, index, number % nodes)).await?;
                workload.merge(&format!("{PODS}/{name}-{index}/status"), &json!({ "status": running(number) })).await?;
            }
            Ok(())
        })
        .await
}

/// Changes an annotation of a number of pods, spread over all replica sets.
async fn change_pods(workload: &Workload, sets: usize, changes: usize) -> Result<()> {
    workload
        .many(changes, async |change| {
            let patch = json!({ "metadata": { "annotations": { "bench/change": change.to_string() } } });
            let (set, index) = (change % sets, change / sets % PODS_EACH);
            workload.merge(&format!("{PODS}/{}-{index}", name_of(set)), &patch).await
        })
        .await
}

fn name_of(set: usize) -> String {
    format!("web-{set}")
}

fn node(number: usize) -> Value {
    json!({
        "metadata": { "name": node_name(number), "labels": { "kubernetes.io/os": "linux" } },
        "status": {
            "capacity": { "cpu": "8", "memory": "32Gi", "pods": "110" },
            "allocatable": { "cpu": "8", "memory": "32Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    })
}

fn node_name(number: usize) -> String {
    format!("node-{}", 1 + number)
}

fn pod(set: &str, owner: &str, index: usize, node: usize) -> Value {
    let mut pod = template(set);
    pod["metadata"]["name"] = json!(format!("{set}-{index}"));
    pod["metadata"]["ownerReferences"] = json!([reference("apps/v1", "ReplicaSet", set, owner)]);
    pod["spec"]["nodeName"] = json!(node_name(node));
    pod
}

/// The status of a pod that is ready, with an address of its own.
fn running(number: usize) -> Value {
    let address = format!("10.{}.{}.{}", 128 + (number >> 16), (number >> 8) & 255, number & 255);
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    json!({
        "phase": "Running",
        "startTime": "2026-01-01T00:00:00Z",
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": (["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition)),
    })
}

fn service(name: &str) -> Value {
    let ports = json!([{ "name": "http", "port": 80, "targetPort": 8080 }]);
    json!({ "metadata": { "name": name }, "spec": { "clusterIP": "None", "selector": { "app": name }, "ports": ports } })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kcm_controllers as _;
    use kcm_framework::Registry;

    use super::*;

    #[test]
    fn all_controllers_run_that_both_have() {
        let linked = Registry::linked().expect("our controllers are linked");
        let left_out = CONTROLLERS.split(',').filter_map(|item| item.strip_prefix('-'));
        let ours: Vec<&str> = left_out.filter(|name| linked.find(name).is_some()).collect();
        assert_eq!(ours, ["node-lifecycle-controller"]);
    }

    #[test]
    fn every_pod_has_an_address_of_its_own() {
        let addresses: BTreeSet<String> =
            (0..150_000).map(|number| running(number)["podIP"].as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!(addresses.len(), 150_000);
    }
}
