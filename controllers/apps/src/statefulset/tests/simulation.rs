//! StatefulSets in the simulation.

use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::StatefulSet;
use kcm_simulation::{Plant, Planted, Scenario, check, check_planted};
use kcm_testing::sandbox::Sandbox;
use serde_json::json;

use super::invariants::RULES;
use crate::statefulset::DESCRIPTOR;
use crate::tests::scenarios::{
    active_pods, annotate, delete_a_pod, get, has_status, merge, one_worker, scenario, template, web,
};

/// Two pods with claims, whose image changes.
fn rolling() -> Scenario {
    let sets = StatefulSet::RESOURCE;
    let claims = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    let set = web(json!({
        "replicas": 2,
        "serviceName": "web",
        "selector": { "matchLabels": { "app": "web" } },
        "template": template(1),
        "volumeClaimTemplates": claims,
    }));
    scenario("statefulset rolling", [DESCRIPTOR], &[RULES])
        .other_settings(&one_worker([DESCRIPTOR], ["statefulset"]))
        .object(&sets, set)
        .then(is_rolled_out, merge(&sets, json!({ "spec": { "template": template(2) } })))
        .act("annotate", annotate(&sets))
        .act("scale-down", merge(&sets, json!({ "spec": { "replicas": 1 } })))
        .act("scale-up", merge(&sets, json!({ "spec": { "replicas": 3 } })))
        .act("third-image", merge(&sets, json!({ "spec": { "template": template(3) } })))
        .act("delete-pod", delete_a_pod)
        .goal(is_rolled_out)
}

fn is_rolled_out(sandbox: &Sandbox) -> bool {
    let set = get(sandbox, &StatefulSet::RESOURCE);
    let replicas = set["spec"]["replicas"].as_i64().unwrap_or_default();
    let fields = ["replicas", "readyReplicas", "availableReplicas"];
    let revision = &set["status"]["updateRevision"];
    let of_revision = |pod: &serde_json::Value| pod["metadata"]["labels"]["controller-revision-hash"] == *revision;
    fields.iter().all(|field| has_status(sandbox, &StatefulSet::RESOURCE, field, replicas))
        && set["status"]["currentRevision"] == *revision
        && active_pods(sandbox).len() == usize::try_from(replicas).unwrap_or_default()
        && active_pods(sandbox).iter().all(of_revision)
}

#[test]
fn no_perturbation_of_a_rolling_update_breaks_a_rule() {
    check(&rolling(), 20);
}

#[test]
fn planted_bugs_are_found_in_rolling() {
    check_planted(
        rolling,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "D1.11",
                run: 34,
                schedule: "statefulset shop/web write 22: act annotate",
            },
            Planted {
                plant: Plant::FailureIsSuccess,
                rule: "D4.6",
                run: 92,
                schedule: "statefulset shop/web write 6: fail before 500",
            },
            Planted {
                plant: Plant::OwnWritesAreForgotten,
                rule: "O3",
                run: 45,
                schedule: "cache controllerrevisions delivery 2: hold until 2 events",
            },
        ],
    );
}
