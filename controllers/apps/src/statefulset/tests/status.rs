//! The counts of the status, the end of a rollout, and when to look again.

use jiff::SignedDuration;
use kcm_framework::api::views::StatefulSetStatus;
use serde_json::{Value, json};

use super::fixtures::{Claims, GATES, Is, planned, pod, revisions, set};
use crate::statefulset::status::{after_rollout, is_outdated, recheck_at, status, with_status};
use crate::tests::cluster::now;

#[test]
fn pods_are_counted_by_phase_readiness_and_revision() {
    let set = set(json!({ "metadata": { "generation": 7 }, "spec": { "minReadySeconds": 3 } }));
    let kinds = [
        Is::Ready,
        Is::Old,
        Is::Older,
        Is::Unready,
        Is::OldUnready,
        Is::Young,
        Is::Pending,
        Is::Failed,
        Is::Terminating,
    ];
    let pods: Vec<_> = (0..).zip(kinds).map(|(ordinal, is)| pod(ordinal, is)).collect();
    let status = status(&set, &revisions(), &pods, now());
    assert_eq!((status.observed_generation, status.collision_count), (7, Some(0)));
    assert_eq!((status.current_revision.as_str(), status.update_revision.as_str()), ("web-old", "web-new"));
    assert_eq!(status.replicas, 9);
    assert_eq!(status.ready_replicas, 5, "ready, old, older, young, terminating");
    assert_eq!(status.available_replicas, 4, "all of them but the young one");
    assert_eq!(status.current_replicas, 2, "old, old that is not ready");
    assert_eq!(status.updated_replicas, 5, "ready, not ready, young, pending, failed; and not the terminating one");
}

fn complete(changes: &Value) -> StatefulSetStatus {
    let set = set(changes.clone());
    let pods = [pod(0, Is::Ready), pod(1, Is::Ready), pod(2, Is::Ready)];
    after_rollout(&set, status(&set, &revisions(), &pods, now()), 0)
}

#[test]
fn a_rollout_is_complete_when_all_pods_are_updated_and_ready() {
    for (name, changes, current, count) in [
        ("rolling", json!({}), "web-new", 3),
        ("on delete", json!({ "spec": { "updateStrategy": { "type": "OnDelete" } } }), "web-new", 3),
        ("scaled up", json!({ "spec": { "replicas": 4 } }), "web-old", 0),
        ("scaled down", json!({ "spec": { "replicas": 2 } }), "web-old", 0),
    ] {
        let status = complete(&changes);
        assert_eq!((status.current_revision.as_str(), status.current_replicas), (current, count), "{name}");
        assert_eq!(status.update_revision.as_str(), "web-new");
    }
    let set = set(json!({}));
    let pods = [pod(0, Is::Ready), pod(1, Is::Ready), pod(2, Is::Unready)];
    let status = after_rollout(&set, status(&set, &revisions(), &pods, now()), 0);
    assert_eq!(status.current_revision.as_str(), "web-old", "one is not ready");
}

#[test]
fn deleted_pods_of_the_current_revision_are_not_counted_any_more() {
    let set = set(json!({}));
    let counted = status(&set, &revisions(), &[pod(0, Is::Old), pod(1, Is::Old)], now());
    assert_eq!(after_rollout(&set, counted.clone(), 1).current_replicas, 1);
    assert_eq!(after_rollout(&set, counted, 9).current_replicas, 0);
}

#[test]
fn a_status_is_written_if_it_differs_but_for_its_collision_count() {
    let present = complete(&json!({}));
    let change = |change: &dyn Fn(&mut StatefulSetStatus)| {
        let mut changed = present.clone();
        change(&mut changed);
        is_outdated(&present, &changed)
    };
    assert!(!is_outdated(&present, &present));
    assert!(!change(&|status| status.collision_count = Some(3)), "as upstream");
    assert!(change(&|status| status.observed_generation += 1));
    assert!(!change(&|status| status.observed_generation -= 1));
    assert!(change(&|status| status.replicas += 1));
    assert!(change(&|status| status.ready_replicas += 1));
    assert!(change(&|status| status.available_replicas += 1));
    assert!(change(&|status| status.current_replicas += 1));
    assert!(change(&|status| status.updated_replicas += 1));
    assert!(change(&|status| status.current_revision = "x".into()));
    assert!(change(&|status| status.update_revision = "x".into()));
}

#[test]
fn the_status_that_is_put_keeps_what_it_does_not_know() {
    let condition = json!({ "type": "Mine", "status": "True", "unknown": 1 });
    let set = set(json!({ "status": { "conditions": [condition], "unknown": 2, "collisionCount": 4 } }));
    let status = status(&set, &revisions(), &[pod(0, Is::Old)], now());
    let document: Value = serde_json::from_str(with_status(&set, &status).unwrap().as_str()).unwrap();
    let expected = json!({
        "replicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 1,
        "updatedReplicas": 0,
        "currentRevision": "web-old",
        "updateRevision": "web-new",
        "observedGeneration": 1,
        "collisionCount": 0,
        "conditions": [condition],
        "unknown": 2,
    });
    assert_eq!(document["status"], expected);
}

#[test]
fn looks_again_when_the_next_pod_becomes_available() {
    let seconds = |seconds: i64| now() + SignedDuration::from_secs(seconds);
    for (name, min_ready, pods, expected) in [
        ("none waits", 3, vec![Is::Ready], None),
        ("no period", 0, vec![Is::Young], None),
        ("one is two seconds old", 10, vec![Is::Ready, Is::Young], Some(seconds(8))),
        ("one is not ready", 10, vec![Is::Unready], None),
    ] {
        let set = set(json!({ "spec": { "minReadySeconds": min_ready } }));
        let pods: Vec<_> = (0..).zip(pods).map(|(ordinal, is)| pod(ordinal, is)).collect();
        assert_eq!(recheck_at(&set, &pods, now()), expected, "{name}");
    }
}

/// Upstream's case is `TestStatefulSetOnDeleteStrategyIgnoresMinReadySeconds`.
#[test]
fn an_on_delete_rollout_is_complete_whatever_min_ready_seconds_say() {
    let set = set(json!({ "spec": {
        "replicas": 2, "minReadySeconds": 30, "updateStrategy": { "type": "OnDelete", "rollingUpdate": null },
    } }));
    let pods = [pod(0, Is::Young), pod(1, Is::Young)];
    let plan = planned(&set, &pods, &Claims::default(), GATES);
    assert!(plan.phases.is_empty(), "no pod is replaced");
    let status = after_rollout(&set, status(&set, &revisions(), &pods, now()), 0);
    assert_eq!((status.ready_replicas, status.available_replicas, status.updated_replicas), (2, 0, 2));
    assert_eq!(status.current_revision, status.update_revision);
}
