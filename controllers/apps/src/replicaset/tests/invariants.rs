//! The rules of ReplicaSets for every history.

use kcm_simulation::{History, Invariant};
use kcm_testing::sandbox::REPLICA_SETS;

use crate::tests::invariants::{Held, replicas};

const LOOP: &str = "replicaset";

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] =
    &[creates_no_more_than_wanted, deletes_only_surplus_pods, has_as_many_as_wanted_at_rest];

fn creates_no_more_than_wanted(history: &History) -> Held {
    replicas::creates_no_more_than_wanted(history, LOOP, &REPLICA_SETS)
}

fn deletes_only_surplus_pods(history: &History) -> Held {
    replicas::deletes_only_surplus_pods(history, LOOP, &REPLICA_SETS)
}

fn has_as_many_as_wanted_at_rest(history: &History) -> Held {
    replicas::has_as_many_as_wanted_at_rest(history, &REPLICA_SETS)
}

#[test]
fn each_rule_accepts_what_is_right_and_refuses_what_is_not() {
    let rules = [creates_no_more_than_wanted, deletes_only_surplus_pods, has_as_many_as_wanted_at_rest];
    replicas::check_rules(LOOP, &REPLICA_SETS, rules.map(|rule| rule as Invariant));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
