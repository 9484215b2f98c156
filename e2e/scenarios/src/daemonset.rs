//! Daemon sets, as a person with kubectl has them.

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("daemonset") => {
        "daemonset/places_pods_on_nodes": places_pods_on_nodes,
        "daemonset/rolls_and_rolls_back": rolls_and_rolls_back,
    }
}

/// The nodes that the suite made, which other scenarios use too.
const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

/// A daemon set on nodes of these names.
pub(super) fn daemon_set(name: &str, nodes: &[&str], strategy: &Value) -> Value {
    let by_name = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": nodes });
    let required = json!({ "nodeSelectorTerms": [{ "matchExpressions": [by_name] }] });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": strategy },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "affinity": {
                        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required },
                    },
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "main", "image": "example/main:1" }],
                },
            },
        },
    })
}

async fn create(kubectl: &Kubectl<'_>, object: Value) -> Result<()> {
    let manifest = kubectl.manifest(&object)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

async fn get(kubectl: &Kubectl<'_>, what: &str) -> Result<Value> {
    let found = kubectl.run(&format!("get {what} -o json")).await?;
    serde_json::from_str(&found).context("kubectl prints JSON")
}

/// The pods with the label `app` that are not being deleted, as one row of fields each, in order.
async fn pods(kubectl: &Kubectl<'_>, app: &str, fields: &[&str]) -> Result<Vec<Vec<String>>> {
    let list = get(kubectl, &format!("pods -l app={app}")).await?;
    let pods = list["items"].as_array().context("a list has items")?.iter();
    let rows = pods.filter(|pod| pod["metadata"].get("deletionTimestamp").is_none()).map(|pod| {
        let field = |path: &&str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        fields.iter().map(field).collect::<Vec<_>>()
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    Ok(rows)
}

/// Waits until there is an available pod of the present template on just these nodes.
async fn runs_on(kubectl: &Kubectl<'_>, name: &str, nodes: &[&str]) -> Result<()> {
    eventually(&format!("{name} to run on {nodes:?}"), async || {
        let on = pods(kubectl, name, &["/spec/nodeName"]).await?.concat();
        ensure!(on == nodes, "it runs on {on:?}");
        let set = get(kubectl, &format!("ds {name}")).await?;
        let status = &set["status"];
        ensure!(status["observedGeneration"] == set["metadata"]["generation"], "{status}");
        for count in ["desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable"] {
            ensure!(status[count].as_u64().unwrap_or(0) == nodes.len() as u64, "{count} in {status}");
        }
        ensure!(status["numberMisscheduled"] == 0 && status.get("numberUnavailable").is_none(), "{status}");
        Ok(())
    })
    .await
}

/// Affinity and taints decide on which nodes there is a pod, and the pod of a node is bound to it by name.
async fn places_pods_on_nodes(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, daemon_set("agent", &NODES[..2], &json!({ "maxUnavailable": 1 }))).await?;
    runs_on(&kubectl, "agent", &NODES[..2]).await?;
    let required =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0";
    let bound = pods(&kubectl, "agent", &[&format!("{required}/key"), &format!("{required}/values/0")]).await?;
    ensure!(bound == [["metadata.name", "node-1"], ["metadata.name", "node-2"]], "{bound:?}");
    let moved = daemon_set("agent", &NODES[1..], &json!({ "maxUnavailable": 1 }));
    let manifest = kubectl.manifest(&moved)?;
    kubectl.run(&format!("replace -f {manifest}")).await?;
    runs_on(&kubectl, "agent", &NODES[1..]).await?;

    // Without room, so that the pod is not scheduled and nothing else is put there.
    let own = format!("own-{}", case.namespace());
    let labels = json!({ "kubernetes.io/hostname": own });
    // From the first, as a pod that is there stays.
    let tainted = json!([{ "key": "gpu", "effect": "NoSchedule" }]);
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": own, "labels": labels },
        "spec": { "taints": tainted },
    });
    create(&kubectl, node).await?;
    create(&kubectl, daemon_set("guest", &[&own], &json!({ "maxUnavailable": 1 }))).await?;
    for (taints, expected) in [
        (tainted, 0),
        (json!([{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }]), 1),
        (json!([{ "key": "gpu", "effect": "NoExecute" }]), 0),
        (Value::Null, 1),
    ] {
        let patch = json!({ "spec": { "taints": taints } }).to_string();
        kubectl.run(&format!("patch node {own} --type=merge -p {patch}")).await?;
        eventually(&format!("{expected} pods with {taints}"), async || {
            let found = pods(&kubectl, "guest", &["/metadata/name"]).await?.len();
            let status = get(&kubectl, "ds guest").await?["status"].clone();
            let desired = status["desiredNumberScheduled"].as_u64();
            ensure!((found, desired) == (expected, Some(expected as u64)), "{found} pods, {status}");
            Ok(())
        })
        .await?;
    }
    kubectl.run("delete ds guest --cascade=orphan").await?;
    kubectl.run(&format!("delete node {own}")).await.map(drop)
}

/// A template is rolled out with unavailable nodes and with a surge, and rolled back; revisions are numbered, and kept.
async fn rolls_and_rolls_back(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, daemon_set("agent", &NODES, &json!({ "maxUnavailable": 2 }))).await?;
    runs_on(&kubectl, "agent", &NODES).await?;
    let images = async |image: &str| {
        runs_on(&kubectl, "agent", &NODES).await?;
        let images = pods(&kubectl, "agent", &["/spec/containers/0/image"]).await?.concat();
        ensure!(images.iter().all(|it| it == image), "{images:?}");
        Ok(())
    };
    kubectl.run("set image ds/agent main=example/main:2").await?;
    kubectl.run("rollout status ds/agent --timeout=60s").await?;
    images("example/main:2").await?;
    let surge = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } } });
    kubectl.run(&format!("patch ds agent --type=merge -p {surge}")).await?;
    kubectl.run("set image ds/agent main=example/main:3").await?;
    kubectl.run("rollout status ds/agent --timeout=60s").await?;
    images("example/main:3").await?;
    kubectl.run("rollout undo ds/agent --to-revision=1").await?;
    kubectl.run("rollout status ds/agent --timeout=60s").await?;
    images("example/main:1").await?;
    let revisions = get(&kubectl, "controllerrevisions -l app=agent").await?;
    let revisions = revisions["items"].as_array().context("a list has items")?;
    let mut numbers: Vec<_> = revisions.iter().filter_map(|revision| revision["revision"].as_u64()).collect();
    numbers.sort_unstable();
    ensure!(numbers == [2, 3, 4], "revisions {numbers:?}");
    Ok(())
}
