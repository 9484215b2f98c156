//! The rules of ReplicationControllers for every history.

use kcm_framework::api::views::ReplicationController;
use kcm_framework::api::{KnownView as _, Resource};
use kcm_simulation::{History, Invariant};

use crate::tests::invariants::{Held, replicas};

const LOOP: &str = "replicationmanager";

const CONTROLLERS: Resource = ReplicationController::RESOURCE;

/// The rules, for scenarios.
pub(crate) const RULES: &[Invariant] =
    &[creates_no_more_than_wanted, deletes_only_surplus_pods, has_as_many_as_wanted_at_rest];

fn creates_no_more_than_wanted(history: &History) -> Held {
    replicas::creates_no_more_than_wanted(history, LOOP, &CONTROLLERS)
}

fn deletes_only_surplus_pods(history: &History) -> Held {
    replicas::deletes_only_surplus_pods(history, LOOP, &CONTROLLERS)
}

fn has_as_many_as_wanted_at_rest(history: &History) -> Held {
    replicas::has_as_many_as_wanted_at_rest(history, &CONTROLLERS)
}

#[test]
fn each_rule_accepts_what_is_right_and_refuses_what_is_not() {
    let rules = [creates_no_more_than_wanted, deletes_only_surplus_pods, has_as_many_as_wanted_at_rest];
    replicas::check_rules(LOOP, &CONTROLLERS, rules.map(|rule| rule as Invariant));
}

#[test]
fn nothing_is_wrong_with_a_history_without_changes() {
    assert!(RULES.iter().all(|rule| rule(&History::default()).is_ok()));
}
