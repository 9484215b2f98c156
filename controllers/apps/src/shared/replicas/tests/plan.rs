//! The plan for the number of pods.

use std::sync::Arc;

use kcm_framework::api::views::Pod;
use proptest::prelude::*;
use serde_json::json;

use super::fixtures::{DEFAULTS, PodBuilder, ReplicaSetBuilder, build, names, now, observed, pod, replica_set};
use crate::shared::replicas::plan::{BURST, IdleReason, InvalidTemplate, Plan, Step, plan};
use crate::shared::replicas::rank::Occupancy;

struct Case {
    name: &'static str,
    owner: ReplicaSetBuilder,
    claimed: Vec<PodBuilder>,
    plan: Expected,
}

enum Expected {
    Idle(IdleReason),
    Create(usize),
    Refuse(InvalidTemplate),
    Delete(&'static [&'static str]),
}

#[test]
fn the_number_of_pods_is_brought_to_spec_replicas() {
    let web = |count| replica_set("web").replicas(count);
    let two = || vec![pod("a").ready(60), pod("b")];
    for Case { name, owner, claimed, plan: expected } in [
        Case { name: "enough", owner: web(2), claimed: two(), plan: Expected::Idle(IdleReason::Enough) },
        Case { name: "0 replicas, no pods", owner: web(0), claimed: vec![], plan: Expected::Idle(IdleReason::Enough) },
        Case {
            name: "too few, but the owner is terminating",
            owner: web(5).terminating(),
            claimed: two(),
            plan: Expected::Idle(IdleReason::OwnerTerminating),
        },
        Case {
            name: "too many, but the owner is terminating",
            owner: web(0).terminating(),
            claimed: two(),
            plan: Expected::Idle(IdleReason::OwnerTerminating),
        },
        Case { name: "some missing", owner: web(5), claimed: two(), plan: Expected::Create(3) },
        Case { name: "no more than a burst", owner: web(2000), claimed: two(), plan: Expected::Create(500) },
        Case {
            name: "a template without labels",
            owner: web(5).template_labels(json!({})),
            claimed: two(),
            plan: Expected::Refuse(InvalidTemplate::NoLabels),
        },
        Case {
            name: "a template without labels, but nothing to create",
            owner: web(1).template_labels(json!({})),
            claimed: two(),
            plan: Expected::Delete(&["b"]),
        },
        Case { name: "one too many", owner: web(1), claimed: two(), plan: Expected::Delete(&["b"]) },
        Case {
            name: "all are deleted, in no order",
            owner: web(0),
            claimed: two(),
            plan: Expected::Delete(&["a", "b"]),
        },
        Case { name: "a negative number", owner: web(-1), claimed: two(), plan: Expected::Delete(&["a", "b"]) },
    ] {
        let planned = plan(&observed(&owner, &[]), &build(&claimed), DEFAULTS, now());
        match (expected, planned) {
            (Expected::Idle(why), planned) => assert_eq!(planned, Plan::Idle(why), "{name}"),
            (Expected::Create(count), planned) => {
                assert_eq!(planned, Plan::Scale(Step::CreatePods { count }), "{name}");
            }
            (Expected::Refuse(refusal), planned) => {
                assert_eq!(planned, Plan::Scale(Step::RejectTemplate(refusal)), "{name}");
            }
            (Expected::Delete(expected), planned) => assert_eq!(names(&victims(planned)), expected, "{name}"),
        }
    }
}

fn victims(plan: Plan) -> Vec<Arc<Pod>> {
    match plan {
        Plan::Scale(Step::DeletePods { victims, .. }) => victims,
        other @ (Plan::Idle(_) | Plan::Scale(_)) => panic!("expected a deletion, got {other:?}"),
    }
}

#[test]
fn pods_of_related_replica_sets_on_the_node_decide_which_is_deleted() {
    let mut observed = observed(&replica_set("web"), &[]);
    let claimed = build(&[pod("a").node("free"), pod("b").node("full")]);
    observed.occupancy = Occupancy::of(build(&[pod("b").node("full"), pod("x").node("full")]).iter().map(|pod| &**pod));
    assert_eq!(names(&victims(plan(&observed, &claimed, DEFAULTS, now()))), ["b"]);
}

/// Upstream's row of `TestGetPodsToDelete` with ready pods: only related pods tell them apart.
#[test]
fn of_ready_pods_the_one_that_is_colocated_with_another_ready_pod_is_deleted() {
    let ready = |name: &str, node: &str| pod(name).node(node).ready(60);
    let pods = [ready("a", "node-1"), ready("b", "node-2")];
    for (name, related, expected) in [
        ("colocated on node-2", vec![ready("x", "node-2")], "b"),
        ("colocated on node-1", vec![ready("x", "node-1")], "a"),
    ] {
        let mut observed = observed(&replica_set("web"), &[]);
        let related = build(&[pods.to_vec(), related].concat());
        observed.occupancy = Occupancy::of(related.iter().map(|pod| &**pod));
        assert_eq!(names(&victims(plan(&observed, &build(&pods), DEFAULTS, now()))), [expected], "{name}");
    }
}

#[test]
fn at_most_a_burst_is_deleted_at_once() {
    let claimed: Vec<_> = (0..BURST + 20).map(|at| pod(&format!("p{at:04}"))).collect();
    let planned = plan(&observed(&replica_set("web").replicas(0), &[]), &build(&claimed), DEFAULTS, now());
    assert_eq!(victims(planned).len(), BURST);
}

#[test]
fn ages_are_observed_only_if_some_pods_stay() {
    let claimed = build(&[pod("a").ready(60).created(60), pod("b").ready(60).created(60)]);
    for (replicas, expected) in [(1, vec![1]), (0, vec![])] {
        let observed = observed(&replica_set("web").replicas(replicas), &[]);
        let planned = plan(&observed, &claimed, DEFAULTS, now());
        let Plan::Scale(Step::DeletePods { age_ratios, .. }) = planned else { panic!("expected a deletion") };
        assert_eq!(age_ratios, expected, "{replicas} wanted");
    }
}

/// The pods after the plan succeeded.
fn carried_out(mut pods: Vec<Arc<Pod>>, plan: &Plan, round: usize) -> Vec<Arc<Pod>> {
    match plan {
        Plan::Idle(_) | Plan::Scale(Step::RejectTemplate(_)) => {}
        Plan::Scale(Step::CreatePods { count }) => {
            pods.extend((0..*count).map(|at| pod(&format!("new-{round}-{at}")).build()));
        }
        Plan::Scale(Step::DeletePods { victims, .. }) => {
            pods.retain(|pod| !victims.iter().any(|victim| Arc::ptr_eq(victim, pod)));
        }
    }
    pods
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bursts_lead_to_the_wanted_number_and_then_to_no_change(wanted in 0..1300_i32, have in 0..1300_usize) {
        let observed = observed(&replica_set("web").replicas(wanted), &[]);
        let wanted = usize::try_from(wanted).unwrap();
        let mut pods: Vec<_> = (0..have).map(|at| pod(&format!("p{at}")).build()).collect();
        let mut rounds = 0;
        loop {
            let planned = plan(&observed, &pods, DEFAULTS, now());
            let before = pods.len();
            pods = carried_out(pods, &planned, rounds);
            prop_assert!(before.abs_diff(pods.len()) <= BURST);
            prop_assert!(pods.len() <= wanted.max(before) && pods.len() >= wanted.min(before));
            if planned == Plan::Idle(IdleReason::Enough) {
                break;
            }
            rounds += 1;
        }
        prop_assert_eq!(pods.len(), wanted);
        prop_assert_eq!(rounds, wanted.abs_diff(have).div_ceil(BURST));
    }
}
