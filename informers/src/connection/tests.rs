//! The state of a connection: what a suspicion and a probe lead to, and when probes begin.

use std::time::Duration;

use proptest::prelude::*;

use super::probe::Probed;
use super::state::{PROBE_GAP, Reachability, State, Transition};
use super::{Connection, ConnectionChange};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn fails(cause: &str) -> Probed {
    Probed::Fails(cause.to_owned())
}

/// Probes at `begun`; the result comes at once.
fn probed(state: &mut State, begun: Duration, result: Probed) -> Option<Transition> {
    state.probe_begins(begun);
    state.probe_ended(begun, result, begun)
}

/// A request failed at 1 s, and so did the probe.
fn lost() -> State {
    let mut state = State::new(7);
    state.suspect(&"refused", millis(1000));
    let lost = probed(&mut state, millis(1000), fails("connection refused"));
    assert_eq!(lost, Some(Transition::Lost { cause: "connection refused".to_owned() }));
    state
}

#[test]
fn a_connection_that_nothing_suspects_is_not_probed() {
    let state = State::new(7);
    assert_eq!((state.probe_at(), state.reachability()), (None, Reachability::Reachable));
}

#[test]
fn a_failed_request_is_a_suspicion_and_the_probe_decides() {
    let mut state = State::new(7);
    state.suspect(&"refused", millis(1000));
    assert_eq!(state.reachability(), Reachability::Suspected);
    assert!(state.probe_at().unwrap() <= millis(1000), "at once");
    assert_eq!(state.trouble(millis(1500)), Some((millis(500), "refused".to_owned())));
    assert_eq!(probed(&mut state, millis(1500), Probed::Serves), None);
    assert_eq!((state.reachability(), state.probe_at(), state.outages()), (Reachability::Reachable, None, 0));
    let state = lost();
    assert_eq!((state.reachability(), state.outages()), (Reachability::Unreachable, 1));
}

#[test]
fn a_request_that_fails_after_a_probe_began_is_not_judged_by_it() {
    let mut state = State::new(7);
    state.suspect(&"one", millis(1000));
    state.probe_begins(millis(1000));
    state.suspect(&"two", millis(1001));
    assert_eq!(state.probe_ended(millis(1000), Probed::Serves, millis(1002)), None);
    assert_eq!((state.reachability(), state.confirmed_at()), (Reachability::Suspected, Some(millis(1000))));
    assert!(state.probe_at().unwrap() <= millis(1000) + PROBE_GAP);
}

#[test]
fn an_outage_ends_with_the_first_probe_that_succeeds_and_lasts_from_the_first_failure() {
    let mut state = lost();
    assert_eq!(probed(&mut state, millis(2000), fails("still")), None);
    assert_eq!(state.trouble(millis(3000)), Some((millis(2000), "still".to_owned())));
    let restored = probed(&mut state, millis(61_000), Probed::Serves);
    assert_eq!(restored, Some(Transition::Restored { after: millis(60_000) }));
    assert_eq!((state.reachability(), state.probe_at()), (Reachability::Reachable, None));
}

#[test]
fn a_server_that_forbids_the_probe_does_not_serve_for_ten_seconds() {
    let mut state = lost();
    for at in [2000, 6000, 11_999] {
        assert_eq!(probed(&mut state, millis(at), Probed::Forbidden), None, "{at}");
        assert_eq!(state.reachability(), Reachability::Unreachable, "{at}");
    }
    let restored = probed(&mut state, millis(12_000), Probed::Forbidden);
    assert_eq!(restored, Some(Transition::Restored { after: millis(11_000) }));
    state.suspect(&"refused", millis(60_000));
    assert_eq!(probed(&mut state, millis(60_000), Probed::Forbidden), None);
    assert_eq!(state.reachability(), Reachability::Reachable, "the user may not probe");

    let mut state = lost();
    assert_eq!(probed(&mut state, millis(2000), Probed::Forbidden), None);
    let restored = probed(&mut state, millis(3000), Probed::Serves);
    assert_eq!(restored, Some(Transition::Restored { after: millis(2000) }));
    state.suspect(&"refused", millis(60_000));
    let lost = probed(&mut state, millis(60_000), Probed::Forbidden);
    assert!(matches!(lost, Some(Transition::Lost { .. })), "it starts again");
}

#[test]
fn without_a_monitor_a_connection_counts_as_reachable() {
    let mut state = lost();
    state.end();
    state.suspect(&"refused", millis(5000));
    assert_eq!(probed(&mut state, millis(6000), fails("late")), None);
    assert_eq!((state.reachability(), state.probe_at()), (Reachability::Reachable, None));
}

#[test]
fn fresh_connections_are_probed_before_an_outage_begins_and_every_three_to_six_seconds_of_it() {
    let mut state = State::new(7);
    assert!(!state.wants_fresh(millis(1000)), "nothing is suspected");
    for at in [1000, 1500] {
        state.suspect(&"refused", millis(at));
        assert!(state.wants_fresh(millis(at)), "{at}");
        state.fresh_begins(millis(at));
        assert_eq!(probed(&mut state, millis(at), Probed::Serves), None);
    }
    let mut state = lost();
    state.fresh_begins(millis(1000));
    assert!(!state.wants_fresh(millis(3999)) && state.wants_fresh(millis(7000)));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_depends_on_another_is_reachable_while_both_are() {
    let lose = |connection: &Connection| {
        connection.suspect(&"refused");
        connection.with_state(|state, now| probed(state, now, fails("no")));
    };
    let restore = |connection: &Connection| {
        connection.with_state(|state, now| probed(state, now, Probed::Serves));
    };
    let (base, _monitor) = Connection::new(7);
    let (dependent, _other) = base.dependent(8);
    lose(&dependent);
    assert!(base.is_reachable() && base.outages() == 0, "nobody else sends over it");
    assert!(!dependent.is_reachable());
    restore(&dependent);
    lose(&base);
    assert!(!dependent.is_reachable() && dependent.outages() == 2);
    assert_eq!(dependent.status().reachability, Reachability::Reachable, "its own state");
    lose(&dependent);
    restore(&base);
    assert!(!dependent.is_reachable());
    restore(&dependent);
    assert!(dependent.is_serving() && dependent.outages() == 3);

    base.suspect(&"refused");
    tokio::time::advance(millis(1)).await;
    let verdict = dependent.verdict();
    tokio::pin!(verdict);
    assert!(futures::poll!(&mut verdict).is_pending());
    restore(&base);
    assert!(verdict.await);
}

proptest! {
    #[test]
    fn probes_begin_half_a_gap_to_a_gap_apart_however_many_requests_fail(
        seed: u64,
        steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0_u64..400), 1..200),
    ) {
        let mut state = State::new(seed);
        let (mut now, mut last): (Duration, Option<Duration>) = (Duration::ZERO, None);
        for (suspects, serves, passed) in steps {
            let was_unreachable = state.reachability() == Reachability::Unreachable;
            if suspects {
                state.suspect(&"failed", now);
            }
            if let Some(at) = state.probe_at().map(|at| at.max(now)) {
                if let Some(last) = last {
                    prop_assert!(at >= last + PROBE_GAP / 2);
                    prop_assert!(!was_unreachable || at <= (last + PROBE_GAP).max(now));
                }
                (now, last) = (at, Some(at));
                let result = if serves { Probed::Serves } else { fails("no") };
                let transition = probed(&mut state, now, result);
                prop_assert_eq!(was_unreachable && serves, matches!(transition, Some(Transition::Restored { .. })));
            }
            now += millis(passed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_go_on_when_the_monitor_is_dropped() {
    let (connection, monitor) = Connection::new(7);
    connection.suspect(&"refused");
    let verdict = connection.verdict();
    tokio::pin!(verdict);
    assert!(futures::poll!(&mut verdict).is_pending());
    drop(monitor);
    assert!(verdict.await);
    connection.reachable().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_between_two_looks_is_seen_as_restored() {
    let (connection, _monitor) = Connection::new(7);
    let mut changes = connection.changes();
    connection.suspect(&"refused");
    let lost = |state: &mut State, now| probed(state, now, fails("no"));
    connection.with_state(lost);
    assert_eq!(changes.next().await, ConnectionChange::Lost);
    connection.with_state(|state, now| probed(state, now, Probed::Serves));
    connection.suspect(&"refused");
    connection.with_state(lost);
    connection.with_state(|state, now| probed(state, now, Probed::Serves));
    assert_eq!(changes.next().await, ConnectionChange::Restored);
    assert!(futures::poll!(Box::pin(changes.next())).is_pending());
}
