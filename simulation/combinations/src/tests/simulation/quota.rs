//! Pods that a quota refuses until it is raised.

use kcm_controllers_api_machinery::resourcequota;
use kcm_controllers_apps::replicaset;
use kcm_simulation::rules::{Held, count, holds, is_active, of, text};
use kcm_simulation::{History, Scenario, check};
use kcm_testing::sandbox::{CONFIG_MAPS, PODS, REPLICA_SETS, RESOURCE_QUOTAS, Sandbox, Verb};
use serde_json::json;

use super::super::{NAMESPACE, key, ready_pods, replicas, scenario, web};

/// Limits before and after the quota is raised.
const LIMITS: [usize; 2] = [2, 4];

/// D29: no more pods are active than the quota allows.
fn keeps_the_limit(history: &History) -> Held {
    history.each(|at, change, objects| {
        let active = count(of(objects, &PODS).filter(|pod| is_active(pod)));
        let is_raised = objects.get(&CONFIG_MAPS).is_some_and(|maps| !maps.is_empty());
        let limit = i64::try_from(LIMITS[usize::from(is_raised)]).unwrap_or_default();
        let creates = change.creates() && change.resource == PODS;
        holds(!creates || active < limit, "D29", "more pods are created than the quota allows", at, change)
    })
}

/// Four replicas, of which the quota allows two at first.
fn raised() -> Scenario {
    let hard = |pods: usize| json!({ "hard": { "pods": pods.to_string() } });
    scenario("combinations quota", [resourcequota::DESCRIPTOR, replicaset::DESCRIPTOR], &[keeps_the_limit])
        .prepare(|sandbox| {
            // A config map says that the quota is raised, since a hook cannot read objects.
            sandbox.admit(|attempt| {
                let is_raised = attempt.count(&CONFIG_MAPS, Some(NAMESPACE)) > 0;
                let (used, limit) = (attempt.count(&PODS, Some(NAMESPACE)), LIMITS[usize::from(is_raised)]);
                let is_creation =
                    attempt.verb == Verb::Create && *attempt.resource == PODS && attempt.subresource.is_none();
                if is_creation && used >= limit {
                    return Err(attempt.exceeded_quota("web", "pods", used, limit));
                }
                Ok(())
            });
        })
        .object(&RESOURCE_QUOTAS, web(&hard(LIMITS[0])))
        .object(&REPLICA_SETS, web(&replicas(4)))
        .then(
            |sandbox| ready_pods(sandbox) == LIMITS[0],
            move |sandbox| {
                let map = json!({ "metadata": { "namespace": NAMESPACE, "name": "raised" } });
                drop(sandbox.create(&CONFIG_MAPS, map));
                drop(sandbox.patch(&RESOURCE_QUOTAS, &key("web"), &json!({ "spec": hard(LIMITS[1]) })));
            },
        )
        .act("delete-pod", |sandbox| {
            if let Some(pod) = super::super::active_pods(sandbox).first() {
                drop(sandbox.delete(&PODS, &key(kcm_simulation::rules::name(pod))));
            }
        })
        .goal(|sandbox| ready_pods(sandbox) == LIMITS[1] && has_used(sandbox, LIMITS[1]))
}

fn has_used(sandbox: &Sandbox, pods: usize) -> bool {
    let quota = sandbox.get(&RESOURCE_QUOTAS, &key("web")).unwrap_or_default();
    text(&quota, "/status/used/pods") == pods.to_string()
}

#[test]
fn no_perturbation_of_a_quota_breaks_a_rule() {
    check(&raised(), 10);
}
