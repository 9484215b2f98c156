//! The collection of pods in the simulation.

use kcm_framework::api::ObjectKey;
use kcm_simulation::{Scenario, check};
use kcm_testing::sandbox::{NODES, PODS};

use super::apply::create;
use super::invariants::RULES;
use super::node;
use crate::pod_garbage_collector::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, key};
use crate::tests::fixtures::pod;
use crate::tests::invariants::{name, text};
use crate::tests::scenarios::scenario;

/// Pods on a node that exists, on a node that is deleted, and on a node that never existed.
fn lost() -> Scenario {
    scenario("pod_garbage_collector lost", [DESCRIPTOR], &[RULES])
        .prepare(|sandbox| {
            for name in ["kept", "deleted"] {
                drop(sandbox.create(&NODES, node(name, true, &[])));
            }
            create(sandbox, &pod("a").node("kept"));
            create(sandbox, &pod("b").node("deleted"));
            create(sandbox, &pod("c").node("never"));
        })
        .then(|_| true, |sandbox| drop(sandbox.delete_now(&NODES, &of("deleted"))))
        .act("annotate", |sandbox| {
            for pod in sandbox.list(&PODS, Some(NAMESPACE)) {
                let of_user = serde_json::json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
                drop(sandbox.patch(&PODS, &key(name(&pod)), &of_user));
            }
        })
        .act("create-node", |sandbox| drop(sandbox.create(&NODES, node("never", true, &[]))))
        .act("recreate-node", |sandbox| drop(sandbox.create(&NODES, node("deleted", true, &[]))))
        .act("recreate-pod", |sandbox| {
            drop(sandbox.delete_now(&PODS, &key("c")));
            create(sandbox, &pod("c").node("kept"));
        })
        .act("end-pod", |sandbox| drop(sandbox.set_pod_phase(&key("b"), "Succeeded")))
        .goal(|sandbox| {
            let pods = sandbox.list(&PODS, Some(NAMESPACE));
            let has_node = |pod: &serde_json::Value| sandbox.get(&NODES, &of(text(pod, "/spec/nodeName"))).is_some();
            sandbox.get(&PODS, &key("a")).is_some() && pods.iter().all(has_node)
        })
}

fn of(node: &str) -> ObjectKey {
    ObjectKey::cluster_scoped(node)
}

#[test]
fn no_perturbation_of_lost_nodes_breaks_a_rule() {
    check(&lost(), 15);
}
