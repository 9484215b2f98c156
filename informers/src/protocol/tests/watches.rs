//! Watches, and the versions from which they go on.

use super::*;

#[test]
fn a_watch() {
    use Effect::{Advance, Apply, Nothing};
    use Input::{Data, Deadline, Ended, Failed, Object, ResponseStarted, UnreadableEvent};
    let object = || Object(Some(version(9)));
    check(vec![
        ("is accepted", asking_to_watch, 0, ResponseStarted, Nothing, Next::Open),
        ("brings bytes", watching, 1, Data, Nothing, Next::Open),
        ("brings an object", watching_again, 1, object(), Apply, Next::Open),
        ("brings an unreadable object", watching_again, 1, Object(None), Apply, Next::Open),
        ("brings an event that cannot be read", watching_again, 1, UnreadableEvent, Apply, Next::Open),
        ("brings a bookmark", watching_again, 1, bookmark(9, false), Advance(version(9)), Next::Open),
        ("brings a late end of initial events", watching_again, 1, bookmark(9, true), Advance(version(9)), Next::Open),
        ("is closed", watching_again, 1, Ended, CLOSED, Next::AtOnce("watch from 7")),
        ("is closed early but not empty", watching, 0, Ended, CLOSED, Next::AtOnce("watch from 7")),
        ("is very short", watching_again, 0, Ended, given_up(Trouble::Short), Next::After(FIRST, "watch from 7")),
        ("breaks off", watching_again, 1, Failed(Failure::Broken), CLOSED, Next::AtOnce("watch from 7")),
        ("breaks at once", watching_again, 0, Failed(Failure::Broken), CLOSED, Next::After(FIRST, "watch from 7")),
        ("cannot be sent", asking_to_watch, 0, Failed(Failure::Broken), CLOSED, Next::After(FIRST, "watch from 7")),
        (
            "is not answered",
            asking_to_watch,
            DUE,
            Deadline,
            given_up(Trouble::NoAnswer),
            Next::After(FIRST, "watch from 7"),
        ),
        ("is refused", asking_to_watch, 0, Failed(Failure::Refused), CLOSED, Next::After(FIRST, "watch from 7")),
        ("is denied", asking_to_watch, 0, Failed(Failure::Denied), CLOSED, Next::After(FIRST, "watch from 7")),
        ("carries an error", watching, 9, Failed(Failure::Refused), CLOSED, Next::After(FIRST, "watch from 7")),
        ("comes at a bad time", watching, 9, busy(None), CLOSED, Next::After(FIRST, "watch from 7")),
        ("expires", watching, 9, Failed(Failure::Expired), CLOSED, Next::AtOnce("streaming list")),
        ("panics", watching, 9, Failed(Failure::Panicked), CLOSED, Next::After(FIRST, "streaming list")),
        ("falls silent", watching_again, DUE, Deadline, given_up(Trouble::Silent), Next::AtOnce("watch from 7")),
    ]);
}

#[test]
fn silence_counts_from_the_last_bytes() {
    let mut protocol = watching();
    assert_eq!(protocol.deadline(), Protocol::SILENCE);
    assert_eq!(protocol.step(Input::Data, seconds(100)), Effect::Nothing);
    assert_eq!(protocol.deadline(), seconds(100) + Protocol::SILENCE);
    assert_eq!(protocol.step(Input::Deadline, seconds(200)), Effect::Nothing);
}

#[test]
fn a_version_that_is_refused_again_and_again_is_given_up() {
    let mut protocol = doubting();
    let now = protocol.deadline();
    assert!(!protocol.must_list());
    assert_eq!(protocol.step(Input::Failed(Failure::Refused), now), CLOSED);
    assert!(protocol.must_list());
}

#[test]
fn a_version_outlives_any_number_of_denials() {
    let mut protocol = doubting();
    for _ in 0..20 {
        let now = protocol.deadline();
        assert_eq!(protocol.step(Input::Failed(Failure::Denied), now), CLOSED);
        let now = protocol.deadline();
        drop(protocol.step(Input::Deadline, now));
    }
    let now = protocol.deadline();
    assert!(!protocol.must_list());
    drop(protocol.step(Input::ResponseStarted, now));
    assert_eq!(protocol.step(bookmark(8, false), now), Effect::Advance(version(8)));
}

#[test]
fn watches_that_bring_nothing_readable_and_end_at_once_lead_to_a_list() {
    let (mut protocol, mut now) = (asking_to_watch(), seconds(0));
    for _ in 0..Protocol::DOUBTS {
        assert!(!protocol.must_list());
        drop(protocol.step(Input::ResponseStarted, now));
        assert_eq!(protocol.step(Input::UnreadableEvent, now), Effect::Apply);
        assert_eq!(protocol.step(Input::Ended, now), given_up(Trouble::Short));
        now = protocol.deadline();
        drop(protocol.step(Input::Deadline, now));
    }
    assert!(protocol.must_list());
}

#[test]
fn a_version_that_was_heard_of_meanwhile_is_trusted_again() {
    let mut protocol = doubting();
    let now = protocol.deadline();
    drop(protocol.step(Input::ResponseStarted, now));
    assert_eq!(protocol.step(bookmark(8, false), now), Effect::Advance(version(8)));
    assert_eq!(protocol.step(Input::Failed(Failure::Refused), now), CLOSED);
    assert!(!protocol.must_list());
}

#[test]
fn watches_that_stay_silent_end_in_a_list() {
    let mut protocol = watching();
    for _ in 0..Protocol::DOUBTS {
        assert!(!protocol.must_list());
        let now = protocol.deadline();
        assert_eq!(protocol.step(Input::Deadline, now), given_up(Trouble::Silent));
        drop(protocol.step(Input::Deadline, now));
        drop(protocol.step(Input::ResponseStarted, now));
    }
    assert!(protocol.must_list());
}

#[test]
fn a_version_that_is_gone_twice_in_a_row_is_backed_off() {
    let expire = |protocol: &mut Protocol, now| assert_eq!(protocol.step(Input::Failed(Failure::Expired), now), CLOSED);
    let list_again = |protocol: &mut Protocol, now| {
        drop(protocol.step(Input::Deadline, now));
        drop(protocol.step(Input::ResponseStarted, now));
        assert_eq!(protocol.step(bookmark(8, true), now), Effect::Commit(version(8)));
    };
    let relisted = || {
        let mut protocol = watching();
        expire(&mut protocol, seconds(9));
        list_again(&mut protocol, seconds(9));
        protocol
    };

    let mut protocol = relisted();
    expire(&mut protocol, seconds(9));
    assert_next("at once", protocol, seconds(9), &Next::After(FIRST, "streaming list"));

    let mut protocol = relisted();
    drop(protocol.step(bookmark(9, false), seconds(9)));
    expire(&mut protocol, seconds(9));
    assert_next("served, within a second", protocol, seconds(9), &Next::After(FIRST, "streaming list"));

    let mut protocol = relisted();
    drop(protocol.step(bookmark(9, false), seconds(9)));
    expire(&mut protocol, seconds(10));
    assert_next("served, a second later", protocol, seconds(10), &Next::AtOnce("streaming list"));

    let mut protocol = watching();
    expire(&mut protocol, seconds(9));
    drop(protocol.step(Input::Deadline, seconds(9)));
    expire(&mut protocol, seconds(90));
    assert_next("much later, but not served", protocol, seconds(90), &Next::After(FIRST, "streaming list"));
}

#[test]
fn watches_are_asked_to_last_five_to_ten_minutes() {
    let timeouts: Vec<Duration> = (0..100)
        .map(|seed| {
            let effect = Protocol::new(seed).step(Input::Deadline, Duration::ZERO);
            let Effect::Open(ListWatchRequest::StreamingList { timeout }) = effect else {
                panic!("must list, not {effect:?}")
            };
            timeout
        })
        .collect();
    assert!(timeouts.iter().all(|timeout| (seconds(300)..seconds(600)).contains(timeout)));
    assert!(timeouts.iter().any(|timeout| *timeout != timeouts[0]), "not all at once");
}
