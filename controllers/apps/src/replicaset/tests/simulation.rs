//! A ReplicaSet in the simulation: the default order, and every single perturbation of it.

use kcm_simulation::{Scenario, Schedule, run, singles};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{NAMESPACES, PODS, REPLICA_SETS, Sandbox};
use serde_json::json;

use super::invariants::RULES;
use crate::replicaset::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, key};

/// Two replicas, which become three. All are ready at the end, and the status agrees.
fn scaled_up() -> Scenario {
    let set = json!({
        "metadata": { "namespace": NAMESPACE, "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    });
    let scenario = Scenario::new("replicaset scaled up", &TestEnvironment::new([DESCRIPTOR]))
        .object(&NAMESPACES, json!({ "metadata": { "name": NAMESPACE } }))
        .object(&REPLICA_SETS, set)
        .then(
            |sandbox| has_ready(sandbox, 2),
            |sandbox| {
                let three = json!({ "spec": { "replicas": 3 } });
                sandbox.patch(&REPLICA_SETS, &key("web"), &three).expect("the set is there");
            },
        )
        .goal(|sandbox| has_ready(sandbox, 3) && sandbox.list(&PODS, None).len() == 3);
    RULES.iter().fold(scenario, |scenario, rule| scenario.invariant(*rule))
}

fn has_ready(sandbox: &Sandbox, count: i64) -> bool {
    let set = sandbox.get(&REPLICA_SETS, &key("web")).unwrap_or_default();
    set["status"]["readyReplicas"] == count && set["status"]["observedGeneration"] == set["metadata"]["generation"]
}

#[test]
fn the_default_order_reaches_the_goal_and_two_runs_are_the_same() {
    let scenario = scaled_up();
    let [first, second] = [(); 2].map(|()| run(&scenario, &Schedule::default()));
    assert!(first.violation.is_none(), "{:?}\n{}", first.violation, first.trace);
    let creations = first.history.changes.iter().filter(|change| change.creates() && change.resource == PODS).count();
    assert_eq!(creations, 3);
    assert_eq!(first.trace, second.trace);
}

#[test]
fn no_single_perturbation_breaks_a_rule() {
    let search = singles(&scaled_up());
    let findings: Vec<String> =
        search.findings.iter().map(|it| format!("{}: {:?}\n{}", it.schedule, it.violation, it.trace)).collect();
    assert!(findings.is_empty(), "{} of {} runs:\n{}", findings.len(), search.runs, findings.join("\n\n"));
    assert!(search.runs > 50, "{} runs", search.runs);
}

#[test]
fn a_goal_that_is_never_reached_breaks_the_first_rule() {
    let unreachable = scaled_up().goal(|sandbox| has_ready(sandbox, 4));
    let violation = run(&unreachable, &Schedule::default()).violation.expect("the goal is out of reach");
    assert!(format!("{violation:?}").contains("O2"), "{violation:?}");
    let search = singles(&unreachable);
    assert_eq!((search.runs, search.findings.len()), (1, 1), "nothing is searched beside a reference run that fails");
}
