//! Stabilization, policies and bounds.

use super::fixtures::{now, seconds};
use crate::horizontal_pod_autoscaler::conditions::{Able, Limited};
use crate::horizontal_pod_autoscaler::history::{Change, History, Recommendation, changed_within};
use crate::horizontal_pod_autoscaler::normalize::{Bounds, Normalized, normalize};
use crate::horizontal_pod_autoscaler::spec::{Behavior, Policy, PolicyType, ScalingRules, SelectPolicy};

fn bounds(current: i32) -> Bounds {
    Bounds { current, min: 2, max: 100 }
}

/// Recommendations by their ages in seconds.
fn recommended(earlier: &[(i64, i32)]) -> History {
    let recommendations = earlier
        .iter()
        .map(|(ago, replicas)| Recommendation { replicas: *replicas, at: now() - seconds(*ago) })
        .collect();
    History { recommendations, ..History::default() }
}

fn replicas(recommended: i32, bounds: Bounds, behavior: Option<&Behavior>, mut history: History) -> Normalized {
    normalize(recommended, bounds, behavior, seconds(300), &mut history, now())
}

#[test]
fn without_a_behavior_the_highest_recommendation_of_the_window_counts() {
    for (name, wanted, earlier, expected, able) in [
        ("nothing earlier", 5, &[][..], 5, Able::ReadyForNewScale),
        ("a higher one in the window", 5, &[(299, 8)], 8, Able::ScaleDownStabilized),
        ("at the begin of the window", 5, &[(300, 8)], 8, Able::ScaleDownStabilized),
        ("before the window", 5, &[(301, 8)], 5, Able::ReadyForNewScale),
        ("a lower one changes nothing", 9, &[(10, 8)], 9, Able::ReadyForNewScale),
    ] {
        let found = replicas(wanted, bounds(10), None, recommended(earlier));
        assert_eq!((found.replicas, found.able), (expected, able), "{name}");
        assert_eq!((found.limited, found.is_limited), (Limited::DesiredWithinRange, false), "{name}");
    }
}

#[test]
fn without_a_behavior_replicas_at_most_double_or_become_four() {
    for (name, wanted, current, min, max, expected) in [
        ("twice", 50, 10, 1, 100, (20, Limited::ScaleUpLimit)),
        ("four at least", 50, 1, 1, 100, (4, Limited::ScaleUpLimit)),
        ("the most goes before", 50, 10, 1, 15, (15, Limited::TooManyReplicas)),
        ("the least", 1, 10, 3, 15, (3, Limited::TooFewReplicas)),
        ("within", 12, 10, 3, 15, (12, Limited::DesiredWithinRange)),
        ("a flood", i32::MAX, i32::MAX - 1, 1, i32::MAX, (i32::MAX, Limited::DesiredWithinRange)),
        ("to zero", 0, 5, 0, 15, (0, Limited::DesiredWithinRange)),
        ("less than nothing", i32::MIN, 10, 1, 15, (1, Limited::TooFewReplicas)),
    ] {
        let found = replicas(wanted, Bounds { current, min, max }, None, History::default());
        assert_eq!((found.replicas, found.limited), expected, "{name}");
        assert_eq!(found.is_limited, found.replicas != wanted, "{name}");
    }
}

fn rules(window: Option<i32>, select: SelectPolicy, policies: &[(PolicyType, i32, i32)]) -> ScalingRules {
    let policy = |(r#type, value, period_seconds)| Policy { r#type, value, period_seconds };
    let policies = policies.iter().copied().map(policy).collect();
    ScalingRules { stabilization_window: window, select, policies, tolerance: None }
}

fn behavior(up: ScalingRules, down: ScalingRules) -> Behavior {
    Behavior { up, down }
}

use PolicyType::{Percent, Pods};
use SelectPolicy::{Disabled, Max, Min};

#[test]
fn with_a_behavior_recommendations_stay_between_the_lowest_and_the_highest_of_their_windows() {
    let all = [(Percent, 100, 15)];
    for (name, wanted, current, earlier, up, down, expected, able) in [
        ("up at once", 20, 10, &[(5, 12)][..], 0, 0, 20, Able::ReadyForNewScale),
        ("up by the lowest", 20, 10, &[(5, 12)], 60, 0, 12, Able::ScaleUpStabilized),
        ("up: the begin of the window is left out", 20, 10, &[(60, 12)], 60, 0, 20, Able::ReadyForNewScale),
        ("up: lower than there are changes nothing", 20, 10, &[(5, 3)], 60, 300, 10, Able::ScaleUpStabilized),
        ("down by the highest", 5, 10, &[(5, 8)], 0, 60, 8, Able::ScaleDownStabilized),
        ("down: higher than there are changes nothing", 5, 10, &[(5, 30)], 0, 60, 10, Able::ScaleDownStabilized),
        ("down: after the window", 6, 10, &[(61, 8)], 0, 60, 6, Able::ReadyForNewScale),
    ] {
        let behavior = behavior(rules(Some(up), Max, &all), rules(Some(down), Max, &all));
        let found = replicas(wanted, bounds(current), Some(&behavior), recommended(earlier));
        assert_eq!((found.replicas, found.able), (expected, able), "{name}");
    }
}

#[test]
fn the_window_for_scaling_down_is_that_of_the_settings_where_a_behavior_has_none() {
    let all = [(Percent, 100, 15)];
    let behavior = behavior(rules(Some(0), Max, &all), rules(None, Max, &all));
    assert_eq!(replicas(5, bounds(10), Some(&behavior), recommended(&[(299, 8)])).replicas, 8);
    assert_eq!(replicas(5, bounds(10), Some(&behavior), recommended(&[(301, 8)])).replicas, 5);
}

fn at_once() -> ScalingRules {
    rules(Some(0), Max, &[(Percent, 100, 15)])
}

fn up(select: SelectPolicy, policies: &[(PolicyType, i32, i32)]) -> Behavior {
    behavior(rules(Some(0), select, policies), at_once())
}

fn down(select: SelectPolicy, policies: &[(PolicyType, i32, i32)]) -> Behavior {
    behavior(at_once(), rules(Some(0), select, policies))
}

fn change(ago: i64, by: i32) -> Change {
    Change { by, at: now() - seconds(ago) }
}

fn changes(ups: &[Change], downs: &[Change]) -> History {
    History { ups: ups.to_vec(), downs: downs.to_vec(), ..History::default() }
}

fn ups(ups: &[Change]) -> History {
    changes(ups, &[])
}

fn downs(downs: &[Change]) -> History {
    changes(&[], downs)
}

#[test]
fn policies_limit_the_change_of_their_periods() {
    let none_before = History::default;
    for (name, wanted, behavior, history, expected) in [
        ("pods", 50, up(Max, &[(Pods, 4, 60)]), none_before(), (14, Limited::ScaleUpLimit)),
        ("per cent", 50, up(Max, &[(Percent, 50, 60)]), none_before(), (15, Limited::ScaleUpLimit)),
        ("per cent, rounded up", 50, up(Max, &[(Percent, 1, 60)]), none_before(), (11, Limited::ScaleUpLimit)),
        (
            "the greater change",
            50,
            up(Max, &[(Pods, 4, 60), (Percent, 50, 60)]),
            none_before(),
            (15, Limited::ScaleUpLimit),
        ),
        (
            "the smaller change",
            50,
            up(Min, &[(Pods, 4, 60), (Percent, 50, 60)]),
            none_before(),
            (14, Limited::ScaleUpLimit),
        ),
        ("disabled", 50, up(Disabled, &[(Pods, 4, 60)]), none_before(), (10, Limited::ScaleUpLimit)),
        (
            "what was added in the period",
            50,
            up(Max, &[(Pods, 4, 60)]),
            ups(&[change(30, 3)]),
            (11, Limited::ScaleUpLimit),
        ),
        ("what was added before it", 50, up(Max, &[(Pods, 4, 60)]), ups(&[change(60, 3)]), (14, Limited::ScaleUpLimit)),
        (
            "more than allowed was added",
            50,
            up(Max, &[(Pods, 4, 60)]),
            ups(&[change(30, 9)]),
            (10, Limited::ScaleUpLimit),
        ),
        (
            "what was removed comes back",
            50,
            up(Max, &[(Pods, 4, 60)]),
            downs(&[change(30, 5)]),
            (19, Limited::ScaleUpLimit),
        ),
        ("the most goes before", 500, up(Max, &[(Pods, 400, 60)]), none_before(), (100, Limited::TooManyReplicas)),
        ("down by pods", 2, down(Max, &[(Pods, 3, 60)]), none_before(), (7, Limited::ScaleDownLimit)),
        (
            "down by per cent, rounded down",
            2,
            down(Max, &[(Percent, 25, 60)]),
            none_before(),
            (7, Limited::ScaleDownLimit),
        ),
        (
            "down by the greater change",
            2,
            down(Max, &[(Pods, 1, 60), (Percent, 50, 60)]),
            none_before(),
            (5, Limited::ScaleDownLimit),
        ),
        (
            "down by the smaller change",
            2,
            down(Min, &[(Pods, 1, 60), (Percent, 50, 60)]),
            none_before(),
            (9, Limited::ScaleDownLimit),
        ),
        ("down disabled", 2, down(Disabled, &[(Pods, 1, 60)]), none_before(), (10, Limited::ScaleDownLimit)),
        (
            "what was removed in the period",
            2,
            down(Max, &[(Pods, 4, 60)]),
            downs(&[change(30, 3)]),
            (9, Limited::ScaleDownLimit),
        ),
        ("the least goes before", 0, down(Max, &[(Pods, 90, 60)]), none_before(), (2, Limited::TooFewReplicas)),
        ("within all", 12, up(Max, &[(Pods, 4, 60)]), none_before(), (12, Limited::DesiredWithinRange)),
    ] {
        let found = replicas(wanted, bounds(10), Some(&behavior), history);
        assert_eq!((found.replicas, found.limited), expected, "{name}");
    }
}

#[test]
fn what_was_scaled_in_the_period_of_a_policy_counts_in_both_directions() {
    let none_before = History::default;
    for (name, wanted, behavior, history, expected) in [
        ("per cent after ups", 50, up(Max, &[(Percent, 50, 60)]), ups(&[change(30, 3)]), (11, Limited::ScaleUpLimit)),
        (
            "per cent after many ups",
            50,
            up(Max, &[(Percent, 50, 60)]),
            ups(&[change(30, 9)]),
            (10, Limited::ScaleUpLimit),
        ),
        (
            "per cent after downs",
            50,
            up(Max, &[(Percent, 50, 60)]),
            downs(&[change(30, 5)]),
            (23, Limited::ScaleUpLimit),
        ),
        (
            "per cent after both",
            50,
            up(Max, &[(Percent, 50, 60)]),
            changes(&[change(30, 3)], &[change(20, 5)]),
            (18, Limited::ScaleUpLimit),
        ),
        (
            "pods after both",
            50,
            up(Max, &[(Pods, 4, 60)]),
            changes(&[change(30, 3)], &[change(20, 5)]),
            (16, Limited::ScaleUpLimit),
        ),
        ("down after ups", 2, down(Max, &[(Pods, 4, 60)]), ups(&[change(30, 3)]), (3, Limited::ScaleDownLimit)),
        (
            "down after both",
            2,
            down(Max, &[(Pods, 4, 60)]),
            changes(&[change(30, 3)], &[change(20, 5)]),
            (8, Limited::ScaleDownLimit),
        ),
        (
            "down by per cent after ups",
            2,
            down(Max, &[(Percent, 25, 60)]),
            ups(&[change(30, 2)]),
            (6, Limited::ScaleDownLimit),
        ),
        (
            "down by per cent after downs",
            2,
            down(Max, &[(Percent, 25, 60)]),
            downs(&[change(30, 3)]),
            (9, Limited::ScaleDownLimit),
        ),
        (
            "down by per cent after both",
            2,
            down(Max, &[(Percent, 25, 60)]),
            changes(&[change(30, 3)], &[change(20, 5)]),
            (9, Limited::ScaleDownLimit),
        ),
        (
            "downs that use all of a policy",
            2,
            down(Max, &[(Pods, 4, 60)]),
            downs(&[change(30, 4)]),
            (10, Limited::ScaleDownLimit),
        ),
        (
            "downs that use more than all of a policy",
            2,
            down(Max, &[(Percent, 25, 60)]),
            downs(&[change(30, 6)]),
            (10, Limited::ScaleDownLimit),
        ),
        ("down by more than all", 0, down(Max, &[(Percent, 150, 60)]), none_before(), (2, Limited::TooFewReplicas)),
    ] {
        let found = replicas(wanted, bounds(10), Some(&behavior), history);
        assert_eq!((found.replicas, found.limited), expected, "{name}");
    }
}

#[test]
fn the_last_recommendation_that_is_out_of_date_is_replaced() {
    let mut history = recommended(&[(400, 1), (301, 2), (200, 3)]);
    normalize(5, bounds(5), None, seconds(300), &mut history, now());
    let found: Vec<i32> = history.recommendations.iter().map(|it| it.replicas).collect();
    assert_eq!(found, [1, 5, 3]);
    normalize(6, bounds(5), None, seconds(500), &mut history, now());
    assert_eq!(history.recommendations.len(), 4, "none is out of date");
}

#[test]
fn a_behavior_keeps_recommendations_for_the_longer_of_its_windows_and_scales_to_a_minimum_of_zero() {
    let all = [(Percent, 100, 15)];
    let behavior = behavior(rules(Some(60), Max, &all), rules(Some(300), Max, &all));
    for (earlier, expected) in
        [(&[(400, 1), (200, 2)][..], &[5, 2][..]), (&[(200, 2)], &[2, 5]), (&[(300, 1)], &[1, 5])]
    {
        let mut history = recommended(earlier);
        normalize(5, bounds(5), Some(&behavior), seconds(300), &mut history, now());
        let found: Vec<i32> = history.recommendations.iter().map(|it| it.replicas).collect();
        assert_eq!(found, expected, "{earlier:?}");
    }
    let bounds = Bounds { current: 10, min: 0, max: 15 };
    let found = replicas(0, bounds, Some(&behavior), History::default());
    assert_eq!((found.replicas, found.limited), (0, Limited::DesiredWithinRange));
}

#[test]
fn changes_are_remembered_for_the_longest_period_of_their_direction() {
    let behavior =
        behavior(rules(Some(0), Max, &[(Pods, 4, 60), (Pods, 9, 120)]), rules(Some(0), Max, &[(Pods, 4, 30)]));
    let mut history = History::default();
    history.scaled(None, 1, 5, now());
    assert_eq!(history, History::default(), "only a behavior asks for them");
    for (ago, from, to) in [(121, 1, 3), (60, 3, 6), (31, 6, 2), (0, 2, 9)] {
        history.scaled(Some(&behavior), from, to, now() - seconds(ago));
    }
    let by = |changes: &[Change]| changes.iter().map(|change| change.by).collect::<Vec<_>>();
    assert_eq!((by(&history.ups), by(&history.downs)), (vec![7, 3], vec![4]));
}

/// The table of upstream's `TestStoreScaleEvents`, for both directions.
#[test]
fn a_change_replaces_the_last_one_that_is_out_of_date_for_all_policies() {
    /// Policies by type, value and period.
    type Policies = Option<&'static [(PolicyType, i32, i32)]>;
    /// Name, earlier changes by age, policies, sum of the last minute, and the changes that are kept.
    type Row = (&'static str, &'static [(i64, i32)], Policies, i32, &'static [i32]);
    let rows: [Row; 8] = [
        ("nothing earlier, without a behavior", &[], None, 0, &[]),
        ("nothing earlier, with two policies", &[], Some(&[(Pods, 10, 60), (Percent, 100, 60)]), 0, &[5]),
        ("out of date, without a behavior", &[(61, 7)], None, 0, &[7]),
        ("out of date", &[(61, 7)], Some(&[(Pods, 10, 60), (Percent, 100, 60)]), 0, &[5]),
        ("in the period", &[(58, 7)], Some(&[(Pods, 10, 60), (Percent, 100, 60)]), 7, &[7, 5]),
        ("two entries, one of them to be replaced", &[(61, 7), (59, 6)], Some(&[(Pods, 10, 60)]), 6, &[5, 6]),
        (
            "policies with different periods",
            &[(29, 8), (59, 6), (61, 7), (61, 9)],
            Some(&[(Pods, 10, 60), (Percent, 100, 30)]),
            14,
            &[8, 6, 7, 5],
        ),
        (
            "two entries, both in the period",
            &[(58, 7), (59, 6)],
            Some(&[(Pods, 10, 120), (Percent, 100, 30)]),
            13,
            &[7, 6, 5],
        ),
    ];
    for (name, earlier, policies, expected_change, expected) in rows {
        let earlier: Vec<Change> = earlier.iter().map(|(ago, by)| change(*ago, *by)).collect();
        let rules = policies.map(|policies| rules(Some(0), Max, policies));
        let behavior = rules.map(|rules| behavior(rules.clone(), rules));
        let mut history = changes(&earlier, &earlier);
        assert_eq!(changed_within(&history.ups, 60, now()), expected_change, "{name}");
        history.scaled(behavior.as_ref(), 10, 15, now());
        history.scaled(behavior.as_ref(), 10, 5, now());
        let by = |changes: &[Change]| changes.iter().map(|change| change.by).collect::<Vec<_>>();
        assert_eq!((by(&history.ups), by(&history.downs)), (expected.to_vec(), expected.to_vec()), "{name}");
    }
}

#[test]
fn a_recommendation_reuses_one_that_is_out_of_date_for_both_windows() {
    let minutes = |minutes: i64| minutes * 60;
    for (name, windows, current, wanted, earlier, expected) in [
        (
            "scaling down",
            (0, 180),
            100,
            3,
            [(minutes(10), 10), (minutes(1), 4), (minutes(2), 5), (minutes(9), 9)],
            (5, [10, 4, 5, 3]),
        ),
        (
            "scaling up: only the first is out of date",
            (300, 0),
            1,
            100,
            [(minutes(100), 10), (minutes(1), 6), (minutes(2), 5), (minutes(3), 9)],
            (5, [100, 6, 5, 9]),
        ),
    ] {
        let (up, down) = windows;
        let behavior =
            behavior(rules(Some(up), Max, &[(Pods, 1_000, 15)]), rules(Some(down), Max, &[(Percent, 100, 15)]));
        let bounds = Bounds { current, min: 1, max: 1_000 };
        let mut history = recommended(&earlier);
        let found = normalize(wanted, bounds, Some(&behavior), seconds(300), &mut history, now());
        let kept: Vec<i32> = history.recommendations.iter().map(|it| it.replicas).collect();
        assert_eq!((found.replicas, &*kept), (expected.0, &expected.1[..]), "{name}");
    }
}
