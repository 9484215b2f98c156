//! Which Nodes may be tainted, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::node_lifecycle::tainting::{Disruption, Judged, Tainting};
use crate::node_lifecycle::zone::{Rates, ZoneCount};
use crate::tests::key;

const RATES: Rates = Rates { eviction: 0.1, secondary: 0.01, large: 50, unhealthy: 0.55 };

/// The queues, with a clock.
struct Zones {
    tainting: Tainting,
    start: Instant,
}

impl Zones {
    fn new() -> Self {
        Self { tainting: Tainting::new(RATES), start: Instant::now() }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    /// Judges zones of so many ready and other Nodes.
    fn judge(&mut self, second: u64, zones: &[(&str, usize, usize)]) -> Disruption {
        let count = |(name, ready, not_ready): &(&str, usize, usize)| {
            ((*name).into(), ZoneCount { ready: *ready, not_ready: *not_ready })
        };
        let counts: BTreeMap<_, _> = zones.iter().map(count).collect();
        self.tainting.judge(&counts, self.at(second))
    }

    /// Enqueues Nodes, as zone and name.
    fn enqueue(&mut self, second: u64, nodes: &[(&str, &str)]) {
        let judged = |(zone, name): &(&str, &str)| Judged {
            key: key(name),
            zone: (*zone).into(),
            is_excluded: false,
            is_ready: false,
            lacks_taint: true,
        };
        let nodes: Vec<Judged> = nodes.iter().map(judged).collect();
        let now = self.at(second);
        self.tainting.enqueue(&nodes, now);
    }

    fn grant(&mut self, second: u64) -> Vec<String> {
        let now = self.at(second);
        self.tainting.grant(now).iter().map(|key| key.name().to_owned()).collect()
    }
}

#[test]
fn nodes_are_tainted_at_the_rate_of_their_zone() {
    let mut zones = Zones::new();
    zones.judge(0, &[("a", 5, 2), ("b", 5, 1)]);
    zones.enqueue(0, &[("a", "a1"), ("a", "a2"), ("b", "b1")]);
    assert_eq!(zones.grant(0), ["a1", "b1"]);
    assert!(zones.grant(9).is_empty());
    assert_eq!(zones.grant(10), ["a2"]);
    assert!(zones.tainting.is_granted(&key("a1")));
    zones.enqueue(11, &[]);
    assert!(!zones.tainting.is_granted(&key("a1")), "it is tainted, or ready again");
}

#[test]
fn nothing_is_tainted_before_a_complete_pass() {
    let mut zones = Zones::new();
    zones.enqueue(0, &[("a", "a1")]);
    assert!(zones.grant(100).is_empty());
    zones.judge(100, &[("a", 5, 1)]);
    assert_eq!(zones.grant(100), ["a1"]);
}

#[test]
fn the_worked_example_sixty_of_a_hundred_nodes_die() {
    let mut zones = Zones::new();
    zones.judge(0, &[("a", 100, 0)]);
    let nodes: Vec<String> = (0..60).map(|number| format!("n{number:02}")).collect();
    let nodes: Vec<(&str, &str)> = nodes.iter().map(|name| ("a", name.as_str())).collect();
    zones.judge(10, &[("a", 40, 60)]);
    zones.enqueue(10, &nodes);
    let granted: usize = (10..=1010).map(|second| zones.grant(second).len()).sum();
    assert_eq!(granted, 11, "the token that was there, and one in a hundred seconds");
}

#[test]
fn t17_t18_a_zone_that_was_stopped_resumes() {
    let mut zones = Zones::new();
    zones.judge(0, &[("a", 10, 0)]);
    zones.judge(1, &[("a", 2, 8)]);
    zones.enqueue(1, &[("a", "a1")]);
    assert!(zones.grant(1000).is_empty(), "a small zone that is disrupted");
    zones.judge(1000, &[("a", 9, 1)]);
    assert_eq!(zones.grant(1011), ["a1"]);
}

#[test]
fn s38_if_no_node_of_any_zone_is_ready_nothing_is_tainted() {
    let mut zones = Zones::new();
    assert_eq!(zones.judge(0, &[("a", 2, 0), ("b", 2, 0)]), Disruption::Unchanged);
    zones.enqueue(0, &[("a", "a1"), ("b", "b1")]);
    assert_eq!(zones.grant(0), ["a1", "b1"]);
    assert_eq!(zones.judge(5, &[("a", 0, 2), ("b", 0, 2)]), Disruption::Begins);
    assert!(zones.tainting.is_all_disrupted() && !zones.tainting.is_granted(&key("a1")));
    zones.enqueue(5, &[("a", "a1"), ("b", "b1")]);
    assert!(zones.grant(1000).is_empty());
    assert_eq!(zones.judge(1000, &[("a", 0, 2), ("b", 0, 2)]), Disruption::Unchanged);
    // A new zone with a ready node ends it.
    assert_eq!(zones.judge(1001, &[("a", 0, 2), ("b", 0, 2), ("c", 1, 0)]), Disruption::Ends);
    zones.enqueue(1001, &[("a", "a1")]);
    assert_eq!(zones.grant(1020), ["a1"]);
}

#[test]
fn a_cluster_whose_nodes_do_not_count_is_not_disrupted() {
    let mut zones = Zones::new();
    assert_eq!(zones.judge(0, &[]), Disruption::Unchanged);
    zones.enqueue(0, &[("", "n")]);
    assert_eq!(zones.grant(0), ["n"], "t16");
    zones.judge(5, &[]);
    zones.enqueue(5, &[("", "n"), ("", "m")]);
    assert!(zones.grant(5).is_empty(), "t16: a pass brings no new token");
}

#[test]
fn t15_a_node_that_changes_its_zone_waits_in_the_new_one_only() {
    let mut zones = Zones::new();
    zones.judge(0, &[("a", 5, 2), ("b", 5, 1)]);
    zones.enqueue(0, &[("a", "a1"), ("a", "n")]);
    assert_eq!(zones.grant(0), ["a1"]);
    zones.enqueue(1, &[("b", "n")]);
    assert_eq!(zones.grant(1), ["n"]);
    assert!(zones.grant(1000).is_empty());
}

#[test]
fn t20_nodes_keep_their_place_in_the_queue() {
    let mut zones = Zones::new();
    zones.judge(0, &[("a", 9, 3)]);
    zones.enqueue(0, &[("a", "n2")]);
    zones.enqueue(5, &[("a", "n1"), ("a", "n2"), ("a", "n3")]);
    assert_eq!([zones.grant(5), zones.grant(15), zones.grant(25)], [["n2"], ["n1"], ["n3"]]);
}
