//! The back-off after failures, and its end.

use super::*;

/// A watch that was refused three times has been accepted at the returned time.
fn accepted_after_failures() -> (Protocol, Duration) {
    let mut protocol = asking_to_watch();
    let now = fail_repeatedly(&mut protocol, 3, seconds(0));
    drop(protocol.step(Input::ResponseStarted, now));
    (protocol, now)
}

#[test]
fn a_watch_that_is_served_ends_the_back_off() {
    for (name, input) in [("an event", Input::Object(Some(version(9)))), ("a bookmark", bookmark(9, false))] {
        let (mut protocol, now) = accepted_after_failures();
        drop(protocol.step(input, now));
        drop(protocol.step(Input::Failed(Failure::Refused), now));
        assert_next(name, protocol, now, &Next::After(FIRST, "watch from 9"));
    }
    let (mut protocol, now) = accepted_after_failures();
    let lasted = now + Protocol::SHORT;
    drop(protocol.step(Input::Failed(Failure::Broken), lasted));
    drop(protocol.step(Input::Deadline, lasted));
    drop(protocol.step(Input::Failed(Failure::Broken), lasted));
    assert_next("a second of being open", protocol, lasted, &Next::After(FIRST, "watch from 7"));
}

#[test]
fn a_watch_that_is_accepted_and_closed_at_once_does_not_end_the_back_off() {
    let (mut protocol, now) = accepted_after_failures();
    drop(protocol.step(Input::Ended, now));
    assert_next("closed at once", protocol, now, &Next::After(8 * FIRST, "watch from 7"));
}
