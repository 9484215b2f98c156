//! ReplicaSets in the simulation.

use kcm_simulation::{Plant, Planted, Scenario, Schedule, check, check_planted, replay_folder, run, singles};
use kcm_testing::sandbox::{PODS, REPLICA_SETS, Sandbox};
use serde_json::{Value, json};

use super::invariants::RULES;
use crate::replicaset::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, key};
use crate::tests::scenarios::{
    active_pods, annotate, delete_a_pod, get, has_status, merge, one_worker, scenario, template, web,
};

fn set(replicas: u32) -> Value {
    web(json!({
        "replicas": replicas,
        "selector": { "matchLabels": { "app": "web" } },
        "template": template(1),
    }))
}

/// Two replicas, which become three. All are ready at the end, and the status agrees.
fn scaled_up() -> Scenario {
    scenario("replicaset scaled up", [DESCRIPTOR], &[RULES])
        .object(&REPLICA_SETS, set(2))
        .then(|sandbox| has_ready(sandbox, 2), merge(&REPLICA_SETS, json!({ "spec": { "replicas": 3 } })))
        .goal(|sandbox| has_ready(sandbox, 3) && active_pods(sandbox).len() == 3)
}

/// A set that adopts a pod and loses it, while the user annotates, deletes and recreates objects.
fn disturbed() -> Scenario {
    let mut orphan = template(1);
    orphan["metadata"]["namespace"] = NAMESPACE.into();
    orphan["metadata"]["name"] = "orphan".into();
    scenario("replicaset disturbed", [DESCRIPTOR], &[RULES])
        .other_settings(&one_worker([DESCRIPTOR], ["replicaset"]))
        .object(&PODS, orphan)
        .object(&REPLICA_SETS, set(2))
        .then(|sandbox| has_ready(sandbox, 2), |sandbox| drop(sandbox.delete(&PODS, &key("orphan"))))
        .act("annotate", annotate(&REPLICA_SETS))
        .act("delete-pod", delete_a_pod)
        .act("recreate", |sandbox| {
            let replicas = get(sandbox, &REPLICA_SETS)["spec"]["replicas"].as_u64().unwrap_or(1);
            drop(sandbox.delete_now(&REPLICA_SETS, &key("web")));
            drop(sandbox.create(&REPLICA_SETS, set(u32::try_from(replicas).unwrap_or(1))));
        })
        .act("relabel-pod", |sandbox| {
            if let Some(name) = active_pods(sandbox).first().and_then(|pod| pod["metadata"]["name"].as_str()) {
                drop(sandbox.patch(&PODS, &key(name), &json!({ "metadata": { "labels": { "app": "other" } } })));
            }
        })
        .goal(|sandbox| has_ready(sandbox, 2) && owned(sandbox) == 2)
}

/// Number of pods of the set that are not terminating.
fn owned(sandbox: &Sandbox) -> usize {
    let own = get(sandbox, &REPLICA_SETS)["metadata"]["uid"].clone();
    let is_owned = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == own;
    active_pods(sandbox).iter().filter(is_owned).count()
}

fn has_ready(sandbox: &Sandbox, count: i64) -> bool {
    has_status(sandbox, &REPLICA_SETS, "readyReplicas", count)
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
fn no_perturbation_of_a_scale_up_breaks_a_rule() {
    check(&scaled_up(), 40);
}

#[test]
fn no_perturbation_of_a_disturbed_set_breaks_a_rule() {
    check(&disturbed(), 40);
}

#[test]
fn a_goal_that_is_never_reached_breaks_the_first_rule() {
    let unreachable = scaled_up().goal(|sandbox| has_ready(sandbox, 4));
    let violation = run(&unreachable, &Schedule::default()).violation.expect("the goal is out of reach");
    assert!(format!("{violation:?}").contains("O2"), "{violation:?}");
    let search = singles(&unreachable);
    assert_eq!((search.runs, search.findings.len()), (1, 1), "nothing is searched beside a reference run that fails");
}

#[test]
fn a_kept_schedule_must_apply_and_show_its_bug() {
    let folder = std::env::temp_dir().join(format!("kept-schedules-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let replay = |planted: &str, line: &str| {
        let text = format!("# scenario replicaset scaled up\n# rule O2\n{planted}\n{line}\n");
        std::fs::write(folder.join("one.schedule"), text).unwrap();
        replay_folder(&folder, &scaled_up()).err().unwrap_or_default()
    };
    let conflict = "replicaset shop/web write 10: fail before 409";
    assert_eq!(replay("# planted ConflictIsSuccess", conflict), "");
    assert_eq!(replay("", conflict), "");
    let other = replay("# planted ExistingIsCreated", conflict);
    assert!(other.contains("no rule is broken"), "{other}");
    let late = replay("", "replicaset shop/web write 99: kill after");
    assert!(late.contains("does not apply"), "{late}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn faults_of_pods_and_restarts_with_other_settings_take_effect() {
    for (line, phase) in [
        ("kubelet 2: pod fails", "Failed"),
        ("kubelet 2: pod evicted", "Failed"),
        ("kubelet 1: pod unready", "Running"),
        ("kubelet 2: hold until 60000ms", "Running"),
        ("replicaset shop/web write 2: kill after, other settings", "Running"),
    ] {
        let ran = run(&disturbed(), &line.parse().unwrap());
        assert!(ran.violation.is_none() && ran.not_applied.is_empty(), "{line}: {:?}\n{}", ran.violation, ran.trace);
        let has_phase = ran.history.end()[&PODS].values().any(|pod| pod["status"]["phase"] == phase);
        assert!(has_phase, "{line}\n{}", ran.trace);
    }
}

#[test]
fn planted_bugs_are_found_in_scaled_up() {
    check_planted(
        scaled_up,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "D1.2",
                run: 297,
                schedule: "replicaset shop/web write 6: kill in flight until rest",
            },
            Planted {
                plant: Plant::ConflictIsSuccess,
                rule: "O2",
                run: 151,
                schedule: "replicaset shop/web write 10: fail before 409",
            },
            Planted {
                plant: Plant::FailureIsSuccess,
                rule: "O2",
                run: 148,
                schedule: "replicaset shop/web write 10: fail before 500",
            },
            Planted { plant: Plant::OwnWritesAreForgotten, rule: "D2.1", run: 1, schedule: "" },
        ],
    );
}

#[test]
fn planted_bugs_are_found_in_disturbed() {
    check_planted(
        disturbed,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "D1.11",
                run: 26,
                schedule: "replicaset shop/web read 1: act annotate",
            },
            Planted { plant: Plant::OwnWritesAreForgotten, rule: "D2.1", run: 1, schedule: "" },
            Planted {
                plant: Plant::LiveReadsAreCached,
                rule: "D1.4",
                run: 27,
                schedule: "replicaset shop/web read 1: act recreate",
            },
        ],
    );
}
