//! Deployments in the simulation, with the ReplicaSet controller.

use kcm_simulation::{Plant, Planted, Scenario, check, check_planted};
use kcm_testing::sandbox::{DEPLOYMENTS, REPLICA_SETS, Sandbox};
use serde_json::json;

use super::invariants::RULES;
use crate::tests::cluster::NAMESPACE;
use crate::tests::scenarios::{
    active_pods, annotate, delete_a_pod, get, has_status, merge, one_worker, scenario, template, web,
};
use crate::{deployment, replicaset};

/// Two replicas, whose image changes: one pod more at a time, and none less. The user changes his mind at any time.
fn rolling() -> Scenario {
    let image = |image: u32| merge(&DEPLOYMENTS, json!({ "spec": { "template": template(image) } }));
    scenario("deployment rolling", [deployment::DESCRIPTOR, replicaset::DESCRIPTOR], &[RULES])
        .other_settings(&one_worker([deployment::DESCRIPTOR, replicaset::DESCRIPTOR], ["deployment", "replicaset"]))
        .object(
            &DEPLOYMENTS,
            web(json!({
                "replicas": 2,
                "selector": { "matchLabels": { "app": "web" } },
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
                "template": template(1),
            })),
        )
        .then(is_rolled_out, image(2))
        .act("annotate", annotate(&DEPLOYMENTS))
        .act("annotate-sets", |sandbox| {
            for set in sandbox.list(&REPLICA_SETS, Some(NAMESPACE)) {
                let name = set["metadata"]["name"].as_str().unwrap_or_default();
                let of_user = json!({ "metadata": { "annotations": { "example.com/of": "user" } } });
                drop(sandbox.patch(&REPLICA_SETS, &crate::tests::cluster::key(name), &of_user));
            }
        })
        .act("roll-back", image(1))
        .act("third-image", image(3))
        .act("scale", merge(&DEPLOYMENTS, json!({ "spec": { "replicas": 3 } })))
        .act("delete-pod", delete_a_pod)
        .goal(is_rolled_out)
}

fn is_rolled_out(sandbox: &Sandbox) -> bool {
    let deployment = get(sandbox, &DEPLOYMENTS);
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or_default();
    let fields = ["replicas", "updatedReplicas", "availableReplicas"];
    fields.iter().all(|field| has_status(sandbox, &DEPLOYMENTS, field, replicas))
        && active_pods(sandbox).len() == usize::try_from(replicas).unwrap_or_default()
}

#[test]
fn no_perturbation_of_a_rolling_update_breaks_a_rule() {
    check(&rolling(), 15);
}

#[test]
fn planted_bugs_are_found_in_rolling() {
    check_planted(
        rolling,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "O2",
                run: 21,
                schedule: "deployment shop/web write 2: act scale",
            },
            Planted {
                plant: Plant::UpdateWithoutVersion,
                rule: "D1.11",
                run: 195,
                schedule: "deployment shop/web write 14: act annotate-sets",
            },
            Planted {
                plant: Plant::ConflictIsSuccess,
                rule: "O2",
                run: 92,
                schedule: "replicaset shop/web-bbdkczw8tb write 12: fail before 409",
            },
            Planted {
                plant: Plant::FailureIsSuccess,
                rule: "O2",
                run: 91,
                schedule: "replicaset shop/web-bbdkczw8tb write 12: fail before 500",
            },
            Planted {
                plant: Plant::OwnWritesAreForgotten,
                rule: "O7",
                run: 28,
                schedule: "replicaset shop/web-bbdkczw8tb write 2: fail before 429",
            },
        ],
    );
}
