//! Completeness of a deployment, and its progress deadline.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::fixtures::{deployment, now, progressing};
use crate::deployment::status::{is_complete, recheck_at};

#[test]
fn a_deployment_is_complete_when_every_count_is_its_size_and_the_status_is_of_its_generation() {
    let complete = |replicas: i32, [all, updated, available]: [i32; 3], generation: i64| {
        let status = json!({
            "observedGeneration": 2,
            "replicas": all,
            "updatedReplicas": updated,
            "availableReplicas": available,
        });
        let owner = deployment("web").replicas(replicas).generation(generation).status(status).build();
        is_complete(&owner, &owner.status)
    };
    for (name, replicas, counts, generation, expected) in [
        ("all of them", 5, [5, 5, 5], 2, true),
        ("one is not available", 5, [5, 5, 4], 2, false),
        ("fewer are available than must be", 5, [5, 5, 3], 2, false),
        ("one is not updated, and all are available", 5, [5, 4, 5], 2, false),
        ("an old one is left", 1, [2, 1, 1], 2, false),
        ("one is missing", 5, [4, 5, 5], 2, false),
        ("the only one is not available", 1, [1, 1, 0], 2, false),
        ("more are available than spec.replicas", 5, [5, 5, 6], 2, false),
        ("none of none", 0, [0, 0, 0], 2, true),
        ("the status is of an earlier generation", 5, [5, 5, 5], 3, false),
        ("the status is of a later generation", 5, [5, 5, 5], 1, true),
    ] {
        assert_eq!(complete(replicas, counts, generation), expected, "{name}");
    }
}

#[test]
fn a_rollout_is_requeued_a_second_after_its_deadline() {
    let web = |reason: &str, age| {
        deployment("web").replicas(4).status(json!({ "conditions": [progressing("True", reason, age)] }))
    };
    for (name, owner, expected) in [
        ("begun just now", web("NewReplicaSetCreated", 0), Some(601)),
        ("in progress", web("ReplicaSetUpdated", 400), Some(201)),
        ("at its deadline", web("ReplicaSetUpdated", 600), Some(1)),
        ("past its deadline", web("ReplicaSetUpdated", 900), Some(1)),
        ("has ended", web("NewReplicaSetAvailable", 400), None),
        ("has failed", web("ProgressDeadlineExceeded", 400), None),
        ("the largest deadline, which is none", web("ReplicaSetUpdated", 400).no_deadline(), None),
        (
            "no deadline, not even by default",
            web("ReplicaSetUpdated", 4).with("/spec", "progressDeadlineSeconds", Value::Null),
            None,
        ),
        ("no condition", deployment("web"), None),
    ] {
        let owner = owner.build();
        let expected = expected.map(|seconds| now() + SignedDuration::from_secs(seconds));
        assert_eq!(recheck_at(&owner, &owner.status, now()), expected, "{name}");
    }
}
