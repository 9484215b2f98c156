//! Tests of simulated nodes: registration, missing heartbeats, recovery, drain, taints, deletion.

use kcm_api::{ObjectKey, Resource};
use kcm_sandbox_apiserver::{LEASES, NODES, PODS};
use serde_json::{Value, json};

use crate::support::{condition, lab, node_key, pass, pod, text, with};

#[tokio::test(start_paused = true)]
async fn nodes_register_and_send_heartbeats() {
    let lab = lab(2);
    pass(1_000).await;
    let node = lab.node("node-2");
    assert_eq!(condition(&node, "Ready"), "True");
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "node-2");
    assert_eq!(
        (&node["status"]["allocatable"]["cpu"], &node["status"]["capacity"]["pods"]),
        (&json!("8"), &json!("110"))
    );
    assert_eq!(node["spec"]["podCIDR"], "10.128.2.0/24");
    let renewed = || {
        let lease = lab.sandbox.get(&LEASES, &ObjectKey::namespaced("kube-node-lease", "node-2")).unwrap_or_default();
        text(&lease, "/spec/renewTime")
    };
    let first = renewed();
    pass(21_000).await;
    assert!(first < renewed(), "{first} {}", renewed());
    let beat = |node: &Value| text(node, "/status/conditions/0/lastHeartbeatTime");
    pass(300_000).await;
    assert!(beat(&node) < beat(&lab.node("node-2")));
    assert_eq!(condition(&lab.node("node-1"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_heartbeats_is_tainted_and_its_pods_evicted_until_it_returns() {
    let lab = lab(2);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    let name = text(&lab.pod("web"), "/spec/nodeName");
    assert_eq!(lab.command(&format!("stop {name}")), format!("{name} stopped"));
    pass(25_000).await;
    assert_eq!(condition(&lab.node(&name), "Ready"), "True", "within the grace period for heartbeats");
    pass(16_000).await;
    assert_eq!(condition(&lab.node(&name), "Ready"), "Unknown");
    assert_eq!(condition(&lab.pod("web"), "Ready"), "False");
    let taints = lab.node(&name)["spec"]["taints"].clone();
    let effects: Vec<&str> =
        taints.as_array().into_iter().flatten().filter_map(|taint| taint["effect"].as_str()).collect();
    assert_eq!(effects, ["NoSchedule", "NoExecute"]);

    pass(290_000).await;
    assert_eq!(lab.pod("web")["metadata"]["deletionTimestamp"], Value::Null, "the default toleration is 300 s");
    pass(20_000).await;
    assert_ne!(lab.pod("web")["metadata"]["deletionTimestamp"], Value::Null);
    pass(600_000).await;
    assert_ne!(lab.pod("web"), Value::Null, "a stopped kubelet does not terminate its pods");

    lab.command(&format!("start {name}"));
    pass(3_000).await;
    assert_eq!(lab.pod("web"), Value::Null);
    assert_eq!(condition(&lab.node(&name), "Ready"), "True");
    assert_eq!(lab.node(&name)["spec"]["taints"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn pods_do_not_start_while_their_kubelet_is_stopped() {
    let lab = lab(1);
    pass(1_000).await;
    lab.command("stop node-1");
    lab.create(pod("web", "web:1"));
    pass(20_000).await;
    assert_eq!(text(&lab.pod("web"), "/spec/nodeName"), "node-1");
    assert_eq!(text(&lab.pod("web"), "/status/phase"), "Pending");
    lab.command("start node-1");
    lab.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn lose_removes_a_node_and_its_pods() {
    let lab = lab(2);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    let name = text(&lab.pod("web"), "/spec/nodeName");
    assert_eq!(lab.command(&format!("lose {name}")), format!("{name} lost with 1 pods"));
    assert_eq!((lab.node(&name), lab.pod("web")), (Value::Null, Value::Null));
    let lease = lab.sandbox.get(&LEASES, &ObjectKey::namespaced("kube-node-lease", name.as_str()));
    let owner = lease.map(|lease| text(&lease, "/metadata/ownerReferences/0/name"));
    assert_eq!(owner, Some(name), "its lease is left to the garbage collector");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_node_are_deleted() {
    let lab = lab(1);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    lab.sandbox.delete(&NODES, &node_key("node-1")).expect("the node is there");
    lab.until("web is gone", |lab| lab.pod("web") == Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_created_by_a_client_runs_pods() {
    let lab = lab(0);
    lab.sandbox.create(&NODES, json!({ "metadata": { "name": "mine", "labels": { "gpu": "yes" } } })).expect("valid");
    lab.create(with(pod("web", "web:1"), &[("/spec/nodeSelector", json!({ "gpu": "yes" }))]));
    lab.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn drain_evicts_all_pods_and_leaves_the_node_cordoned() {
    let lab = lab(1);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    assert_eq!(lab.command("drain node-1"), "node-1 cordoned, 1 pods to evict");
    lab.until("web is gone", |lab| lab.pod("web") == Value::Null).await;
    lab.create(pod("late", "web:1"));
    pass(5_000).await;
    assert_eq!(text(&lab.pod("late"), "/spec/nodeName"), "");
    assert!(
        lab.messages("late", "FailedScheduling")[0]
            .starts_with("0/1 nodes are available: 1 node(s) were unschedulable.")
    );
    lab.command("uncordon node-1");
    lab.until_ready("late").await;
    assert_eq!(lab.sandbox.list(&PODS, None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_respects_pod_disruption_budgets() {
    let lab = lab(1);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    let budgets = Resource::namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget");
    let budget = json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    let mut budget = lab.sandbox.create(&budgets, budget).expect("the budget is valid");
    let mut allow = |disruptions: i64| {
        budget["status"] = json!({
            "observedGeneration": 1, "disruptionsAllowed": disruptions, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1,
        });
        budget = lab.sandbox.update_status(&budgets, budget.clone()).expect("the status is valid");
    };
    allow(0);
    lab.command("drain node-1");
    pass(60_000).await;
    assert_eq!(condition(&lab.pod("web"), "Ready"), "True");
    assert!(lab.command("nodes").contains("draining"));
    allow(1);
    pass(8_000).await;
    assert_eq!(lab.pod("web"), Value::Null);
    assert!(!lab.command("nodes").contains("draining"));
}

#[tokio::test(start_paused = true)]
async fn a_no_execute_taint_evicts_pods_that_do_not_tolerate_it() {
    let lab = lab(1);
    let toleration = json!([{ "key": "sick", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30 }]);
    lab.create(pod("web", "web:1"));
    lab.create(with(pod("tough", "web:1"), &[("/spec/tolerations", toleration)]));
    lab.until_ready("web").await;
    lab.until_ready("tough").await;
    let taint = json!({ "spec": { "taints": [{ "key": "sick", "effect": "NoExecute" }] } });
    lab.sandbox.patch(&NODES, &node_key("node-1"), &taint).expect("nodes may change");
    pass(5_000).await;
    assert_eq!(lab.pod("web"), Value::Null);
    assert_eq!(lab.pod("tough")["metadata"]["deletionTimestamp"], Value::Null);
    pass(30_000).await;
    assert_eq!(lab.pod("tough"), Value::Null);
    assert_eq!(lab.messages("web", "TaintManagerEviction"), ["Marking for deletion Pod default/web"]);
}
