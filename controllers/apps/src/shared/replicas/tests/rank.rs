//! The order of deletion.

use std::sync::Arc;

use kcm_framework::api::views::Pod;
use proptest::prelude::*;

use super::fixtures::{DEFAULTS, PodBuilder, build, names, now, pod};
use crate::shared::replicas::gates::Gates;
use crate::shared::replicas::rank::{Occupancy, age_ratios, rank};

const HOUR: i64 = 3600;

struct Case {
    name: &'static str,
    /// Goes before `then`.
    first: PodBuilder,
    then: PodBuilder,
    /// Pods of related replica sets.
    related: Vec<PodBuilder>,
}

fn case(name: &'static str, first: PodBuilder, then: PodBuilder) -> Case {
    Case { name, first, then, related: Vec::new() }
}

/// The uids sort in the opposite order, so that the tie-break by uid cannot hide a wrong result of the rule under test.
fn first() -> PodBuilder {
    pod("z").node("node")
}

fn then() -> PodBuilder {
    pod("a").node("node")
}

#[test]
fn of_two_pods_the_first_rule_that_differs_decides() {
    let crowded = || vec![pod("p").node("full"), pod("q").node("full"), pod("r").node("free")];
    for Case { name, first, then, related } in [
        case("without a node before with one", first().unassigned().ready(HOUR), then().phase("Pending")),
        case("pending before unknown", first().phase("Pending").ready(HOUR), then().phase("Unknown")),
        case("unknown before running", first().phase("Unknown").ready(HOUR), then()),
        case("no phase as pending", first().phase("").ready(HOUR), then().phase("Unknown")),
        case("a phase that we do not know as pending", first().phase("Odd").ready(HOUR), then().phase("Unknown")),
        case("not ready before ready", first().cost("9"), then().ready(HOUR).cost("1")),
        case("low cost before high cost", first().cost("10").ready(HOUR), then().cost("100").ready(1)),
        case("no cost is 0", first().ready(HOUR), then().cost("1").ready(1)),
        case("negative cost before none", first().cost("-1").ready(HOUR), then().ready(1)),
        Case {
            name: "cost before colocated pods",
            first: first().node("free").cost("1"),
            then: then().node("full").cost("2"),
            related: crowded(),
        },
        Case {
            name: "more colocated pods before fewer",
            first: first().node("full").ready(9 * HOUR).restarts(0),
            then: then().node("free").ready(1).restarts(9),
            related: crowded(),
        },
        case("without a ready time before ready now", first().ready_unknown_since(), then().ready(0)),
        case("ready in the future before ready a while", first().ready(-60), then().ready(60)),
        case("ready shortly before ready long", first().ready(2 * HOUR), then().ready(5 * HOUR)),
        case("ready time before restarts", first().ready(60).restarts(0), then().ready(HOUR).restarts(9)),
        case(
            "restarts where both are ready about as long",
            first().ready(8 * HOUR).restarts(2),
            then().ready(5 * HOUR).restarts(1),
        ),
        case("more restarts before fewer", first().restarts(2).created(9 * HOUR), then().restarts(1).created(1)),
        case(
            "sidecar restarts where restarts are equal",
            first().restarts(1).sidecar_restarts(2).created(9 * HOUR),
            then().restarts(1).sidecar_restarts(1).created(1),
        ),
        case("restarts before sidecar restarts", first().restarts(1), then().sidecar_restarts(9)),
        case("without a creation time before created now", first().created_unknown(), then().created(0)),
        case("newer before older", first().created(60), then().created(HOUR)),
        case("the uid where all else is equal", then().created(5 * HOUR), first().created(8 * HOUR)),
        case("the name where there is no uid", then().uid(""), first().uid("")),
    ] {
        let occupancy = Occupancy::of(build(&related).iter().map(|pod| &**pod));
        let expected = build(&[first.clone(), then.clone()]);
        for given in [build(&[first.clone(), then.clone()]), build(&[then, first])] {
            assert_eq!(names(&rank(&given, &occupancy, DEFAULTS, now())), names(&expected), "{name}");
        }
    }
}

#[test]
fn costs_are_read_as_strictly_as_upstream() {
    for (text, cost) in [
        ("0", 0),
        ("10", 10),
        ("-10", -10),
        ("-0", 0),
        ("-05", -5),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
        ("2147483648", 0),
        ("+10", 0),
        ("008", 0),
        ("00", 0),
        ("", 0),
        (" 1", 0),
        ("1.5", 0),
        ("-", 0),
        ("x", 0),
    ] {
        // A pod whose cost is one less is deleted before, one whose cost is one more after.
        for (neighbour, expected) in [(cost.checked_sub(1), ["n", "x"]), (cost.checked_add(1), ["x", "n"])] {
            let Some(neighbour) = neighbour else { continue };
            let pods = build(&[pod("x").cost(text), pod("n").cost(&neighbour.to_string())]);
            assert_eq!(
                names(&rank(&pods, &Occupancy::default(), DEFAULTS, now())),
                expected,
                "{text:?} vs {neighbour}"
            );
        }
    }
}

#[test]
fn cost_does_not_count_without_its_gate() {
    let gates = Gates { pod_deletion_cost: false, ..DEFAULTS };
    let pods = build(&[pod("a").cost("1"), pod("b").cost("0").restarts(1), pod("c").cost("-1")]);
    assert_eq!(names(&rank(&pods, &Occupancy::default(), gates, now())), ["b", "a", "c"]);
}

#[test]
fn only_active_pods_count_for_occupancy() {
    let related = [
        pod("failed").node("dead").phase("Failed"),
        pod("terminating").node("dead").terminating(),
        pod("active").node("live"),
    ];
    let occupancy = Occupancy::of(build(&related).iter().map(|pod| &**pod));
    let pods = build(&[pod("a").node("dead"), pod("b").node("live")]);
    assert_eq!(names(&rank(&pods, &occupancy, DEFAULTS, now())), ["b", "a"]);
}

#[test]
fn age_ratios_are_whole_numbers_over_ready_pods() {
    for (name, pods, going, expected) in [
        ("the youngest itself", vec![pod("a").ready(1).created(100), pod("b").ready(1).created(300)], 1, vec![1]),
        ("cut, not rounded", vec![pod("a").ready(1).created(299), pod("b").ready(1).created(100)], 1, vec![2]),
        ("pods that are not ready do not count", vec![pod("a").created(1), pod("b").ready(1).created(9)], 2, vec![1]),
        ("a youngest without age", vec![pod("a").ready(1).created(0), pod("b").ready(1).created(9)], 2, vec![]),
        ("none is ready", vec![pod("a"), pod("b")], 1, vec![]),
    ] {
        assert_eq!(age_ratios(&build(&pods), going, now()), expected, "{name}");
    }
}

prop_compose! {
    fn any_pod()(
        name in "[a-f]{1,3}",
        node in prop::sample::select(vec!["", "one", "two"]),
        phase in prop::sample::select(vec!["Pending", "Running", "Unknown"]),
        ready in prop::option::of(0..4_i64),
        cost in prop::sample::select(vec!["", "1", "-1"]),
        restarts in 0..3,
        created in prop::option::of(-1..6_i64),
    ) -> PodBuilder {
        let pod = pod(&name).node(node).phase(phase).cost(cost).restarts(restarts);
        let pod = match ready {
            None => pod,
            Some(0) => pod.ready_unknown_since(),
            Some(power) => pod.ready(10_i64.pow(u32::try_from(power).unwrap())),
        };
        match created {
            None => pod.created_unknown(),
            Some(seconds) => pod.created(seconds * 30),
        }
    }
}

fn distinct(pods: &[PodBuilder]) -> Vec<Arc<Pod>> {
    let mut pods = build(pods);
    pods.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    pods.dedup_by(|a, b| a.metadata.key == b.metadata.key);
    pods
}

proptest! {
    #[test]
    fn the_order_does_not_depend_on_how_pods_are_given(
        (given, shuffled) in prop::collection::vec(any_pod(), 0..12).prop_map(|pods| distinct(&pods))
            .prop_flat_map(|pods| (Just(pods.clone()), Just(pods).prop_shuffle()))
    ) {
        let occupancy = Occupancy::of(given.iter().map(|pod| &**pod));
        let (one, other) = (rank(&given, &occupancy, DEFAULTS, now()), rank(&shuffled, &occupancy, DEFAULTS, now()));
        prop_assert_eq!(names(&one), names(&other));
    }

    #[test]
    fn a_pod_that_is_first_of_all_is_first_of_any_subset(
        pods in prop::collection::vec(any_pod(), 3..8).prop_map(|pods| distinct(&pods))
    ) {
        let occupancy = Occupancy::of(pods.iter().map(|pod| &**pod));
        let all = rank(&pods, &occupancy, DEFAULTS, now());
        for (at, earlier) in all.iter().enumerate() {
            for later in &all[at + 1..] {
                let two = rank(&[Arc::clone(later), Arc::clone(earlier)], &occupancy, DEFAULTS, now());
                prop_assert_eq!(names(&two)[0], earlier.metadata.key.name());
            }
        }
    }
}
