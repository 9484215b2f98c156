//! Evictions by taints in the simulation.

use kcm_simulation::rules::items;
use kcm_simulation::{Scenario, check};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NODES, PODS, Sandbox};
use serde_json::json;

use super::apply::{create_pod, pod_key, taint, tolerates};
use super::invariants::RULES;
use crate::shared::MONITOR_GRACE_PERIOD;
use crate::taint_eviction::DESCRIPTOR;
use crate::tests::scenarios::{annotate_nodes, annotate_pods, scenario};
use crate::tests::{create_node, key};

/// Pods that tolerate nothing, for half a minute, and for ever, on two nodes that are tainted.
fn tainted() -> Scenario {
    let taints = json!([{ "key": "a", "effect": "NoExecute" }]);
    let environment = TestEnvironment::new([DESCRIPTOR]).settings_of_others(&[MONITOR_GRACE_PERIOD.row()]);
    let forever = json!([{ "key": "a", "operator": "Exists", "effect": "NoExecute" }]);
    let of_second = taints.clone();
    scenario("taint_eviction tainted", &environment, RULES)
        .prepare(|sandbox| {
            for name in ["n1", "n2"] {
                create_node(sandbox, &json!({ "metadata": { "name": name } }));
            }
            create_pod(sandbox, "none", "n1", &json!([]));
            create_pod(sandbox, "forever", "n1", &forever);
            create_pod(sandbox, "other", "n2", &tolerates("a", 30));
        })
        .then(|_| true, move |sandbox| taint(sandbox, "n1", &taints))
        .then(
            |sandbox| !is_tainted(sandbox, "n1") || is_gone(sandbox, "none"),
            |sandbox| {
                taint(sandbox, "n1", &json!([]));
            },
        )
        .then(|_| true, move |sandbox| taint(sandbox, "n2", &of_second))
        .act("annotate-nodes", annotate_nodes)
        .act("annotate-pods", annotate_pods)
        .act("untaint", |sandbox| taint(sandbox, "n1", &json!([])))
        .act("untaint-other", |sandbox| taint(sandbox, "n2", &json!([])))
        .act("recreate-pod", |sandbox| {
            drop(sandbox.delete_now(&PODS, &pod_key("other")));
            create_pod(sandbox, "other", "n2", &tolerates("a", 20));
        })
        .goal(|sandbox| {
            !is_tainted(sandbox, "n1")
                && !is_gone(sandbox, "forever")
                && (!is_tainted(sandbox, "n2") || is_gone(sandbox, "other"))
        })
}

fn is_tainted(sandbox: &Sandbox, node: &str) -> bool {
    !items(&sandbox.get(&NODES, &key(node)).unwrap_or_default(), "/spec/taints").is_empty()
}

fn is_gone(sandbox: &Sandbox, pod: &str) -> bool {
    sandbox.get(&PODS, &pod_key(pod)).is_none()
}

#[test]
fn no_perturbation_of_taints_breaks_a_rule() {
    check(&tainted(), 15);
}
