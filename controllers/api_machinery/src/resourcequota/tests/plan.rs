//! Which usage is written, and when.

use std::time::Duration;

use kcm_framework::api::Resource;
use serde_json::{Value, json};

use super::{GATES, hard, plan_of, pod, quota, written};
use crate::resourcequota::evaluator::resource_claims::DeviceClasses;
use crate::resourcequota::evaluator::{Evaluator, ObjectCount};
use crate::resourcequota::observe::{Content, Observed};
use crate::resourcequota::plan::{Action, Plan};

fn objects(resource: &Resource) -> Evaluator {
    Evaluator::Objects(ObjectCount::of(resource))
}

fn config_maps() -> Evaluator {
    objects(&Resource::namespaced("", "v1", "configmaps", "ConfigMap"))
}

fn pods(count: usize) -> (Evaluator, Content) {
    let of_number = |number: usize| pod(&format!("pod-{number}"), &json!({}), &json!({}));
    (Evaluator::Pods, Content::Pods((0..count).map(of_number).collect()))
}

fn plan(spec: &Value, status: &Value, content: Vec<(Evaluator, Content)>) -> Plan {
    plan_of(&quota(spec, status), &Observed { content, classes: DeviceClasses::default() }, GATES)
}

#[test]
fn usage_is_that_of_the_limits_and_of_no_others() {
    let spec = json!({ "hard": hard(&["configmaps", "pods", "example.com/unknown"]) });
    let status = json!({ "hard": { "services": "5" }, "used": { "services": "3", "pods": "9" } });
    let found = plan(&spec, &status, vec![pods(2), (config_maps(), Content::Objects(4))]);
    assert_eq!(written(&found), ["configmaps=4", "pods=2"]);
}

#[test]
fn objects_are_counted_by_kind_and_group_and_some_by_their_name_alone() {
    let deployments = objects(&Resource::namespaced("apps", "v1", "deployments", "Deployment"));
    let of_core = |plural| objects(&Resource::namespaced("", "v1", plural, "Kind"));
    for (evaluator, constraint, is_counted) in [
        (&deployments, "count/deployments.apps", true),
        (&deployments, "count/deployments", false),
        (&deployments, "count/deployments.extensions", false),
        (&deployments, "deployments.apps", false),
        (&of_core("configmaps"), "configmaps", true),
        (&of_core("configmaps"), "count/configmaps", true),
        (&of_core("secrets"), "secrets", true),
        (&of_core("resourcequotas"), "resourcequotas", true),
        (&of_core("replicationcontrollers"), "replicationcontrollers", true),
        (&of_core("endpoints"), "endpoints", false),
        (&of_core("endpoints"), "count/endpoints", true),
    ] {
        let found = evaluator.evaluates(constraint, &DeviceClasses::default(), GATES);
        assert_eq!(found, is_counted, "{constraint} by {evaluator}");
    }
}

#[test]
fn a_kind_that_is_not_known_holds_up_its_own_constraints() {
    let spec = json!({ "hard": hard(&["configmaps", "pods", "requests.cpu"]) });
    let status = json!({ "hard": spec["hard"], "used": { "pods": "7", "configmaps": "1" } });
    let unavailable = || (Evaluator::Pods, Content::Unavailable("they cannot be listed"));
    let found = plan(&spec, &status, vec![unavailable(), (config_maps(), Content::Objects(4))]);
    assert_eq!(written(&found), ["configmaps=4", "pods=7"], "what was never counted has no usage");
    assert_eq!(found.unavailable, [(Evaluator::Pods, "they cannot be listed")]);

    let found = plan(&spec, &json!({}), vec![unavailable(), (config_maps(), Content::Objects(4))]);
    assert_eq!(written(&found), ["configmaps=4"]);
}

#[test]
fn a_constraint_that_two_kinds_count_needs_both() {
    use crate::resourcequota::evaluator::resource_claims::DeviceClasses;
    let class = super::decode(&json!({
        "metadata": { "name": "gpu" }, "spec": { "extendedResourceName": "example.com/gpu" },
    }));
    let claim = super::decode(&json!({
        "metadata": { "name": "claim" },
        "spec": { "devices": { "requests": [
            { "name": "r", "exactly": { "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2 } },
        ] } },
    }));
    let pod = pod(
        "pod",
        &json!({ "containers": [{ "name": "main", "resources": { "requests": { "example.com/gpu": "3" } } }] }),
        &json!({}),
    );
    let spec = json!({ "hard": hard(&["requests.example.com/gpu"]) });
    let status = json!({ "hard": spec["hard"], "used": { "requests.example.com/gpu": "9" } });
    for (claims, expected) in [
        (Content::ResourceClaims(vec![claim], vec![]), Some("requests.example.com/gpu=5")),
        (Content::Unavailable("they cannot be listed"), None),
    ] {
        let content = vec![(Evaluator::Pods, Content::Pods(vec![pod.clone()])), (Evaluator::ResourceClaims, claims)];
        let observed = Observed { content, classes: DeviceClasses::of(std::slice::from_ref(&class)) };
        let found = plan_of(&quota(&spec, &status), &observed, GATES);
        match expected {
            Some(expected) => assert_eq!(written(&found), [expected]),
            None => assert_eq!(found.action, Action::Keep),
        }
    }
}

#[test]
fn a_status_is_written_where_a_value_differs() {
    let spec = json!({ "hard": { "pods": "1k", "configmaps": "5" } });
    let content = || vec![pods(2), (config_maps(), Content::Objects(0))];
    for (name, status, is_written) in [
        ("equal", json!({ "hard": spec["hard"], "used": { "pods": "2", "configmaps": "0" } }), false),
        (
            "equal in value",
            json!({ "hard": { "pods": "1000", "configmaps": "5" }, "used": { "pods": "2000m", "configmaps": "0" } }),
            false,
        ),
        ("another usage", json!({ "hard": spec["hard"], "used": { "pods": "3", "configmaps": "0" } }), true),
        ("no usage of one", json!({ "hard": spec["hard"], "used": { "pods": "2" } }), true),
        (
            "a usage too many",
            json!({ "hard": spec["hard"], "used": { "pods": "2", "configmaps": "0", "secrets": "1" } }),
            true,
        ),
        (
            "another limit",
            json!({ "hard": { "pods": "1", "configmaps": "5" }, "used": { "pods": "2", "configmaps": "0" } }),
            true,
        ),
        ("no status", json!({}), true),
    ] {
        assert_eq!(plan(&spec, &status, content()).action != Action::Keep, is_written, "{name}");
    }
    assert_eq!(plan(&json!({}), &json!({}), vec![]).action, Action::Keep, "a quota without limits");
}

#[test]
fn a_kind_that_is_being_listed_is_worth_a_wait() {
    let spec = json!({ "hard": hard(&["configmaps", "pods"]) });
    let listing = Content::Listing(Duration::from_secs(3));
    let found = plan(&spec, &json!({}), vec![pods(2), (config_maps(), listing)]);
    assert_eq!(found.action, Action::Wait(Duration::from_secs(3)));
}
