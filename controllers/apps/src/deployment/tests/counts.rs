//! Fixtures of counts, for the tests of rollouts.

use jiff::Timestamp;
use kcm_framework::api::IntOrPercent;

use crate::deployment::rollout::{Limits, Scale, ScaleReason, SetCount};

const NAMES: [&str; 8] = ["web-0", "web-1", "web-2", "web-3", "web-4", "web-5", "web-6", "web-7"];

/// The `index`th set to be created, with so many replicas that are all available.
pub(super) fn set(index: usize, desired: i32) -> SetCount<'static> {
    let second = i64::try_from(index).unwrap();
    SetCount {
        index,
        name: NAMES[index],
        created: Some(Timestamp::from_second(second).unwrap()),
        revision: 0,
        desired,
        actual: desired,
        available: desired,
        desired_annotation: None,
        max_annotation: None,
        observed: true,
        terminating: false,
    }
}

/// Replica sets of these sizes, of which so many replicas are available, created in this order.
pub(super) fn sets(sizes: &[(i32, i32)]) -> Vec<SetCount<'static>> {
    let each = sizes.iter().enumerate();
    each.map(|(index, &(desired, available))| SetCount { available, ..set(index, desired) }).collect()
}

/// The last one as the new set, the others as the old ones.
pub(super) fn newest<'a, 's>(sets: &'a [SetCount<'s>]) -> (&'a SetCount<'s>, &'a [SetCount<'s>]) {
    sets.split_last().unwrap()
}

/// The limits of a rolling update.
pub(super) fn limits(replicas: i32, max_surge: i32, max_unavailable: i32) -> Limits {
    let count = |count| Some(IntOrPercent::Int(count));
    Limits::rolling(replicas, count(max_surge).as_ref(), count(max_unavailable).as_ref()).unwrap()
}

/// Index, replicas before and after, and the reason.
pub(super) type Row = (usize, i32, i32, ScaleReason);

pub(super) fn rows(scales: &[Scale]) -> Vec<Row> {
    scales.iter().map(|&Scale { index, from, to, reason }| (index, from, to, reason)).collect()
}

/// Applies the plan.
pub(super) fn carry_out(sets: &mut [SetCount<'_>], scales: &[Scale]) {
    for scale in scales {
        let set = sets.iter_mut().find(|set| set.index == scale.index).expect("must be one of the sets");
        assert_eq!(set.desired, scale.from, "a step begins where the last one ended");
        set.desired = scale.to;
    }
}

pub(super) fn total(sets: &[SetCount<'_>]) -> i64 {
    sets.iter().map(|set| i64::from(set.desired)).sum()
}
