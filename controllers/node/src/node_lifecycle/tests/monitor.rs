//! The time for which Nodes are silent.

use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::Uid;
use kcm_framework::api::views::{NodeHealth, NodeReady};
use serde_json::json;
use tokio::time::Instant;

use super::{health_reader, node_view};
use crate::node_lifecycle::monitor::{Monitor, Periods, Signs, Times, Verdict};
use crate::tests::key;

const PERIODS: Periods = Periods { monitor_grace: Duration::from_secs(50), startup_grace: Duration::from_mins(1) };

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_355_200 + second).unwrap()
}

/// The condition Ready with a heartbeat.
fn ready(status: &str, heartbeat: i64) -> Option<NodeReady> {
    let condition = json!({ "type": "Ready", "status": status, "lastHeartbeatTime": time(heartbeat) });
    let node = node_view(&json!({ "metadata": {}, "status": { "conditions": [condition] } }));
    let health: &NodeHealth = health_reader().of(&node);
    health.ready
}

/// A Node that is looked at again and again.
struct Watched {
    monitor: Monitor,
    start: Instant,
    uid: &'static str,
    /// Time since which the API server has been watched.
    since: u64,
}

impl Watched {
    fn new() -> Self {
        Self { monitor: Monitor::default(), start: Instant::now(), uid: "u", since: 0 }
    }

    fn look(&mut self, second: u64, ready: Option<NodeReady>, renewed: Option<i64>) -> Verdict {
        let at = |second| self.start + Duration::from_secs(second);
        let times = Times { now: at(second), watched_since: at(self.since), pass: second };
        let uid = Uid::from(self.uid);
        let signs = Signs { key: &key("n"), uid: &uid, ready, renewed: renewed.map(time) };
        self.monitor.look(signs, PERIODS, times).verdict
    }
}

use Verdict::{Alive, KnownSilent, Silent};

#[test]
fn s29_s31_a_node_is_silent_after_its_grace_period() {
    let mut node = Watched::new();
    assert_eq!(node.look(0, ready("True", 0), None), Alive);
    assert_eq!(node.look(50, ready("True", 0), None), Alive);
    assert_eq!(node.look(51, ready("True", 0), None), Silent);
    assert_eq!(node.look(56, ready("Unknown", 0), None), KnownSilent);
    assert_eq!(node.look(60, ready("True", 60), None), Alive);
    assert_eq!(node.look(111, ready("False", 60), None), Silent);
}

#[test]
fn s28_a_node_that_never_reported_has_the_grace_period_of_its_start() {
    let mut node = Watched::new();
    assert_eq!(
        [node.look(0, None, None), node.look(60, None, None), node.look(61, None, None)],
        [Alive, Alive, Silent]
    );
}

#[test]
fn s30_a_node_that_renews_its_lease_is_alive() {
    let mut node = Watched::new();
    for second in 0..40_u32 {
        let second = u64::from(second) * 10;
        let renewed = i64::try_from(second).unwrap();
        assert_eq!(node.look(second, ready("True", 0), Some(renewed)), Alive, "{second}");
    }
    assert_eq!(node.look(441, ready("True", 0), Some(390)), Silent);
}

#[test]
fn t22_a_lease_and_a_heartbeat_that_go_back_are_signs_of_life() {
    let mut node = Watched::new();
    node.look(0, ready("True", 1000), Some(1000));
    assert_eq!(node.look(45, ready("True", 1000), Some(10)), Alive);
    assert_eq!(node.look(94, ready("True", 1000), Some(10)), Alive);
    assert_eq!(node.look(95, ready("True", 20), Some(10)), Alive);
    assert_eq!(node.look(145, ready("True", 20), Some(10)), Alive);
}

#[test]
fn t12_a_lease_that_is_touched_without_a_renewal_keeps_no_dead_node_ready() {
    let mut node = Watched::new();
    node.look(0, ready("True", 0), Some(5));
    assert_eq!(node.look(51, ready("True", 0), Some(5)), Silent);
    assert!(!node.monitor.is_renewed(&key("n"), Some(time(5)), node.start));
    assert!(!node.monitor.is_renewed(&key("n"), None, node.start), "a lease that is gone is no sign of life");
}

#[test]
fn b7_a_lease_that_was_renewed_behind_the_cache_is_a_sign_of_life() {
    let mut node = Watched::new();
    node.look(0, ready("True", 0), Some(5));
    assert_eq!(node.look(51, ready("True", 0), Some(5)), Silent);
    let now = node.start + Duration::from_secs(51);
    assert!(node.monitor.is_renewed(&key("n"), Some(time(48)), now));
    assert_eq!(node.look(56, ready("True", 0), Some(48)), Alive);
    assert_eq!(node.look(102, ready("True", 0), Some(48)), Silent);
}

#[test]
fn t21_a_node_that_was_recreated_inherits_nothing() {
    let mut node = Watched::new();
    node.look(0, ready("True", 0), None);
    node.uid = "v";
    assert_eq!([node.look(100, None, None), node.look(160, None, None)], [Alive, Alive]);
}

#[test]
fn b8_silence_while_nobody_watched_does_not_count() {
    let mut node = Watched::new();
    node.look(0, ready("True", 0), None);
    node.since = 100;
    assert_eq!(node.look(150, ready("True", 0), None), Alive);
    assert_eq!(node.look(151, ready("True", 0), None), Silent);
}

#[test]
fn s26_nodes_that_a_pass_did_not_see_are_forgotten() {
    let mut node = Watched::new();
    node.look(7, None, None);
    assert!(node.monitor.forget_unseen(7).is_empty());
    assert_eq!(node.monitor.forget_unseen(8), [(key("n"), Uid::from("u"))]);
    assert!(node.monitor.forget_unseen(8).is_empty());
}
