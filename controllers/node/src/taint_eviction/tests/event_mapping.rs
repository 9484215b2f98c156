//! Keys that changes enqueue.

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Node, Pod, PodTolerations};
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{needs, pod_view};
use crate::taint_eviction::event_mapping::{keys_for_pod, node_with_other_taints};
use crate::tests::node_view;

fn pod(node: &str, tolerations: &Value) -> Value {
    json!({
        "metadata": { "namespace": "shop", "name": "a", "uid": "u" },
        "spec": { "nodeName": node, "tolerations": tolerations },
    })
}

#[test]
fn s42_pods_on_tainted_nodes_are_enqueued_by_what_decides() {
    let (one, other) =
        (json!([{ "key": "a", "tolerationSeconds": 1 }]), json!([{ "key": "a", "tolerationSeconds": 2 }]));
    let added = |pod: Value| Change::Added(pod_view(&pod));
    let updated = |old: Value, new: Value| Change::Updated { old: pod_view(&old), new: pod_view(&new) };
    let deleted = |pod: Value| Change::<Pod>::Deleted { last: pod_view(&pod), final_state_known: true };
    let with = |mut pod: Value, at: &str, field: &str, value: Value| {
        pod.pointer_mut(at).expect("the fixture has it")[field] = value;
        pod
    };
    let tainted = || pod("tainted", &one);
    for (name, change, is_enqueued) in [
        ("added to a tainted node", added(tainted()), true),
        ("added to a node without taint", added(pod("clean", &one)), false),
        ("added without a node", added(pod("", &one)), false),
        ("assigned", updated(pod("", &one), tainted()), true),
        ("other tolerations", updated(tainted(), pod("tainted", &other)), true),
        ("other tolerations on a clean node", updated(pod("clean", &one), pod("clean", &other)), false),
        ("other labels", updated(tainted(), with(tainted(), "/metadata", "labels", json!({ "a": "b" }))), false),
        (
            "begins to terminate",
            updated(tainted(), with(tainted(), "/metadata", "deletionTimestamp", json!("2026-01-02T12:00:00Z"))),
            true,
        ),
        ("recreated", updated(tainted(), with(tainted(), "/metadata", "uid", json!("v"))), true),
        ("deleted", deleted(pod("clean", &one)), true),
    ] {
        let needs = needs();
        let tolerations = needs.reader::<PodTolerations>().unwrap();
        let keys = keys_for_pod(&change, tolerations, |node| node == "tainted");
        assert_eq!(keys, is_enqueued.then(|| ObjectKey::namespaced("shop", "a")), "{name}");
    }
}

#[test]
fn s42_a_node_enqueues_its_pods_when_its_evicting_taints_change() {
    let node = |taints: Value| node_view(&json!({ "metadata": { "name": "n" }, "spec": { "taints": taints } }));
    let taint = |effect: &str, time: &str| json!([{ "key": "a", "effect": effect, "timeAdded": time }]);
    let (early, late) = ("2026-01-02T12:00:00Z", "2026-01-02T12:00:01Z");
    let evicting = || node(taint("NoExecute", early));
    let updated = |old, new| Change::Updated { old, new };
    let deleted = |last| Change::<Node>::Deleted { last, final_state_known: true };
    for (name, change, is_enqueued) in [
        ("added with the taint", Change::Added(evicting()), true),
        ("added without", Change::Added(node(json!([]))), false),
        ("added with another effect", Change::Added(node(taint("NoSchedule", early))), false),
        ("tainted", updated(node(json!([])), evicting()), true),
        ("no longer tainted", updated(evicting(), node(json!([]))), true),
        ("another time", updated(evicting(), node(taint("NoExecute", late))), true),
        ("another effect of another taint", updated(node(json!([])), node(taint("NoSchedule", early))), false),
        ("nothing", updated(evicting(), evicting()), false),
        ("deleted", deleted(evicting()), true),
        ("deleted without taint", deleted(node(json!([]))), false),
    ] {
        assert_eq!(node_with_other_taints(&change), is_enqueued.then_some("n"), "{name}");
    }
}
