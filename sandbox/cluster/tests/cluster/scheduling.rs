//! Scheduling: node selection, and the condition of unschedulable pods.

use std::collections::BTreeMap;

use kcm_sandbox_apiserver::{NODES, PODS, Sandbox, SandboxOptions};
use kcm_sandbox_cluster::{Cluster, ClusterOptions};
use serde_json::{Value, json};

use crate::support::{Lab, condition, key, lab, node_key, pass, pod, text, why, with};

fn cpu(name: &str, amount: &str) -> Value {
    with(pod(name, "web:1"), &[("/spec/containers/0/resources/requests/cpu", json!(amount))])
}

fn node_of(lab: &Lab, name: &str) -> String {
    text(&lab.pod(name), "/spec/nodeName")
}

async fn placed(lab: &Lab, names: &[&str]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        lab.until(&format!("{name} is placed"), |lab| !node_of(lab, name).is_empty()).await;
        *counts.entry(node_of(lab, name)).or_default() += 1;
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn pods_spread_over_the_nodes_with_least_allocated() {
    let lab = lab(3);
    let names: Vec<String> = (0..9).map(|at| format!("web-{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &names {
        lab.create(pod(name, "web:1"));
    }
    let counts = placed(&lab, &names).await;
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [3, 3, 3], "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unschedulable_pod_has_a_reason_and_is_bound_when_capacity_is_free() {
    let lab = lab(3);
    pass(1_000).await;
    for at in 0..3 {
        lab.create(cpu(&format!("big-{at}"), "6"));
    }
    placed(&lab, &["big-0", "big-1", "big-2"]).await;
    lab.create(cpu("late", "4"));
    lab.create(cpu("huge", "20"));
    pass(1_000).await;
    let full = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.";
    assert_eq!(why(&lab.pod("late"), "PodScheduled"), format!("False Unschedulable: {full}"));
    assert_eq!(lab.messages("late", "FailedScheduling"), [full]);
    let never = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(lab.messages("huge", "FailedScheduling"), [never]);

    lab.sandbox.delete_now(&PODS, &key("big-1")).expect("the pod is there");
    lab.until_ready("late").await;
    assert_eq!(node_of(&lab, "huge"), "");
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_first_node_and_a_new_one_is_used_at_once() {
    let lab = lab(0);
    lab.create(pod("web", "web:1"));
    pass(1_000).await;
    assert_eq!(lab.messages("web", "FailedScheduling"), ["no nodes available to schedule pods"]);
    assert_eq!(lab.command("add"), "added node-1");
    lab.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn nodes_are_chosen_by_selectors_affinity_and_taints() {
    let lab = lab(3);
    pass(1_000).await;
    let change = |node: &str, patch: Value| {
        lab.sandbox.patch(&NODES, &node_key(node), &patch).expect("nodes may change");
    };
    change("node-1", json!({ "metadata": { "labels": { "disk": "ssd", "size": "10" } } }));
    change("node-2", json!({ "metadata": { "labels": { "disk": "hdd", "size": "20" } } }));
    change("node-3", json!({ "spec": { "taints": [{ "key": "own", "value": "db", "effect": "NoSchedule" }] } }));
    let affinity = |kind: &str, key: &str, operator: &str, values: &[&str]| {
        let expression = json!({ "key": key, "operator": operator, "values": values });
        let terms = json!([{ kind: [expression] }]);
        ("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms", terms)
    };
    let labels = |key, operator, values: &[&str]| affinity("matchExpressions", key, operator, values);
    let own = json!([{ "key": "own", "operator": "Equal", "value": "db", "effect": "NoSchedule" }]);
    for (name, changes, expected) in [
        ("selector", vec![("/spec/nodeSelector", json!({ "disk": "ssd" }))], "node-1"),
        ("in", vec![labels("disk", "In", &["hdd", "tape"])], "node-2"),
        ("not-in", vec![labels("disk", "NotIn", &["hdd"]), ("/spec/nodeSelector", json!({ "disk": "ssd" }))], "node-1"),
        ("exists", vec![labels("size", "Gt", &["15"])], "node-2"),
        ("less", vec![labels("size", "Lt", &["15"])], "node-1"),
        ("field", vec![affinity("matchFields", "metadata.name", "In", &["node-2"])], "node-2"),
        (
            "tolerated",
            vec![("/spec/tolerations", own), ("/spec/nodeSelector", json!({ "kubernetes.io/hostname": "node-3" }))],
            "node-3",
        ),
    ] {
        lab.create(with(pod(name, "web:1"), &changes));
        placed(&lab, &[name]).await;
        assert_eq!(node_of(&lab, name), expected, "{name}");
    }
    lab.create(with(pod("nowhere", "web:1"), &[labels("disk", "In", &["tape"])]));
    pass(1_000).await;
    assert_eq!(
        lab.messages("nowhere", "FailedScheduling"),
        [
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn gated_pods_wait_for_their_gates() {
    let lab = lab(1);
    lab.create(with(pod("web", "web:1"), &[("/spec/schedulingGates", json!([{ "name": "example.com/go" }]))]));
    pass(1_000).await;
    assert_eq!(
        why(&lab.pod("web"), "PodScheduled"),
        "False SchedulingGated: Scheduling is blocked due to non-empty scheduling gates"
    );
    let open = json!({ "spec": { "schedulingGates": null } });
    lab.sandbox.patch(&PODS, &key("web"), &open).expect("gates may be opened");
    lab.until_ready("web").await;
}

#[tokio::test(start_paused = true)]
async fn pod_affinity_and_anti_affinity_are_respected() {
    let lab = lab(3);
    let term =
        json!([{ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "web" } } }]);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let apart = format!("/spec/affinity/podAntiAffinity/{required}");
    for name in ["a", "b", "c", "d"] {
        lab.create(with(pod(name, "web:1"), &[(&apart, term.clone())]));
    }
    let counts = placed(&lab, &["a", "b", "c"]).await;
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [1, 1, 1]);
    pass(1_000).await;
    assert_eq!(node_of(&lab, "d"), "");
    assert!(lab.messages("d", "FailedScheduling")[0].contains("3 node(s) didn't match pod anti-affinity rules"));

    let other = with(pod("plain", "web:1"), &[]);
    lab.create(other);
    pass(1_000).await;
    assert!(
        lab.messages("plain", "FailedScheduling")[0]
            .contains("3 node(s) didn't satisfy existing pods anti-affinity rules")
    );

    let together = format!("/spec/affinity/podAffinity/{required}");
    let near =
        json!([{ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "db" } } }]);
    let label = ("/metadata/labels", json!({ "app": "cache" }));
    lab.create(with(pod("cache", "web:1"), &[label, (&together, near)]));
    pass(1_000).await;
    assert_eq!(node_of(&lab, "cache"), "", "no pod matches its affinity");
    lab.create(with(pod("db", "web:1"), &[("/metadata/labels", json!({ "app": "db" }))]));
    placed(&lab, &["db", "cache"]).await;
    assert_eq!(node_of(&lab, "cache"), node_of(&lab, "db"));
}

#[tokio::test(start_paused = true)]
async fn spread_constraints_bound_the_skew() {
    let lab = lab(2);
    let constraint = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    }]);
    pass(1_000).await;
    lab.command("cordon node-2");
    // A cordoned node still counts among the places to spread over.
    for name in ["a", "b"] {
        lab.create(with(pod(name, "web:1"), &[("/spec/topologySpreadConstraints", constraint.clone())]));
    }
    placed(&lab, &["a"]).await;
    pass(1_000).await;
    assert_eq!(
        lab.messages("b", "FailedScheduling"),
        [
            "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
        ]
    );
    lab.command("uncordon node-2");
    placed(&lab, &["b"]).await;
    assert_eq!(condition(&lab.pod("b"), "PodScheduled"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_falls_behind_the_window_catches_up() {
    let sandbox = Sandbox::new(SandboxOptions { watch_window: 5, ..SandboxOptions::default() });
    let cluster = Cluster::start(&sandbox, ClusterOptions::default());
    let lab = Lab { sandbox, cluster };
    pass(1_000).await;
    for at in 0..50 {
        lab.create(pod(&format!("web-{at}"), "web:1"));
    }
    lab.sandbox.delete(&PODS, &key("web-7")).expect("the pod is there");
    for at in (0..50).filter(|at| *at != 7) {
        lab.until_ready(&format!("web-{at}")).await;
    }
    assert_eq!(lab.pod("web-7"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_takes_over_what_is_there() {
    let sandbox = Sandbox::default();
    let first = Cluster::start(&sandbox, ClusterOptions::default());
    let lab = Lab { sandbox, cluster: first };
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    let Lab { sandbox, cluster } = lab;
    drop(cluster);
    let lab = Lab { cluster: Cluster::start(&sandbox, ClusterOptions::default()), sandbox };
    pass(5_000).await;
    assert_eq!(lab.sandbox.list(&NODES, None).len(), 3);
    lab.until_ready("web").await;
    lab.create(pod("two", "web:1"));
    lab.until_ready("two").await;
}
