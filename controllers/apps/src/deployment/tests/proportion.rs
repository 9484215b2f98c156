//! Proportional scaling.

use proptest::prelude::*;

use super::counts::{Row, carry_out, limits, newest, rows, set, sets, total};
use crate::deployment::rollout::proportion::{is_scaling_event, plan};
use crate::deployment::rollout::{Limits, ScaleReason, SetCount};

/// Replica sets with the annotations of a deployment with the limits `before`.
fn scaled(before: &Limits, sets: Vec<SetCount<'static>>) -> Vec<SetCount<'static>> {
    let (desired_annotation, max_annotation) = (Some(before.replicas), Some(before.max_total()));
    sets.into_iter().map(|set| SetCount { desired_annotation, max_annotation, ..set }).collect()
}

fn all_available(sizes: &[i32]) -> Vec<SetCount<'static>> {
    sizes.iter().enumerate().map(|(index, &size)| set(index, size)).collect()
}

struct Case {
    name: &'static str,
    from: Limits,
    to: Limits,
    /// By age.
    sizes: &'static [i32],
    /// Whether the last is the new set, or there is none yet.
    has_new: bool,
    then: &'static [i32],
}

#[test]
fn a_change_of_size_keeps_the_proportions() {
    let plain = |replicas| limits(replicas, 0, 1);
    let surge = |replicas, surge| limits(replicas, surge, 0);
    let case = |name, (from, to), sizes, then| Case { name, from, to, sizes, has_new: true, then };
    for Case { name, from, to, sizes, has_new, then } in [
        case("the only one up", (plain(10), plain(12)), &[10], &[12]),
        case("the only one down", (plain(10), plain(5)), &[10], &[5]),
        case("the only active one, though it is old", (plain(10), plain(12)), &[10, 0], &[12, 0]),
        case("none is active: the new one", (plain(0), plain(6)), &[0, 0, 0], &[0, 0, 6]),
        Case { has_new: false, ..case("none is active or new: the latest", (plain(0), plain(6)), &[0, 0], &[0, 6]) },
        case("doubled", (plain(5), plain(10)), &[3, 2], &[6, 4]),
        case("5 -> 3, rounded", (plain(5), plain(3)), &[3, 2], &[2, 1]),
        case("9 -> 4, and one gets none", (plain(9), plain(4)), &[1, 8], &[0, 4]),
        case("7 -> 10 over three", (plain(7), plain(10)), &[2, 3, 2], &[3, 4, 3]),
        case("13 -> 8 over three", (plain(13), plain(8)), &[3, 8, 2], &[2, 5, 1]),
        case("one more for the newest of equals", (plain(3), plain(4)), &[1, 1, 1], &[1, 1, 2]),
        case("one less for the oldest of equals", (plain(3), plain(2)), &[1, 1, 1], &[0, 1, 1]),
        Case { has_new: false, ..case("without a new one, the latest", (plain(4), plain(5)), &[2, 2], &[2, 3]) },
        Case { has_new: false, ..case("size and template at once", (plain(10), plain(14)), &[3, 7], &[4, 10]) },
        case("to nothing", (plain(6), plain(0)), &[1, 2, 3], &[0, 0, 0]),
        case("to nothing in spite of the surge", (surge(6, 3), surge(0, 3)), &[1, 2, 3], &[0, 0, 0]),
        case("the surge counts", (surge(10, 2), surge(20, 2)), &[6, 6], &[11, 11]),
        case("size and surge: round(8 x 56 / 13) = 34", (surge(10, 3), surge(50, 6)), &[8, 5], &[34, 22]),
        case("50 of 110 when 130 may be: 59", (surge(100, 10), surge(120, 10)), &[50, 60], &[59, 71]),
        case("the remainder goes to the largest", (surge(10, 3), surge(10, 4)), &[6, 5], &[9, 5]),
        case("growth that comes with a loss", (surge(100, 30), surge(90, 30)), &[50, 60], &[46, 74]),
        case("a surge that shrank", (surge(10, 4), surge(10, 2)), &[8, 6], &[7, 5]),
        case("nothing to change", (surge(10, 3), surge(10, 3)), &[8, 5], &[8, 5]),
        case("inactive ones stay so", (plain(5), plain(10)), &[3, 0, 2], &[6, 0, 4]),
    ] {
        let mut sets = scaled(&from, all_available(sizes));
        let (new, old) = if has_new { (sets.last(), &sets[..sets.len() - 1]) } else { (None, &sets[..]) };
        let planned = plan(new, old, &to, 0);
        carry_out(&mut sets, &planned);
        assert_eq!(sets.iter().map(|set| set.desired).collect::<Vec<_>>(), then, "{name}");
    }
}

#[test]
fn there_may_be_nothing_to_scale() {
    assert_eq!(plan(None, &[], &limits(3, 1, 0), 0), []);
    assert_eq!(plan(Some(&set(0, 3)), &[], &limits(3, 1, 0), 0), []);
}

#[test]
fn a_saturated_new_set_scales_old_ones_to_0() {
    let to = limits(4, 1, 0);
    let saturated = scaled(&to, sets(&[(2, 2), (0, 0), (1, 0), (4, 4)]));
    let (new, old) = newest(&saturated);
    let none: Vec<Row> = vec![];
    let gone = vec![(2, 1, 0, ScaleReason::Saturated), (0, 2, 0, ScaleReason::Saturated)];
    let of_shares = |scales: &[Row]| scales.iter().all(|&(_, _, _, reason)| reason == ScaleReason::Share);

    assert_eq!(rows(&plan(Some(new), old, &to, 7)), gone);
    assert_eq!(rows(&plan(Some(new), old, &Limits::not_rolling(4), 7)), gone, "also without rolling");

    for (name, new) in [
        ("not all available", SetCount { available: 3, ..*new }),
        ("not all of the size", SetCount { desired: 3, ..*new }),
        ("all of another size", SetCount { desired_annotation: Some(3), ..*new }),
        ("no annotation", SetCount { desired_annotation: None, ..*new }),
    ] {
        let planned = rows(&plan(Some(&new), old, &to, 7));
        assert!(of_shares(&planned) && !planned.is_empty(), "{name}: {planned:?}");
        assert_eq!(rows(&plan(Some(&new), old, &Limits::not_rolling(4), 7)), none, "{name}, without rolling");
    }
}

#[test]
fn a_broken_new_set_with_all_replicas_does_not_affect_old_ones() {
    let to = limits(2, 1, 1);
    let broken = scaled(&to, sets(&[(1, 1), (2, 0)]));
    let (new, old) = newest(&broken);
    assert_eq!(rows(&plan(Some(new), old, &to, 3)), []);
}

#[test]
fn the_earlier_maximum_is_read_from_the_annotation_or_the_status() {
    let to = limits(120, 0, 1);
    for (name, annotation, reported, then) in [
        ("from the set", Some(100), 7, 60),
        ("from the status without the annotation", None, 100, 60),
        ("from the status if the annotation is 0", Some(0), 100, 60),
        ("from neither, so that the set is not scaled", None, 0, 50),
    ] {
        // The larger one is scaled by the remainder only.
        let mut sets = all_available(&[50, 60]);
        sets[0].max_annotation = annotation;
        sets[1].max_annotation = Some(to.max_total());
        let (new, old) = newest(&sets);
        let planned = plan(Some(new), old, &to, reported);
        carry_out(&mut sets, &planned);
        assert_eq!(sets.iter().map(|set| set.desired).collect::<Vec<_>>(), [then, 120 - then], "{name}");
    }
}

#[test]
fn annotations_alone_are_updated() {
    let (before, now) = (limits(10, 3, 2), limits(10, 3, 4));
    let current = scaled(&before, sets(&[(8, 8), (5, 0)]));
    let (new, old) = newest(&current);
    assert_eq!(rows(&plan(Some(new), old, &now, 13)), [], "the annotations are up to date");

    let behind = [SetCount { desired_annotation: Some(9), ..current[0] }, current[1]];
    assert_eq!(rows(&plan(Some(&behind[1]), &behind[..1], &now, 13)), [(0, 8, 8, ScaleReason::Share)]);
    let behind = [current[0], SetCount { max_annotation: None, ..current[1] }];
    assert_eq!(rows(&plan(Some(&behind[1]), &behind[..1], &now, 13)), [(1, 5, 5, ScaleReason::Share)]);
}

#[test]
fn what_cannot_be_removed_from_the_largest_is_removed_from_the_next() {
    let mut sets = all_available(&[5, 4, 4]);
    for set in &mut sets {
        // Each annotation is the size of its own replica set.
        set.max_annotation = Some(set.desired);
    }
    let (new, old) = newest(&sets);
    let planned = plan(Some(new), old, &limits(8, 0, 1), 13);
    carry_out(&mut sets, &planned);
    assert_eq!(sets.iter().map(|set| set.desired).collect::<Vec<_>>(), [0, 0, 8]);
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let to = limits(i32::MAX, i32::MAX, 0);
    let mut sets = scaled(&limits(1, 0, 1), all_available(&[i32::MAX, i32::MAX]));
    let (new, old) = newest(&sets);
    let planned = plan(Some(new), old, &to, 0);
    carry_out(&mut sets, &planned);
    assert_eq!(total(&sets), i64::from(i32::MAX));

    // 50,000 × 50,000 does not fit 32 bits.
    let mut sets = scaled(&limits(60_000, 0, 1), all_available(&[10_000, 50_000]));
    let (new, old) = newest(&sets);
    let planned = plan(Some(new), old, &limits(50_000, 0, 1), 0);
    carry_out(&mut sets, &planned);
    assert_eq!(sets.iter().map(|set| set.desired).collect::<Vec<_>>(), [8_333, 41_667]);
}

#[test]
fn a_scaling_event_is_another_size_on_an_active_set() {
    let with = |desired, desired_annotation| SetCount { desired_annotation, ..set(0, desired) };
    for (name, sets, expected) in [
        ("no set", vec![], false),
        ("the same size", vec![with(3, Some(5)), with(2, Some(5))], false),
        ("another size", vec![with(3, Some(5)), with(2, Some(6))], true),
        ("another size on a set without replicas", vec![with(0, Some(6))], false),
        ("no annotation", vec![with(3, None)], false),
    ] {
        assert_eq!(is_scaling_event(&sets, 5), expected, "{name}");
    }
}

prop_compose! {
    fn any_sets()(
        sets in prop::collection::vec((0..30_i32, prop::option::of(0..40_i32)), 0..6),
    ) -> Vec<SetCount<'static>> {
        let each = sets.into_iter().enumerate();
        // None is available, so that none is saturated.
        each.map(|(index, (desired, max_annotation))| {
            SetCount { available: -1, max_annotation, ..set(index, desired) }
        }).collect()
    }
}

proptest! {
    #[test]
    fn shares_add_up_to_all_that_may_be(
        mut sets in any_sets(),
        (replicas, surge, reported) in (0..30_i32, 0..10_i32, 0..60_i32),
        has_new in any::<bool>(),
    ) {
        let limits = limits(replicas, surge, 0);
        let before = sets.clone();
        let new = has_new.then(|| sets.last()).flatten();
        let old = &sets[..sets.len() - usize::from(new.is_some())];
        let planned = plan(new, old, &limits, reported);
        carry_out(&mut sets, &planned);
        let active = before.iter().filter(|set| set.desired > 0).count();
        let expected = match active {
            0 if sets.is_empty() => 0,
            0 | 1 => replicas,
            _ if replicas == 0 => 0,
            _ => limits.max_total(),
        };
        prop_assert_eq!(total(&sets), i64::from(expected));
        prop_assert!(sets.iter().all(|set| set.desired >= 0));
        if active > 1 {
            prop_assert!(before.iter().zip(&sets).all(|(before, after)| before.desired > 0 || after.desired == 0));
        }
    }

    #[test]
    fn shares_that_were_given_are_not_given_again(sets in any_sets(), replicas in 1..30_i32, surge in 0..10_i32) {
        let limits = limits(replicas, surge, 0);
        let mut sets = sets;
        let planned = plan(None, &sets, &limits, 0);
        carry_out(&mut sets, &planned);
        let sets = scaled(&limits, sets);
        prop_assume!(sets.iter().filter(|set| set.desired > 0).count() > 1);
        prop_assert_eq!(plan(None, &sets, &limits, 0), []);
    }

    #[test]
    fn no_set_but_the_largest_changes_by_more_than_its_share(
        sizes in prop::collection::vec(1..40_i32, 2..6),
        replicas in 1..200_i32,
    ) {
        let from = limits(sizes.iter().sum(), 0, 1);
        let to = limits(replicas, 0, 1);
        let before = scaled(&from, all_available(&sizes));
        let mut after = before.clone();
        carry_out(&mut after, &plan(None, &before, &to, 0));
        let largest = before.iter().map(|set| set.desired).max();
        for (before, after) in before.iter().zip(&after).filter(|(before, _)| Some(before.desired) != largest) {
            let share = f64::from(before.desired) * f64::from(replicas) / f64::from(from.replicas);
            let (least, most) = (share.min(before.desired.into()), share.max(before.desired.into()));
            let size = f64::from(after.desired);
            prop_assert!(least - 0.5 <= size && size <= most + 0.5, "{before:?} {after:?}");
        }
    }
}
