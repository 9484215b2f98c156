//! Which pods are created, updated and deleted.

use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use super::fixtures::{
    Claims, GATES, Is, claim, claim_with, merge, planned, pod, pod_with, revisions, set, volumes, with_claims,
};
use crate::statefulset::observe::ClaimLister;
use crate::statefulset::plan::plan;
use crate::statefulset::steps::{Deletion, Input, Plan, Step, Wait, Which};
use crate::tests::cluster::now;

/// The steps of a plan in short: `+0` a creation, `+0old` of the current revision, `-0` a deletion, `~0` a repair.
fn steps(plan: &Plan) -> String {
    let steps = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten());
    let words: Vec<String> = steps
        .map(|step| match step {
            Step::Create { ordinal, revision: Which::Update, .. } => format!("+{ordinal}"),
            Step::Create { ordinal, revision: Which::Current, .. } => format!("+{ordinal}old"),
            Step::CreateClaims { ordinal, .. } => format!("claims{ordinal}"),
            Step::Update { ordinal, .. } => format!("~{ordinal}"),
            Step::UpdateClaims { ordinal, .. } => format!("~claims{ordinal}"),
            Step::Delete { pod, reason } => {
                let reason = match reason {
                    Deletion::Finished => "finished",
                    Deletion::Surplus => "surplus",
                    Deletion::Outdated => "outdated",
                };
                format!("-{}{reason}", pod.metadata.key.name().trim_start_matches("web-"))
            }
        })
        .collect();
    words.join(" ")
}

struct Case {
    name: &'static str,
    set: Value,
    pods: Vec<Arc<Pod>>,
    ordered: &'static str,
    parallel: &'static str,
}

fn pods(pods: &[(i64, Is)]) -> Vec<Arc<Pod>> {
    pods.iter().map(|(ordinal, is)| pod(*ordinal, *is)).collect()
}

fn check(case: &Case) {
    for (policy, expected) in [("OrderedReady", case.ordered), ("Parallel", case.parallel)] {
        let mut changes = case.set.clone();
        merge(&mut changes, json!({ "spec": { "podManagementPolicy": policy } }));
        let plan = planned(&set(changes.clone()), &case.pods, &Claims::default(), GATES);
        assert_eq!(steps(&plan), expected, "{}, {policy}", case.name);
        let reversed: Vec<_> = case.pods.iter().rev().cloned().collect();
        assert_eq!(planned(&set(changes), &reversed, &Claims::default(), GATES), plan, "{}: in any order", case.name);
    }
}

#[test]
fn pods_are_created_in_order_or_all_at_once() {
    use Is::{Failed, FailedTerminating, Pending, Ready, Succeeded, Terminating, Unready, Young};
    let plain = || json!({});
    for case in [
        Case { name: "none", set: plain(), pods: pods(&[]), ordered: "+0", parallel: "+0 +1 +2" },
        Case { name: "one ready", set: plain(), pods: pods(&[(0, Ready)]), ordered: "+1", parallel: "+1 +2" },
        Case { name: "one pending", set: plain(), pods: pods(&[(0, Pending)]), ordered: "", parallel: "+1 +2" },
        Case { name: "one not ready", set: plain(), pods: pods(&[(0, Unready)]), ordered: "", parallel: "+1 +2" },
        Case { name: "one terminating", set: plain(), pods: pods(&[(0, Terminating)]), ordered: "", parallel: "+1 +2" },
        Case { name: "a gap", set: plain(), pods: pods(&[(0, Ready), (2, Ready)]), ordered: "+1", parallel: "+1" },
        Case {
            name: "a failed pod",
            set: plain(),
            pods: pods(&[(0, Ready), (1, Failed)]),
            ordered: "-1finished",
            parallel: "-1finished +2",
        },
        Case {
            name: "a succeeded pod",
            set: plain(),
            pods: pods(&[(0, Succeeded)]),
            ordered: "-0finished",
            parallel: "-0finished +1 +2",
        },
        Case {
            name: "a failed pod that ends",
            set: plain(),
            pods: pods(&[(0, FailedTerminating)]),
            ordered: "",
            parallel: "+1 +2",
        },
        Case {
            name: "complete",
            set: plain(),
            pods: pods(&[(0, Ready), (1, Ready), (2, Ready)]),
            ordered: "",
            parallel: "",
        },
        Case {
            name: "too young",
            set: json!({ "spec": { "minReadySeconds": 3 } }),
            pods: pods(&[(0, Young)]),
            ordered: "",
            parallel: "+1 +2",
        },
        Case {
            name: "just old enough",
            set: json!({ "spec": { "minReadySeconds": 2 } }),
            pods: pods(&[(0, Young)]),
            ordered: "+1",
            parallel: "+1 +2",
        },
        Case {
            name: "a start ordinal",
            set: json!({ "spec": { "ordinals": { "start": 4 }, "replicas": 2 } }),
            pods: pods(&[(4, Ready)]),
            ordered: "+5",
            parallel: "+5",
        },
        Case {
            name: "a start ordinal that was moved",
            set: json!({ "spec": { "ordinals": { "start": 1 }, "replicas": 2 } }),
            pods: pods(&[(0, Ready), (1, Ready)]),
            ordered: "+2",
            parallel: "+2 -0surplus",
        },
        Case {
            name: "being deleted",
            set: json!({ "metadata": { "deletionTimestamp": "2026-01-02T11:00:00Z" } }),
            pods: pods(&[(0, Failed)]),
            ordered: "",
            parallel: "",
        },
        Case {
            name: "no replicas",
            set: json!({ "spec": { "replicas": 0 } }),
            pods: pods(&[]),
            ordered: "",
            parallel: "",
        },
    ] {
        check(&case);
    }
}

#[test]
fn surplus_pods_are_deleted_from_the_highest_ordinal() {
    use Is::{Failed, Ready, Terminating, Unready, Young};
    let one = || json!({ "spec": { "replicas": 1 } });
    for case in [
        Case {
            name: "two",
            set: one(),
            pods: pods(&[(0, Ready), (1, Ready), (2, Ready)]),
            ordered: "-2surplus",
            parallel: "-2surplus -1surplus",
        },
        Case {
            name: "the highest ends",
            set: one(),
            pods: pods(&[(0, Ready), (1, Ready), (2, Terminating)]),
            ordered: "",
            parallel: "-1surplus",
        },
        Case {
            name: "one that stays is not ready",
            set: one(),
            pods: pods(&[(0, Unready), (1, Ready)]),
            ordered: "",
            parallel: "-1surplus",
        },
        Case {
            name: "one that stays is missing",
            set: one(),
            pods: pods(&[(1, Ready)]),
            ordered: "+0",
            parallel: "+0 -1surplus",
        },
        Case {
            name: "the highest is the only one that is not ready",
            set: one(),
            pods: pods(&[(0, Ready), (1, Ready), (2, Unready)]),
            ordered: "-2surplus",
            parallel: "-2surplus -1surplus",
        },
        Case {
            name: "a lower one is not ready either",
            set: one(),
            pods: pods(&[(0, Ready), (1, Unready), (2, Unready)]),
            ordered: "",
            parallel: "-2surplus -1surplus",
        },
        Case {
            name: "only a lower one is not ready",
            set: one(),
            pods: pods(&[(0, Ready), (1, Unready), (2, Ready)]),
            ordered: "-2surplus",
            parallel: "-2surplus -1surplus",
        },
        Case {
            name: "a failed one",
            set: one(),
            pods: pods(&[(0, Ready), (1, Failed)]),
            ordered: "-1surplus",
            parallel: "-1surplus",
        },
        Case {
            name: "too young, and so is a lower one",
            set: json!({ "spec": { "replicas": 1, "minReadySeconds": 60 } }),
            pods: pods(&[(0, Ready), (1, Young), (2, Young)]),
            ordered: "",
            parallel: "-2surplus -1surplus",
        },
        Case {
            name: "all",
            set: json!({ "spec": { "replicas": 0 } }),
            pods: pods(&[(0, Ready), (1, Ready)]),
            ordered: "-1surplus",
            parallel: "-1surplus -0surplus",
        },
    ] {
        check(&case);
    }
}

#[test]
fn a_pod_below_the_partition_is_created_from_the_current_revision() {
    let partition = |partition: Value| json!({ "spec": { "updateStrategy": { "rollingUpdate": partition } } });
    for case in [
        Case {
            name: "below",
            set: partition(json!({ "partition": 2 })),
            pods: pods(&[]),
            ordered: "+0old",
            parallel: "+0old +1old +2",
        },
        Case {
            name: "with a start ordinal",
            set: json!({ "spec": { "ordinals": { "start": 7 }, "updateStrategy": { "rollingUpdate": { "partition": 1 } } } }),
            pods: pods(&[]),
            ordered: "+7old",
            parallel: "+7old +8 +9",
        },
        Case {
            name: "without a partition the status decides",
            set: json!({ "spec": { "updateStrategy": { "rollingUpdate": null } }, "status": { "currentReplicas": 1 } }),
            pods: pods(&[]),
            ordered: "+0old",
            parallel: "+0old +1 +2",
        },
        Case {
            name: "on delete",
            set: json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } }),
            pods: pods(&[]),
            ordered: "+0",
            parallel: "+0 +1 +2",
        },
    ] {
        check(&case);
    }
}

#[test]
fn pods_without_an_ordinal_are_ignored() {
    let foreign = pod_with(1, Is::Failed, json!({ "metadata": { "name": "web-01" } }));
    let plan =
        planned(&set(json!({ "spec": { "replicas": 1 } })), &[pod(0, Is::Ready), foreign], &Claims::default(), GATES);
    assert_eq!((steps(&plan), plan.counted.len()), (String::new(), 1));
}

#[test]
fn so_many_replicas_that_nobody_has_them_are_planned_in_bursts() {
    let set = set(json!({ "spec": { "replicas": i32::MAX, "podManagementPolicy": "Parallel" } }));
    let plan = planned(&set, &[pod(1, Is::Ready), pod(2_147_483_647, Is::Ready)], &Claims::default(), GATES);
    let created = plan.phases[0].pods.iter().flatten().count();
    assert_eq!((plan.phases.len(), created), (1, 5000), "and nothing is deleted meanwhile");
}

#[test]
fn a_pod_without_its_label_is_repaired() {
    let unlabelled =
        pod_with(0, Is::Ready, json!({ "metadata": { "labels": { "statefulset.kubernetes.io/pod-name": null } } }));
    let set = set(json!({ "spec": { "replicas": 1 } }));
    let plan = planned(&set, &[unlabelled], &Claims::default(), GATES);
    let [Step::Update { labels: true, volumes, claims, .. }] = &plan.phases[0].pods[0][..] else { panic!("{plan:?}") };
    assert!(volumes.is_empty() && claims.is_empty());
}

#[test]
fn claims_are_created_before_their_pod_and_for_a_pending_pod() {
    let mut changes = with_claims("Retain", "Retain");
    merge(&mut changes, json!({ "spec": { "replicas": 1 } }));
    let set = set(changes);
    let missing = planned(&set, &[], &Claims::default(), GATES);
    let [Step::Create { claims, .. }] = &missing.phases[0].pods[0][..] else { panic!("{missing:?}") };
    assert_eq!(claims.missing, [0]);
    let there = planned(&set, &[], &Claims::of([claim("data-web-0", json!([]))]), GATES);
    let [Step::Create { claims, .. }] = &there.phases[0].pods[0][..] else { panic!("{there:?}") };
    assert!(claims.is_empty());

    assert_eq!(steps(&planned(&set, &[pod(0, Is::Pending)], &Claims::default(), GATES)), "claims0");
    // A running pod has had its claims, and gets no new ones.
    assert_eq!(steps(&planned(&set, &[pod(0, Is::Ready)], &Claims::default(), GATES)), "");
}

#[test]
fn a_claim_that_is_being_deleted_is_named_and_a_stale_one_is_waited_for() {
    let mut changes = with_claims("Retain", "Delete");
    merge(&mut changes, json!({ "spec": { "replicas": 1 } }));
    let terminating = claim_with("data-web-0", json!({ "metadata": { "deletionTimestamp": "2026-01-02T11:00:00Z" } }));
    let plan = planned(&set(changes.clone()), &[], &Claims::of([terminating]), GATES);
    let [Step::Create { claims, .. }] = &plan.phases[0].pods[0][..] else { panic!("{plan:?}") };
    assert_eq!(claims.terminating, ["data-web-0"]);

    let earlier = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "earlier", "controller": true }]);
    let stale = Claims::of([claim("data-web-0", earlier)]);
    let plan = planned(&set(changes), &[], &stale, GATES);
    assert_eq!((steps(&plan), plan.wait), (String::new(), Some(Wait::StaleClaim { pod: "web-0".to_owned() })));
    let mut retained = with_claims("Retain", "Retain");
    merge(&mut retained, json!({ "spec": { "replicas": 1 } }));
    assert_eq!(steps(&planned(&set(retained), &[], &stale, GATES)), "+0", "a policy that retains has no stale claims");
}

/// Claims of which none can be decoded.
struct Undecodable;

impl ClaimLister for Undecodable {
    fn claim(&self, _: &str, _: &str) -> Option<Arc<PersistentVolumeClaim>> {
        None
    }

    fn is_undecodable(&self, _: &str, name: &str) -> bool {
        name == "data-web-0"
    }
}

#[test]
fn a_claim_that_cannot_be_decoded_is_not_created_again() {
    let mut changes = with_claims("Retain", "Retain");
    merge(&mut changes, json!({ "spec": { "replicas": 2, "podManagementPolicy": "Parallel" } }));
    let set = set(changes);
    let input = Input {
        set: &set,
        pods: &[],
        revisions: &revisions(),
        claims: &Undecodable,
        volumes: volumes(),
        gates: GATES,
        now: now(),
    };
    let plan = plan(input);
    let steps: Vec<_> = plan.phases.iter().flat_map(|phase| phase.pods.iter().flatten()).collect();
    let [Step::Create { claims: first, .. }, Step::Create { claims: second, .. }] = steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!((&first.missing[..], &first.undecodable[..]), (&[][..], &["data-web-0".to_owned()][..]));
    assert_eq!((&second.missing[..], &second.undecodable[..]), (&[0][..], &[][..]));
}

#[test]
fn owners_of_claims_follow_the_retention_policy() {
    let mut changes = with_claims("Delete", "Delete");
    merge(&mut changes, json!({ "spec": { "replicas": 1 } }));
    let set = set(changes);
    let claims = Claims::of([claim("data-web-0", json!([])), claim("data-web-1", json!([]))]);
    let plan = planned(&set, &[pod(0, Is::Ready), pod(1, Is::Ready)], &claims, GATES);
    assert_eq!(steps(&plan), "~0 ~claims1 -1surplus", "the surplus pod owns its claim before it is deleted");
    let [Step::Update { labels: false, claims, .. }] = &plan.phases[0].pods[0][..] else { panic!("{plan:?}") };
    assert_eq!(claims.outdated.len(), 1);
}

#[test]
fn a_pod_without_the_volume_of_its_claim_is_updated() {
    let mut changes = with_claims("Retain", "Retain");
    merge(&mut changes, json!({ "spec": { "replicas": 1 } }));
    for volumes in [
        json!([]),
        json!([{ "name": "data", "emptyDir": {} }]),
        json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data-web-1" } }]),
        json!([{ "name": "other", "persistentVolumeClaim": { "claimName": "data-web-0" } }]),
    ] {
        let pod = pod_with(0, Is::Ready, json!({ "spec": { "volumes": volumes } }));
        let plan = planned(&set(changes.clone()), &[pod], &Claims::default(), GATES);
        let [Step::Update { labels: false, volumes: missing, claims, .. }] = &plan.phases[0].pods[0][..] else {
            panic!("{plan:?}")
        };
        assert_eq!((missing, &claims.missing), (&vec![0], &vec![0]), "{volumes}");
    }
}
