//! `ResourceQuotas` in the simulation.

use kcm_simulation::rules::text;
use kcm_simulation::{Scenario, check};
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, RESOURCE_QUOTAS, Sandbox};
use serde_json::json;

use super::invariants::RULES;
use crate::resourcequota::DESCRIPTOR;
use crate::tests::scenarios::{create, key, object, scenario};

/// A quota whose pods and config maps come, end and go, while its limits change.
fn counted() -> Scenario {
    let mut quota = object(&RESOURCE_QUOTAS, "quota");
    quota["spec"] = json!({ "hard": { "pods": "9", "requests.cpu": "4", "configmaps": "9" } });
    scenario("resourcequota counted", DESCRIPTOR, RULES)
        .object(&PODS, object(&PODS, "a"))
        .object(&CONFIG_MAPS, object(&CONFIG_MAPS, "a"))
        .object(&RESOURCE_QUOTAS, quota)
        .then(|sandbox| has_used(sandbox, "1"), |sandbox| create(sandbox, &PODS, "b"))
        .then(|sandbox| has_used(sandbox, "2"), |sandbox| drop(sandbox.set_pod_phase(&key("a"), "Succeeded")))
        .then(|sandbox| has_used(sandbox, "1"), |sandbox| drop(sandbox.delete_now(&PODS, &key("b"))))
        .act("annotate", |sandbox| {
            let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
            drop(sandbox.patch(&RESOURCE_QUOTAS, &key("quota"), &of_user));
        })
        .act("limit", |sandbox| {
            let spec = json!({ "spec": { "hard": { "pods": "5", "configmaps": "8" } } });
            drop(sandbox.patch(&RESOURCE_QUOTAS, &key("quota"), &spec));
        })
        .act("add-map", |sandbox| create(sandbox, &CONFIG_MAPS, "b"))
        .act("delete-map", |sandbox| drop(sandbox.delete(&CONFIG_MAPS, &key("a"))))
        .act("recreate", |sandbox| {
            let quota = sandbox.get(&RESOURCE_QUOTAS, &key("quota")).unwrap_or_default();
            let mut again = object(&RESOURCE_QUOTAS, "quota");
            again["spec"] = quota["spec"].clone();
            drop(sandbox.delete(&RESOURCE_QUOTAS, &key("quota")));
            drop(sandbox.create(&RESOURCE_QUOTAS, again));
        })
        // Objects are counted again when the next resync finds them.
        .goal(|sandbox| {
            let quota = sandbox.get(&RESOURCE_QUOTAS, &key("quota")).unwrap_or_default();
            has_used(sandbox, "0")
                && quota["status"]["hard"] == quota["spec"]["hard"]
                && text(&quota, "/status/used/configmaps") == sandbox.list(&CONFIG_MAPS, Some("shop")).len().to_string()
        })
}

fn has_used(sandbox: &Sandbox, pods: &str) -> bool {
    let quota = sandbox.get(&RESOURCE_QUOTAS, &key("quota")).unwrap_or_default();
    text(&quota, "/status/used/pods") == pods
}

#[test]
fn no_perturbation_of_a_quota_breaks_a_rule() {
    check(&counted(), 10);
}
