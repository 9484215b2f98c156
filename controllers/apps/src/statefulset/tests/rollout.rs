//! Which pods a rollout replaces.

use std::sync::Arc;

use kcm_framework::api::views::StatefulSet;
use serde_json::{Value, json};

use super::fixtures::{Claims, GATES, Is, planned, pod, pod_with, revisions, set, volumes};
use crate::statefulset::gates::Gates;
use crate::statefulset::rollout::{max_unavailable, plan_rollout};
use crate::statefulset::steps::{Deletion, Input, Plan, Replicas, Step, Wait};
use crate::tests::cluster::now;

/// The ordinals that a rollout deletes.
fn replaced(strategy: &Value, pods: &[Is], gates: Gates) -> (Vec<String>, Option<Wait>) {
    let set = set(json!({ "spec": {
        "replicas": pods.len(), "podManagementPolicy": "Parallel", "minReadySeconds": 3, "updateStrategy": strategy,
    } }));
    let pods: Vec<_> = (0..).zip(pods).map(|(ordinal, is)| pod(ordinal, *is)).collect();
    let plan = planned(&set, &pods, &Claims::default(), gates);
    let steps = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten());
    let deleted = steps.filter_map(|step| match step {
        Step::Delete { pod, reason: Deletion::Outdated } => Some(pod.metadata.key.name().to_owned()),
        Step::Create { .. }
        | Step::CreateClaims { .. }
        | Step::Update { .. }
        | Step::UpdateClaims { .. }
        | Step::Delete { .. } => None,
    });
    (deleted.collect(), plan.wait)
}

#[test]
fn one_pod_at_a_time_is_replaced_from_the_highest_ordinal_down_to_the_partition() {
    use Is::{Old, OldUnready, Older, Ready, Terminating, Unready, Young};
    let rolling = |partition: i32| json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": partition } });
    for (name, strategy, pods, expected) in [
        ("all old", rolling(0), vec![Old, Old, Old], Some("web-2")),
        ("one is new", rolling(0), vec![Old, Old, Ready], Some("web-1")),
        ("of a revision before both", rolling(0), vec![Ready, Older, Ready], Some("web-1")),
        ("all new", rolling(0), vec![Ready, Ready, Ready], None),
        ("at the partition", rolling(2), vec![Old, Old, Old], Some("web-2")),
        ("down to the partition", rolling(2), vec![Old, Old, Ready], None),
        ("a partition beyond all", rolling(9), vec![Old, Old, Old], None),
        ("the new one is not ready", rolling(0), vec![Old, Old, Unready], None),
        ("the new one is too young", rolling(0), vec![Old, Old, Young], None),
        ("a new one above the partition is too young", rolling(1), vec![Old, Old, Young], None),
        ("a new one above the partition is old enough", rolling(1), vec![Old, Old, Ready], Some("web-1")),
        ("the new one ends", rolling(0), vec![Old, Old, Terminating], None),
        ("an old one that is not ready is replaced", rolling(0), vec![Old, Old, OldUnready], Some("web-2")),
        ("a lower one that is not ready is no obstacle", rolling(0), vec![OldUnready, Old, Ready], Some("web-1")),
        ("on delete", json!({ "type": "OnDelete" }), vec![Old, Old, Old], None),
    ] {
        let (deleted, _) = replaced(&strategy, &pods, GATES);
        assert_eq!(deleted.first().map(String::as_str), expected, "{name}");
        assert!(deleted.len() < 2, "{name}");
    }
}

#[test]
fn in_order_a_rollout_with_a_broken_image_waits_for_a_person() {
    let set = set(json!({ "spec": { "replicas": 2 } }));
    // The template was repaired, and the pod of the broken revision cannot become ready.
    let pods = [pod(0, Is::Ready), pod(1, Is::OldUnready)];
    let plan = planned(&set, &pods, &Claims::default(), GATES);
    assert!(plan.phases.is_empty());
    assert_eq!(plan.wait, Some(Wait::NotReady { pod: "web-1".to_owned() }));
}

#[test]
fn max_unavailable_pods_are_replaced_at_once_with_the_gate() {
    use Is::{Old, Ready, Unready};
    let on = Gates { max_unavailable: true, ..GATES };
    let rolling = |partition: i32, limit: Value| json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": partition, "maxUnavailable": limit } });
    for (name, strategy, pods, expected) in [
        ("two", rolling(0, json!(2)), vec![Old; 4], vec!["web-3", "web-2"]),
        ("half", rolling(0, json!("50%")), vec![Old; 4], vec!["web-3", "web-2"]),
        ("at least one", rolling(0, json!("1%")), vec![Old; 4], vec!["web-3"]),
        ("one is unavailable already", rolling(0, json!(2)), vec![Old, Old, Old, Unready], vec!["web-2"]),
        ("as many as may be are", rolling(0, json!(2)), vec![Old, Old, Unready, Unready], vec![]),
        ("more than may be are", rolling(0, json!(2)), vec![Old, Unready, Unready, Unready], vec![]),
        ("one below the partition counts", rolling(2, json!(1)), vec![Unready, Old, Old, Old], vec![]),
        ("down to the partition", rolling(3, json!(9)), vec![Old; 4], vec!["web-3"]),
        ("all new", rolling(0, json!(2)), vec![Ready; 4], vec![]),
    ] {
        assert_eq!(replaced(&strategy, &pods, on).0, expected, "{name}");
    }
    let (deleted, _) = replaced(&rolling(0, json!(3)), &[Old; 4], GATES);
    assert_eq!(deleted, ["web-3"], "without the gate the field is ignored");
}

/// The rollout alone, without the phases before it.
fn rollout_of(policy: &str, partition: i32, limit: &Value, pods: &[Is]) -> (Arc<StatefulSet>, Plan) {
    let set = set(json!({ "spec": {
        "replicas": pods.len(),
        "podManagementPolicy": policy,
        "minReadySeconds": 30,
        "updateStrategy": { "rollingUpdate": { "partition": partition, "maxUnavailable": limit } },
    } }));
    let replicas: Replicas = (0..).zip(pods).map(|(ordinal, is)| (ordinal, Some(pod(ordinal, *is)))).collect();
    let mut plan = Plan { phases: Vec::new(), counted: Vec::new(), recreation: None, wait: None, unavailable: None };
    let (claims, gates) = (Claims::default(), Gates { max_unavailable: true, ..GATES });
    let input =
        Input { set: &set, pods: &[], revisions: &revisions(), claims: &claims, volumes: volumes(), gates, now: now() };
    plan_rollout(input, &replicas, &mut plan);
    (set, plan)
}

/// The ordinals that the rollout deletes, and what it waits for.
fn rolled(policy: &str, partition: i32, limit: i32, pods: &[Is]) -> (Vec<i64>, Option<Wait>) {
    let (_, plan) = rollout_of(policy, partition, &json!(limit), pods);
    let steps = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten());
    let deleted = steps.map(|step| {
        let Step::Delete { pod, reason: Deletion::Outdated } = step else { panic!("{step:?}") };
        pod.metadata.key.name().trim_start_matches("web-").parse().expect("it has an ordinal")
    });
    (deleted.collect(), plan.wait)
}

#[test]
fn broken_pods_of_an_old_revision_cost_a_parallel_rollout_nothing_and_go_first() {
    use Is::{Old, OldTerminating, OldUnready, OldYoung, Ready, Unready};
    let parallel = "Parallel";
    let ordered = "OrderedReady";
    for (name, policy, partition, limit, pods, expected) in [
        ("the only pod", parallel, 0, 1, vec![OldUnready], vec![0]),
        ("the highest of three", parallel, 0, 1, vec![Old, Old, OldUnready], vec![2]),
        ("two of five", parallel, 0, 2, vec![Old, Old, Old, OldUnready, OldUnready], vec![4, 3]),
        ("more than may be unavailable", parallel, 0, 1, vec![OldUnready; 4], vec![3, 2, 1, 0]),
        ("in order, the only pod", ordered, 0, 1, vec![OldUnready], vec![]),
        ("in order, the highest of three", ordered, 0, 1, vec![Old, Old, OldUnready], vec![]),
        ("in order, two may be unavailable", ordered, 0, 2, vec![Old, Old, Old, Old, OldUnready], vec![4]),
        ("one terminates and uses the budget", parallel, 0, 1, vec![Old, Old, OldTerminating], vec![]),
        ("in order, one terminates", ordered, 0, 1, vec![Old, Old, OldTerminating], vec![]),
        (
            "one terminates and the next is broken",
            parallel,
            0,
            3,
            vec![Old, Old, Old, OldUnready, OldTerminating],
            vec![3, 2],
        ),
        (
            "one is broken and the next terminates",
            parallel,
            0,
            3,
            vec![Old, Old, Old, OldTerminating, OldUnready],
            vec![4, 2],
        ),
        ("in order, one of each", ordered, 0, 3, vec![Old, Old, Old, OldUnready, OldTerminating], vec![3]),
        ("in order, the other of each", ordered, 0, 3, vec![Old, Old, Old, OldTerminating, OldUnready], vec![4]),
        ("ready, and too young", parallel, 0, 1, vec![Old, Old, OldYoung], vec![2]),
        ("in order, ready and too young", ordered, 0, 1, vec![Old, Old, OldYoung], vec![]),
        ("above the partition", parallel, 2, 1, vec![Old, Old, Old, Old, OldUnready], vec![4]),
        ("at the partition", parallel, 2, 1, vec![Old, Old, OldUnready, Old, Old], vec![2]),
        ("below the partition", parallel, 2, 1, vec![Old, OldUnready, Old, Old, Old], vec![]),
        ("in order, above the partition", ordered, 2, 1, vec![Old, Old, Old, Old, OldUnready], vec![]),
        ("both above the partition", parallel, 3, 2, vec![Old, Old, Old, OldUnready, OldUnready], vec![4, 3]),
        ("one below and one above", parallel, 3, 2, vec![Old, OldUnready, Old, Old, OldUnready], vec![4]),
        ("the lowest, within the budget", parallel, 0, 2, vec![OldUnready, OldUnready, Old, Old], vec![1, 0]),
        ("the lowest, and one more", parallel, 0, 3, vec![OldUnready, OldUnready, Old, Old, Old], vec![1, 0, 4]),
        ("new ones that are broken use the budget", parallel, 0, 2, vec![OldUnready, Old, Unready, Unready], vec![0]),
        ("all are new", parallel, 0, 2, vec![Ready, Ready, Unready, Unready], vec![]),
    ] {
        let (deleted, wait) = rolled(policy, partition, limit, &pods);
        assert_eq!(deleted, expected, "{name}");
        let first = expected.first().map(|ordinal| Wait::Deleted { pod: format!("web-{ordinal}") });
        let is_rolled = name == "all are new";
        let blocked = || pods.iter().filter(|is| !matches!(is, Old | Ready)).count();
        let expected = first.or_else(|| (!is_rolled).then(|| Wait::Unavailable { pods: blocked() }));
        assert_eq!(wait, expected, "{name}: what it waits for");
    }
}

#[test]
fn a_finished_pod_of_an_old_revision_is_deleted_once() {
    let failed =
        pod_with(1, Is::Failed, json!({ "metadata": { "labels": { "controller-revision-hash": "web-old" } } }));
    let set = set(json!({ "spec": {
        "replicas": 2,
        "podManagementPolicy": "Parallel",
        "updateStrategy": { "rollingUpdate": { "maxUnavailable": 2 } },
    } }));
    for max_unavailable in [true, false] {
        let plan =
            planned(&set, &[pod(0, Is::Ready), failed.clone()], &Claims::default(), Gates { max_unavailable, ..GATES });
        let steps: Vec<_> = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten()).collect();
        assert!(matches!(steps[..], [Step::Delete { reason: Deletion::Finished, .. }]), "{max_unavailable}: {steps:?}");
    }
}

#[test]
fn as_many_pods_may_be_unavailable_as_the_strategy_says() {
    for (limit, replicas, expected) in [
        (json!(null), 10, 1),
        (json!(3), 10, 3),
        (json!(0), 10, 1),
        (json!(-1), 10, 1),
        (json!("25%"), 10, 2),
        (json!("9%"), 10, 1),
        (json!("x"), 10, 1),
    ] {
        let set = set(json!({ "spec": {
            "replicas": replicas, "updateStrategy": { "rollingUpdate": { "maxUnavailable": limit } },
        } }));
        assert_eq!(max_unavailable(&set.update_strategy, set.replicas), expected, "{limit}");
    }
}

#[test]
fn the_unavailable_pods_of_the_range_are_known_with_the_gate() {
    let on = Gates { max_unavailable: true, ..GATES };
    let set = set(json!({ "spec": { "podManagementPolicy": "Parallel" } }));
    let pods = [pod(0, Is::Ready), pod(1, Is::Unready)];
    assert_eq!(planned(&set, &pods, &Claims::default(), on).unavailable, Some(2), "one is missing");
    assert_eq!(planned(&set, &pods, &Claims::default(), GATES).unavailable, None);
}

#[test]
fn metrics_have_the_numbers_of_the_rollout() {
    use Is::{OldTerminating, OldUnready};
    let [ordered, parallel] = ["OrderedReady", "Parallel"];
    for (name, policy, total, limit, unavailable, allowed) in [
        ("in order, within the limit", ordered, 5, json!(2), 1, 2),
        ("in parallel, more than the limit", parallel, 10, json!("20%"), 3, 2),
        ("in order, at the limit", ordered, 6, json!(3), 3, 3),
        ("in parallel, all are available", parallel, 4, json!(1), 0, 1),
        ("in order, a percentage", ordered, 8, json!("25%"), 1, 2),
        ("in parallel, a large percentage", parallel, 5, json!("80%"), 4, 4),
        ("two pods", ordered, 2, json!(1), 1, 1),
        ("one pod", parallel, 1, json!(1), 1, 1),
        ("in order, without a limit", ordered, 5, Value::Null, 2, 1),
        ("in parallel, without a limit", parallel, 6, Value::Null, 0, 1),
    ] {
        let broken = if policy == ordered { OldUnready } else { OldTerminating };
        let pods: Vec<_> = (0..total).map(|at| if at < unavailable { broken } else { Is::Old }).collect();
        let (set, plan) = rollout_of(policy, 0, &limit, &pods);
        assert_eq!(plan.unavailable, Some(unavailable), "{name}");
        assert_eq!(max_unavailable(&set.update_strategy, set.replicas), allowed, "{name}");
    }
}
