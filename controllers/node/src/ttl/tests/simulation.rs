//! Annotations of Nodes in the simulation.

use kcm_simulation::rules::{Held, holds, text, writes_of};
use kcm_simulation::{History, Scenario, check};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NODES, Sandbox};
use serde_json::{Value, json};

use crate::tests::key;
use crate::tests::scenarios::{annotate_nodes, scenario};
use crate::ttl::{DESCRIPTOR, TTL};

/// Only the annotation of a node is changed.
fn changes_nothing_else(history: &History) -> Held {
    writes_of(history, "ttlcontroller", |at, change, _| {
        let rest = |node: &Value| {
            let mut node = node.clone();
            node["metadata"]["resourceVersion"] = Value::Null;
            node["metadata"]["managedFields"] = Value::Null;
            node["metadata"]["annotations"][TTL] = Value::Null;
            node
        };
        let is_right = change.before.as_deref().map(rest) == change.after.as_deref().map(rest);
        holds(is_right, "TTL", "more than the annotation is changed", at, change)
    })
}

/// Two nodes, one of which has another time to live.
fn annotated() -> Scenario {
    scenario("ttl annotated", &TestEnvironment::new([DESCRIPTOR]), &[changes_nothing_else])
        .prepare(|sandbox| {
            create(sandbox, "a", &json!({}));
            create(sandbox, "b", &json!({ TTL: "300" }));
        })
        .then(are_annotated, |sandbox| create(sandbox, "c", &json!({})))
        .act("annotate", annotate_nodes)
        .act("recreate", |sandbox| {
            drop(sandbox.delete(&NODES, &key("b")));
            create(sandbox, "b", &json!({}));
        })
        .goal(are_annotated)
}

fn create(sandbox: &Sandbox, name: &str, annotations: &Value) {
    drop(sandbox.create(&NODES, json!({ "metadata": { "name": name, "annotations": annotations } })));
}

fn are_annotated(sandbox: &Sandbox) -> bool {
    sandbox
        .list(&NODES, None)
        .iter()
        .all(|node| text(&node["metadata"]["annotations"], &format!("/{}", TTL.replace('/', "~1"))) == "0")
}

#[test]
fn no_perturbation_of_annotations_breaks_a_rule() {
    check(&annotated(), 20);
}
