//! Rolling updates and their limits.

use kcm_framework::api::IntOrPercent;
use proptest::prelude::*;

use super::counts::{Row, carry_out, limits, newest, rows, set, sets, total};
use crate::deployment::rollout::rolling::{first_size, plan};
use crate::deployment::rollout::{InvalidLimit, Limits, ScaleReason, SetCount};

#[test]
fn surge_rounds_up_and_unavailable_down_and_one_of_them_is_left() {
    struct Case {
        name: &'static str,
        replicas: i32,
        surge: Option<&'static str>,
        unavailable: Option<&'static str>,
        resolved: (i32, i32),
    }
    for Case { name, replicas, surge, unavailable, resolved } in [
        Case { name: "counts", replicas: 10, surge: Some("3"), unavailable: Some("2"), resolved: (3, 2) },
        Case { name: "shares", replicas: 10, surge: Some("25%"), unavailable: Some("25%"), resolved: (3, 2) },
        Case { name: "whole shares", replicas: 8, surge: Some("25%"), unavailable: Some("25%"), resolved: (2, 2) },
        Case { name: "all at once", replicas: 4, surge: Some("100%"), unavailable: Some("0"), resolved: (4, 0) },
        Case { name: "surge beyond all", replicas: 4, surge: Some("150%"), unavailable: Some("0"), resolved: (6, 0) },
        Case { name: "no surge given", replicas: 10, surge: None, unavailable: Some("39%"), resolved: (0, 3) },
        Case { name: "only surge given", replicas: 10, surge: Some("39%"), unavailable: None, resolved: (4, 0) },
        Case { name: "nothing given", replicas: 10, surge: None, unavailable: None, resolved: (0, 1) },
        Case { name: "both 0", replicas: 10, surge: Some("0"), unavailable: Some("0"), resolved: (0, 1) },
        Case { name: "a share below one", replicas: 2, surge: Some("0%"), unavailable: Some("1%"), resolved: (0, 1) },
        Case {
            name: "surge of less than one",
            replicas: 2,
            surge: Some("1%"),
            unavailable: Some("25%"),
            resolved: (1, 0),
        },
        Case {
            name: "no more than there are",
            replicas: 3,
            surge: Some("0"),
            unavailable: Some("9"),
            resolved: (0, 3),
        },
        Case {
            name: "as many as there are",
            replicas: 10,
            surge: Some("0"),
            unavailable: Some("10"),
            resolved: (0, 10),
        },
        Case { name: "half", replicas: 10, surge: Some("0"), unavailable: Some("50%"), resolved: (0, 5) },
        Case { name: "all, as a share", replicas: 10, surge: Some("0"), unavailable: Some("100%"), resolved: (0, 10) },
        Case { name: "more, as a share", replicas: 5, surge: Some("0"), unavailable: Some("120%"), resolved: (0, 5) },
        Case { name: "none there, both 0", replicas: 0, surge: Some("0%"), unavailable: Some("0%"), resolved: (0, 0) },
        Case { name: "none there, counts", replicas: 0, surge: Some("3"), unavailable: Some("2"), resolved: (3, 0) },
    ] {
        let read = |text: Option<&str>| text.map(|text| text.parse().map_or_else(|_| text.into(), IntOrPercent::Int));
        let limits = Limits::rolling(replicas, read(surge).as_ref(), read(unavailable).as_ref()).expect(name);
        assert_eq!((limits.max_surge, limits.max_unavailable), resolved, "{name}");
        assert_eq!(limits.max_total(), replicas + resolved.0, "{name}");
        assert_eq!(limits.min_available(), replicas - resolved.1, "{name}");
    }
}

#[test]
fn a_limit_that_is_no_count_is_named() {
    let (good, bad) = (IntOrPercent::from("25%"), IntOrPercent::from("some"));
    assert!(matches!(Limits::rolling(1, Some(&bad), Some(&good)), Err(InvalidLimit::Surge(_))));
    assert!(matches!(Limits::rolling(1, Some(&good), Some(&bad)), Err(InvalidLimit::Unavailable(_))));
}

#[test]
fn without_rolling_there_is_no_surge_and_all_are_to_be_available() {
    let limits = Limits::not_rolling(4);
    assert_eq!((limits.max_total(), limits.min_available()), (4, 4));
    let limits = Limits::not_rolling(0);
    assert_eq!((limits.max_total(), limits.min_available()), (0, 0));
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let limits = limits(i32::MAX, i32::MAX, i32::MAX);
    assert_eq!((limits.max_total(), limits.min_available()), (i32::MAX, 0));
    let sets = sets(&[(i32::MAX, 0), (i32::MAX, i32::MAX), (1, 1)]);
    let (new, old) = newest(&sets);
    assert_eq!(first_size(old, &limits), 0);
    assert_eq!(
        rows(&plan(new, old, &limits)),
        [(0, i32::MAX, 0, ScaleReason::Unavailable), (1, i32::MAX, 0, ScaleReason::Spare),]
    );
}

struct Case {
    name: &'static str,
    limits: Limits,
    /// Replicas and how many of them are available, by age; the last is the new set.
    sets: &'static [(i32, i32)],
    plan: &'static [Row],
}

fn check(cases: &[Case]) {
    for Case { name, limits, sets: sizes, plan: expected } in cases {
        let sets = sets(sizes);
        let (new, old) = newest(&sets);
        assert_eq!(rows(&plan(new, old, limits)), *expected, "{name}");
    }
}

#[test]
fn the_new_set_grows_by_the_surge() {
    use ScaleReason::{Surge, TooLarge};
    check(&[
        Case { name: "no room", limits: limits(10, 0, 1), sets: &[(9, 9), (1, 0)], plan: &[] },
        Case {
            name: "as much as the surge",
            limits: limits(10, 2, 0),
            sets: &[(10, 10), (0, 0)],
            plan: &[(1, 0, 2, Surge)],
        },
        Case {
            name: "as much as old ones left",
            limits: limits(10, 2, 0),
            sets: &[(5, 5), (0, 0)],
            plan: &[(1, 0, 7, Surge)],
        },
        Case {
            name: "3 + min(13 - 11, 10 - 3) = 5",
            limits: limits(10, 3, 2),
            sets: &[(8, 8), (3, 0)],
            plan: &[(1, 3, 5, Surge)],
        },
        Case {
            name: "never beyond all",
            limits: limits(10, 9, 0),
            sets: &[(2, 2), (8, 8)],
            plan: &[(1, 8, 10, Surge)],
        },
        Case { name: "the surge is in use", limits: limits(10, 2, 0), sets: &[(10, 10), (2, 0)], plan: &[] },
        Case { name: "too large", limits: limits(10, 2, 0), sets: &[(2, 2), (11, 11)], plan: &[(1, 11, 10, TooLarge)] },
        Case { name: "there is nothing to do", limits: limits(10, 3, 2), sets: &[(0, 0), (10, 10)], plan: &[] },
        Case { name: "without pods", limits: limits(0, 3, 2), sets: &[(0, 0), (0, 0)], plan: &[] },
    ]);
}

#[test]
fn old_sets_give_up_what_availability_allows() {
    use ScaleReason::{Spare, Unavailable};
    check(&[
        Case {
            name: "two may be unavailable",
            limits: limits(10, 0, 2),
            sets: &[(10, 10), (0, 0)],
            plan: &[(0, 10, 8, Spare)],
        },
        Case {
            name: "no more while the new are not available",
            limits: limits(10, 0, 2),
            sets: &[(8, 8), (2, 0)],
            plan: &[],
        },
        Case {
            name: "one for one that is available",
            limits: limits(10, 0, 2),
            sets: &[(8, 8), (2, 1)],
            plan: &[(0, 8, 7, Spare)],
        },
        Case {
            name: "unavailable ones go",
            limits: limits(10, 0, 2),
            sets: &[(10, 8), (0, 0)],
            plan: &[(0, 10, 8, Unavailable)],
        },
        Case {
            name: "unavailable ones first, then available ones",
            limits: limits(10, 0, 2),
            sets: &[(10, 9), (0, 0)],
            plan: &[(0, 10, 9, Unavailable), (0, 9, 8, Spare)],
        },
        Case {
            name: "unavailable ones of a newer set before available ones of an older",
            limits: limits(10, 0, 4),
            sets: &[(5, 5), (5, 2), (0, 0)],
            plan: &[(1, 5, 2, Unavailable), (0, 5, 4, Spare)],
        },
        Case {
            name: "unavailable ones of the oldest first",
            limits: limits(10, 0, 3),
            sets: &[(5, 3), (5, 3), (0, 0)],
            plan: &[(0, 5, 3, Unavailable), (1, 5, 4, Unavailable)],
        },
        Case {
            name: "one set after the other, the oldest first",
            limits: limits(10, 0, 7),
            sets: &[(5, 5), (5, 5), (0, 0)],
            plan: &[(0, 5, 0, Spare), (1, 5, 3, Spare)],
        },
        Case {
            name: "all of them beside a new one that has all",
            limits: limits(10, 3, 2),
            sets: &[(3, 3), (10, 10)],
            plan: &[(0, 3, 0, Spare)],
        },
        Case { name: "no old pods", limits: limits(10, 3, 2), sets: &[(0, 0), (10, 3)], plan: &[] },
        Case {
            name: "a stale status of the oldest set stops the scaling",
            limits: limits(10, 3, 2),
            sets: &[(6, 8), (3, 3), (4, 4)],
            plan: &[],
        },
        Case {
            name: "a stale status of a newer set: unavailable replicas are removed, and no others",
            limits: limits(10, 0, 2),
            sets: &[(5, 3), (4, 6), (1, 1)],
            plan: &[(0, 5, 3, Unavailable)],
        },
        Case {
            name: "terminating new replicas do not count",
            limits: limits(10, 0, 2),
            sets: &[(6, 6), (4, 8)],
            plan: &[(0, 6, 4, Spare)],
        },
        Case {
            name: "terminating old replicas do not count",
            limits: limits(10, 0, 2),
            sets: &[(8, 8), (0, 2), (2, 0)],
            plan: &[],
        },
    ]);
}

#[test]
fn five_new_pods_of_ten_crash() {
    use ScaleReason::{Spare, Surge, Unavailable};
    let crash = limits(10, 3, 2);
    check(&[
        Case { name: "3 new ones are created", limits: crash, sets: &[(10, 10), (0, 0)], plan: &[(1, 0, 3, Surge)] },
        Case { name: "2 old ones make room", limits: crash, sets: &[(10, 10), (3, 0)], plan: &[(0, 10, 8, Spare)] },
        Case { name: "5 new ones fill the room", limits: crash, sets: &[(8, 8), (3, 0)], plan: &[(1, 3, 5, Surge)] },
        Case { name: "13 - 8 - 5 = 0: nothing more happens", limits: crash, sets: &[(8, 8), (5, 0)], plan: &[] },
        Case {
            name: "an old pod is lost with its node, 13 - 8 - 5 = 0: the old set does not shrink",
            limits: crash,
            sets: &[(8, 7), (5, 0)],
            plan: &[],
        },
        Case {
            name: "a third template, 13 - 8 - 0 = 5: the old sets give up five",
            limits: crash,
            sets: &[(8, 8), (5, 0), (0, 0)],
            plan: &[(1, 5, 0, Unavailable)],
        },
        Case {
            name: "a third template after a pod was lost, 13 - 8 - 0 = 5: the old sets give up five",
            limits: crash,
            sets: &[(8, 7), (5, 0), (0, 0)],
            plan: &[(0, 8, 7, Unavailable), (1, 5, 1, Unavailable)],
        },
        Case {
            name: "the third set grows by five",
            limits: crash,
            sets: &[(7, 7), (1, 0), (0, 0)],
            plan: &[(2, 0, 5, Surge)],
        },
    ]);
    let third = sets(&[(8, 8), (5, 0)]);
    assert_eq!(first_size(&third, &crash), 0, "a third set starts with none");
}

#[test]
fn undo_of_five_crashing_pods() {
    let crash = limits(10, 3, 2);
    // The good set is older than the crashing one, and the new one again.
    let mut sets = sets(&[(8, 7), (5, 0)]);
    let step = |sets: &[SetCount<'static>]| plan(&sets[0], &sets[1..], &crash);

    let undo = step(&sets);
    assert_eq!(rows(&undo), [(1, 5, 1, ScaleReason::Unavailable)], "13 - 8 - 1 = 4 of the crashing pods are removed");
    carry_out(&mut sets, &undo);
    assert_eq!(total(&sets), 9, "9 remain");

    let growth = step(&sets);
    assert_eq!(rows(&growth), [(0, 8, 10, ScaleReason::Surge)], "the good set grows to 10");
    carry_out(&mut sets, &growth);

    sets[0].available = 10;
    assert_eq!(rows(&step(&sets)), [(1, 1, 0, ScaleReason::Unavailable)], "the last crashing pod is removed");
}

#[test]
fn a_new_set_is_created_with_what_the_surge_leaves() {
    for (name, limits, old, expected) in [
        ("the first of a deployment", limits(10, 3, 2), vec![], 10),
        ("the surge", limits(10, 3, 2), vec![set(0, 10)], 3),
        ("no room", limits(10, 0, 2), vec![set(0, 10)], 0),
        ("too many already", limits(10, 0, 2), vec![set(0, 10), set(1, 5)], 0),
        ("never more than all", limits(10, 13, 2), vec![set(0, 10)], 10),
        ("0 replicas", limits(0, 3, 2), vec![], 0),
    ] {
        assert_eq!(first_size(&old, &limits), expected, "{name}");
    }
}

prop_compose! {
    fn any_limits(most: i32)(replicas in 0..most, surge in 0..most, unavailable in 0..most) -> Limits {
        limits(replicas, surge, unavailable)
    }
}

fn any_sets(most: i32) -> impl Strategy<Value = Vec<SetCount<'static>>> {
    prop::collection::vec((0..most, 0..most), 1..5).prop_map(|sizes| sets(&sizes))
}

/// The available replicas after the scaling, if unavailable ones are removed first.
fn lasting(sets: &[SetCount<'_>]) -> i64 {
    sets.iter().map(|set| i64::from(set.available.min(set.desired))).sum()
}

proptest! {
    #[test]
    fn no_plan_goes_beyond_the_surge_or_below_availability(limits in any_limits(20), mut sets in any_sets(20)) {
        let (all, safe) = (total(&sets), lasting(&sets));
        let (new, old) = newest(&sets);
        let planned = plan(new, old, &limits);
        carry_out(&mut sets, &planned);
        prop_assert!(total(&sets) <= all.max(limits.max_total().into()));
        prop_assert!(lasting(&sets) >= safe.min(limits.min_available().into()));
    }

    #[test]
    fn what_is_planned_does_not_depend_on_the_order_of_old_sets(
        limits in any_limits(20),
        (new, old, shuffled) in any_sets(20).prop_flat_map(|mut sets| {
            let new = sets.pop().unwrap();
            (Just(new), Just(sets.clone()), Just(sets).prop_shuffle())
        }),
    ) {
        prop_assert_eq!(plan(&new, &old, &limits), plan(&new, &shuffled, &limits));
    }

    #[test]
    fn every_rollout_ends_and_is_safe_all_the_way(
        limits in any_limits(12),
        sizes in prop::collection::vec(0..12_i32, 1..4),
        ready in prop::collection::vec((0..5_usize, 0..4_i32, any::<bool>()), 0..40),
    ) {
        // Everything is available and reported at first, but the new set is empty.
        let mut reported: Vec<_> = sizes.iter().enumerate().map(|(index, &size)| set(index, size)).collect();
        reported.push(set(sizes.len(), 0));
        let mut available: Vec<i32> = reported.iter().map(|set| set.available).collect();
        let mut events = ready.into_iter();
        let most = total(&reported).max(limits.max_total().into());
        let rounds = 40 + 2 * usize::try_from(most).unwrap() + 2;
        for round in 0.. {
            let (new, old) = newest(&reported);
            if new.desired == limits.replicas && total(old) == 0 {
                break;
            }
            prop_assert!(round <= rounds, "no end: {reported:?}");
            let safe = available.iter().sum::<i32>().min(limits.min_available());
            let planned = plan(new, old, &limits);
            carry_out(&mut reported, &planned);
            // The kubelet: pods beyond the size go, some become available, and not every status is brought up to date.
            for (available, set) in available.iter_mut().zip(&reported) {
                *available = (*available).min(set.desired);
            }
            prop_assert!(total(&reported) <= most);
            prop_assert!(available.iter().sum::<i32>() >= safe);
            match events.next() {
                Some((index, count, report)) => {
                    let index = index % reported.len();
                    available[index] = (available[index] + count).min(reported[index].desired);
                    if report {
                        reported[index].available = available[index];
                    }
                }
                None => {
                    for (set, available) in reported.iter_mut().zip(&mut available) {
                        *available = set.desired;
                        set.available = set.desired;
                    }
                }
            }
        }
    }
}
