//! Jobs in the simulation.

use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::Job;
use kcm_simulation::{Plant, Planted, Scenario, check, check_planted};
use kcm_testing::sandbox::PODS;
use serde_json::{Value, json};

use super::invariants::RULES;
use crate::job::DESCRIPTOR;
use crate::tests::cluster::{NAMESPACE, key};
use crate::tests::scenarios::{active_pods, annotate, delete_a_pod, get, one_worker, scenario, web};

fn job(mode: &str) -> Value {
    web(json!({
        "parallelism": 2,
        "completions": 3,
        "completionMode": mode,
        "template": {
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "example/main:1" }] },
        },
    }))
}

/// A job of three completions, two at a time.
fn counted() -> Scenario {
    of("job counted", "NonIndexed")
}

/// A job of three indexes, two at a time.
fn indexed() -> Scenario {
    of("job indexed", "Indexed")
}

fn of(name: &str, mode: &str) -> Scenario {
    scenario(name, [DESCRIPTOR], &[RULES])
        .other_settings(&one_worker([DESCRIPTOR], ["job"]))
        .object(&Job::RESOURCE, job(mode))
        .act("annotate", annotate(&Job::RESOURCE))
        .act("fail-pod", |sandbox| {
            if let Some(name) = active_pods(sandbox).first().and_then(|pod| pod["metadata"]["name"].as_str()) {
                drop(sandbox.set_pod_phase(&key(name), "Failed"));
            }
        })
        .act("delete-pod", delete_a_pod)
        .goal(|sandbox| {
            let job = get(sandbox, &Job::RESOURCE);
            let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is_free = |pod: &Value| pod["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
            conditions.iter().any(|one| one["type"] == "Complete" && one["status"] == "True")
                && sandbox.list(&PODS, Some(NAMESPACE)).iter().all(is_free)
        })
}

#[test]
fn no_perturbation_of_a_job_breaks_a_rule() {
    check(&counted(), 20);
}

#[test]
fn no_perturbation_of_an_indexed_job_breaks_a_rule() {
    check(&indexed(), 20);
}

#[test]
fn planted_bugs_are_found_in_counted() {
    check_planted(
        counted,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "D1.11",
                run: 32,
                schedule: "job shop/web write 11: act annotate",
            },
            Planted {
                plant: Plant::ConflictIsSuccess,
                rule: "D6.2",
                run: 129,
                schedule: "job shop/web write 9: act annotate",
            },
            Planted {
                plant: Plant::FailureIsSuccess,
                rule: "D6.2",
                run: 140,
                schedule: "job shop/web write 9: fail before 500",
            },
            Planted {
                plant: Plant::OwnWritesAreForgotten,
                rule: "D6.5",
                run: 24,
                schedule: "job shop/web write 1: hold response until rest",
            },
        ],
    );
}

#[test]
fn planted_bugs_are_found_in_indexed() {
    check_planted(
        indexed,
        &[
            Planted {
                plant: Plant::StatusWithoutVersion,
                rule: "D1.11",
                run: 33,
                schedule: "job shop/web write 10: act annotate",
            },
            Planted {
                plant: Plant::ConflictIsSuccess,
                rule: "D6.2",
                run: 135,
                schedule: "job shop/web write 8: act annotate",
            },
            Planted {
                plant: Plant::FailureIsSuccess,
                rule: "D6.2",
                run: 146,
                schedule: "job shop/web write 8: fail before 500",
            },
            Planted {
                plant: Plant::OwnWritesAreForgotten,
                rule: "D6.4",
                run: 27,
                schedule: "job shop/web write 1: hold response until rest",
            },
        ],
    );
}
