//! Namespaces in the simulation.

use kcm_framework::api::{ObjectKey, Resource};
use kcm_simulation::{Scenario, check};
use kcm_testing::sandbox::{CONFIG_MAPS, NAMESPACES, PODS, Sandbox};
use serde_json::json;

use super::invariants::RULES;
use crate::namespace::DESCRIPTOR;
use crate::tests::scenarios::{NAMESPACE, create, key, object, scenario};

const SECRETS: Resource = Resource::namespaced("", "v1", "secrets", "Secret");

fn shop() -> ObjectKey {
    ObjectKey::cluster_scoped(NAMESPACE)
}

/// A namespace with a pod and an object that has a finalizer, which is deleted, created again and deleted again.
fn deleted() -> Scenario {
    let mut held = object(&CONFIG_MAPS, "held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let delete = |sandbox: &Sandbox| drop(sandbox.delete(&NAMESPACES, &shop()));
    scenario("namespace deleted", DESCRIPTOR, RULES)
        .object(&PODS, object(&PODS, "pod"))
        .object(&SECRETS, object(&SECRETS, "secret"))
        .object(&CONFIG_MAPS, held)
        .then(|_| true, delete)
        .then(is_held, release)
        .then(is_gone, |sandbox| {
            drop(sandbox.create_namespace(NAMESPACE));
            create(sandbox, &CONFIG_MAPS, "again");
        })
        .then(|_| true, delete)
        .act("annotate", |sandbox| {
            let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
            drop(sandbox.patch(&NAMESPACES, &shop(), &of_user));
        })
        .act("create", |sandbox| create(sandbox, &CONFIG_MAPS, "late"))
        .act("delete-pod", |sandbox| drop(sandbox.delete_now(&PODS, &key("pod"))))
        .act("release", release)
        .goal(is_gone)
}

fn is_gone(sandbox: &Sandbox) -> bool {
    sandbox.get(&NAMESPACES, &shop()).is_none()
}

fn is_held(sandbox: &Sandbox) -> bool {
    sandbox.get(&SECRETS, &key("secret")).is_none()
}

fn release(sandbox: &Sandbox) {
    drop(sandbox.patch(&CONFIG_MAPS, &key("held"), &json!({ "metadata": { "finalizers": null } })));
}

#[test]
fn no_perturbation_of_a_deletion_breaks_a_rule() {
    check(&deleted(), 10);
}
