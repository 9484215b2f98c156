//! Outages of the connection.

use super::*;

#[test]
fn nothing_is_requested_while_the_connection_is_lost() {
    for start in [asking, streaming, paging, asking_to_watch, watching, watching_again] {
        let mut protocol = lost(start());
        drop(protocol.step(Input::Failed(Failure::Broken), seconds(9)));
        assert_eq!(protocol.deadline(), Duration::MAX);
        assert_eq!(protocol.step(Input::Deadline, seconds(100_000)), Effect::Nothing);
    }
}

#[test]
fn after_an_outage_the_next_request_comes_soon_and_without_a_back_off() {
    for (name, start, question) in [
        ("a list", asking as fn() -> Protocol, "streaming list"),
        ("a page", second_page, "streaming list"),
        ("a watch", asking_to_watch, "watch from 7"),
    ] {
        let mut protocol = start();
        fail_repeatedly(&mut protocol, 2, seconds(0));
        protocol = lost(protocol);
        drop(protocol.step(Input::Failed(Failure::Broken), seconds(60)));
        let now = seconds(3600);
        assert_eq!(protocol.connection_restored(now), Effect::Nothing, "{name}");
        let due = protocol.deadline();
        assert!((now..now + Protocol::RESUMED_WITHIN).contains(&due), "{name}: {due:?}");
        let Effect::Open(ask) = protocol.step(Input::Deadline, due) else { panic!("{name}: must ask") };
        assert_eq!(words(&ask), question, "{name}");
        drop(protocol.step(Input::Failed(Failure::Refused), due));
        assert_next(name, protocol, due, &Next::After(FIRST, question));
    }
}

#[test]
fn a_request_from_before_an_outage_is_repeated_and_an_open_watch_goes_on() {
    let mut protocol = lost(asking_to_watch());
    assert_eq!(protocol.connection_restored(seconds(9)), CLOSED);
    assert!(protocol.deadline() < seconds(9) + Protocol::RESUMED_WITHIN);
    let mut protocol = lost(watching());
    assert_eq!(protocol.connection_restored(seconds(9)), Effect::Nothing);
    assert_next("an open watch", protocol, seconds(9), &Next::Open);
}

#[test]
fn a_watch_of_storage_that_has_gone_back_ends_in_a_list() {
    let mut protocol = watching();
    assert_eq!(protocol.relist(seconds(9)), CLOSED);
    assert_next("watching", protocol, seconds(9), &Next::AtOnce("streaming list"));
    let mut protocol = streaming();
    assert_eq!(protocol.relist(seconds(9)), Effect::Nothing, "it lists already");
    assert_next("listing", protocol, seconds(9), &Next::Open);
}

#[test]
fn requests_after_an_outage_are_spread() {
    let due = |seed| {
        let mut protocol = lost(Protocol::new(seed));
        drop(protocol.connection_restored(seconds(9)));
        protocol.deadline().saturating_sub(seconds(9))
    };
    let drawn: Vec<Duration> = (0..100).map(due).collect();
    assert!(drawn.iter().all(|drawn| *drawn < Protocol::RESUMED_WITHIN));
    assert!(drawn.iter().any(|drawn| *drawn < Protocol::RESUMED_WITHIN / 10), "{drawn:?}");
    assert!(drawn.iter().any(|drawn| *drawn > Protocol::RESUMED_WITHIN * 9 / 10), "{drawn:?}");
}
