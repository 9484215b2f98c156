//! Recreations.

use kcm_framework::api::views::PodPhase;

use super::counts::{rows, set};
use crate::deployment::rollout::recreate::{RecreateStep, plan};
use crate::deployment::rollout::{Limits, ScaleReason, SetCount};

struct Case {
    name: &'static str,
    new: Option<SetCount<'static>>,
    old: Vec<SetCount<'static>>,
    old_pods: &'static [PodPhase],
    plan: Expected,
}

enum Expected {
    ScaleDown(&'static [(usize, i32)]),
    AwaitOldPods,
    Create,
    ScaleNew(i32),
    Complete,
}

#[test]
fn old_pods_have_stopped_before_new_ones_start() {
    let new = |replicas| Some(set(7, replicas));
    let gone = || vec![set(0, 0), set(1, 0)];
    for Case { name, new, old, old_pods, plan: expected } in [
        Case { name: "the first of a deployment", new: None, old: vec![], old_pods: &[], plan: Expected::Create },
        Case {
            name: "every old set that has some is scaled down",
            new: None,
            old: vec![set(0, 3), set(1, 0), set(2, 1)],
            old_pods: &[PodPhase::Running],
            plan: Expected::ScaleDown(&[(0, 3), (2, 1)]),
        },
        Case {
            name: "also while the new one is there",
            new: new(4),
            old: vec![set(0, 3)],
            old_pods: &[],
            plan: Expected::ScaleDown(&[(0, 3)]),
        },
        Case {
            name: "an old set reports some",
            new: None,
            old: vec![SetCount { actual: 1, ..set(0, 0) }],
            old_pods: &[],
            plan: Expected::AwaitOldPods,
        },
        Case {
            name: "one runs that no status counts",
            new: new(0),
            old: gone(),
            old_pods: &[PodPhase::Failed, PodPhase::Running],
            plan: Expected::AwaitOldPods,
        },
        Case {
            name: "one is pending",
            new: None,
            old: gone(),
            old_pods: &[PodPhase::Pending],
            plan: Expected::AwaitOldPods,
        },
        Case {
            name: "one is in phase Unknown",
            new: None,
            old: gone(),
            old_pods: &[PodPhase::Unknown],
            plan: Expected::AwaitOldPods,
        },
        Case {
            name: "one has no phase",
            new: None,
            old: gone(),
            old_pods: &[PodPhase::Other],
            plan: Expected::AwaitOldPods,
        },
        Case {
            name: "failed and succeeded ones do not count",
            new: None,
            old: gone(),
            old_pods: &[PodPhase::Failed, PodPhase::Succeeded],
            plan: Expected::Create,
        },
        Case { name: "the new set gets all", new: new(0), old: gone(), old_pods: &[], plan: Expected::ScaleNew(0) },
        Case { name: "the new set has too many", new: new(9), old: gone(), old_pods: &[], plan: Expected::ScaleNew(9) },
        Case { name: "the new set has all", new: new(4), old: gone(), old_pods: &[], plan: Expected::Complete },
    ] {
        let planned = plan(new.as_ref(), &old, old_pods.iter().copied(), &Limits::not_rolling(4));
        match (expected, planned) {
            (Expected::ScaleDown(sets), RecreateStep::ScaleDown(scales)) => {
                let expected: Vec<_> =
                    sets.iter().map(|&(index, from)| (index, from, 0, ScaleReason::Recreate)).collect();
                assert_eq!(rows(&scales), expected, "{name}");
            }
            (Expected::ScaleNew(from), RecreateStep::ScaleNew(scale)) => {
                assert_eq!(rows(&[scale]), [(7, from, 4, ScaleReason::OldGone)], "{name}");
            }
            (Expected::AwaitOldPods, planned) => assert_eq!(planned, RecreateStep::AwaitOldPods, "{name}"),
            (Expected::Create, planned) => assert_eq!(planned, RecreateStep::Create { replicas: 4 }, "{name}"),
            (Expected::Complete, planned) => assert_eq!(planned, RecreateStep::Complete, "{name}"),
            (Expected::ScaleDown(_) | Expected::ScaleNew(_), planned) => panic!("{name}: {planned:?}"),
        }
    }
}

#[test]
fn a_recreation_scales_down_waits_creates_and_completes() {
    let limits = Limits::not_rolling(3);
    let mut old = [set(0, 3)];
    assert!(matches!(plan(None, &old, [PodPhase::Running], &limits), RecreateStep::ScaleDown(_)));
    old[0].desired = 0;
    assert_eq!(plan(None, &old, [PodPhase::Running], &limits), RecreateStep::AwaitOldPods);
    old[0].actual = 0;
    assert_eq!(plan(None, &old, [PodPhase::Running], &limits), RecreateStep::AwaitOldPods);
    assert_eq!(plan(None, &old, [], &limits), RecreateStep::Create { replicas: 3 });
    assert_eq!(plan(Some(&set(1, 3)), &old, [], &limits), RecreateStep::Complete);
}
