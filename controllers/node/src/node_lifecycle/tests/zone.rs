//! Zones, their states and rates.

use kcm_framework::api::Labels;

use crate::node_lifecycle::zone::{Rates, ZoneCount, ZoneState, is_excluded, zone_of};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn s23_the_zone_is_named_by_region_and_zone() {
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let (beta_zone, beta_region) =
        ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region");
    for (name, of, expected) in [
        ("none", labels(&[]), ""),
        ("both", labels(&[(zone, "a"), (region, "r")]), "r:\0:a"),
        ("the zone only", labels(&[(zone, "a")]), ":\0:a"),
        ("the region only", labels(&[(region, "r")]), "r:\0:"),
        ("beta labels", labels(&[(beta_zone, "b"), (beta_region, "s")]), "s:\0:b"),
        ("beta before stable", labels(&[(zone, "a"), (beta_zone, "b")]), ":\0:b"),
        ("an empty beta label", labels(&[(zone, "a"), (beta_zone, "")]), ""),
    ] {
        assert_eq!(&*zone_of(&of), expected, "{name}");
    }
}

#[test]
fn s36_a_label_with_any_value_excludes_a_node() {
    assert!(is_excluded(&labels(&[("node.kubernetes.io/exclude-disruption", "false")])));
    assert!(!is_excluded(&labels(&[])));
}

#[test]
fn s37_the_state_follows_from_the_nodes_that_are_not_ready() {
    for (name, ready, not_ready, expected) in [
        ("all are ready", 10, 0, ZoneState::Normal),
        ("one of one", 0, 1, ZoneState::Full),
        ("two of three", 1, 2, ZoneState::Normal),
        ("three of four", 1, 3, ZoneState::Partial),
        ("the worked example: 54 of 100", 46, 54, ZoneState::Normal),
        ("the worked example: 55 of 100", 45, 55, ZoneState::Partial),
        ("the worked example: 60 of 100", 40, 60, ZoneState::Partial),
        ("the worked example: 60 of 60", 0, 60, ZoneState::Full),
        ("none", 0, 0, ZoneState::Normal),
    ] {
        assert_eq!(ZoneCount { ready, not_ready }.state(0.55), expected, "{name}");
    }
    assert_eq!(ZoneCount { ready: 1, not_ready: 99 }.state(100.0), ZoneState::Normal, "a threshold above 1");
}

#[test]
#[expect(clippy::float_cmp, reason = "the rates come from the settings")]
fn s39_the_rate_follows_from_state_and_size() {
    let rates = Rates { eviction: 0.1, secondary: 0.01, large: 50, unhealthy: 0.55 };
    for (state, nodes, rate) in [
        (ZoneState::Normal, 3, 0.1),
        (ZoneState::Full, 3, 0.1),
        (ZoneState::Partial, 50, 0.0),
        (ZoneState::Partial, 51, 0.01),
    ] {
        assert_eq!(rates.of(state, nodes), rate, "{state:?} with {nodes} nodes");
    }
}
