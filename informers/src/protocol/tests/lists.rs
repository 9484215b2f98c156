//! Streaming lists and lists by page.

use super::*;

#[test]
fn a_streaming_list() {
    use Effect::{Apply, Commit, Nothing, Stage};
    use Input::{Data, Deadline, Ended, Failed, Object, ResponseStarted, UnreadableEvent};
    let object = || Object(Some(version(9)));
    check(vec![
        ("is accepted", asking, 0, ResponseStarted, Nothing, Next::Open),
        ("is not answered", asking, DUE, Deadline, given_up(Trouble::NoAnswer), Next::After(FIRST, "streaming list")),
        ("cannot be sent", asking, 0, Failed(Failure::Broken), CLOSED, Next::After(FIRST, "streaming list")),
        ("is refused for good", asking, 0, Failed(Failure::Unsupported), CLOSED, Next::AtOnce("list")),
        ("is refused for now", asking, 0, Failed(Failure::Refused), CLOSED, Next::After(FIRST, "streaming list")),
        ("is denied", asking, 0, Failed(Failure::Denied), CLOSED, Next::After(FIRST, "streaming list")),
        ("comes at a bad time", asking, 0, busy(None), CLOSED, Next::After(FIRST, "streaming list")),
        (
            "retries when the server asks it to",
            asking,
            0,
            busy(Some(9)),
            CLOSED,
            Next::After(seconds(9), "streaming list"),
        ),
        ("brings bytes", streaming, 1, Data, Nothing, Next::Open),
        ("brings an object", streaming, 1, object(), Stage, Next::Open),
        ("brings an unreadable event", streaming, 1, UnreadableEvent, Stage, Next::Open),
        ("brings a bookmark before its end", streaming, 1, bookmark(7, false), Nothing, Next::Open),
        ("is complete", streaming, 1, bookmark(7, true), Commit(version(7)), Next::Open),
        ("goes on as a watch", watching, 1, object(), Apply, Next::Open),
        ("breaks off", streaming, 9, Failed(Failure::Broken), CLOSED, Next::After(FIRST, "streaming list")),
        ("expires", streaming, 9, Failed(Failure::Expired), CLOSED, Next::AtOnce("streaming list")),
        ("panics", streaming, 9, Failed(Failure::Panicked), CLOSED, Next::After(FIRST, "streaming list")),
        ("ends unfinished", streaming, 9, Ended, given_up(Trouble::Unfinished), Next::After(FIRST, "streaming list")),
        ("breaks off again", cut_short, 9, Failed(Failure::Broken), CLOSED, Next::After(2 * FIRST, "list")),
        ("is refused again", cut_short, 9, Failed(Failure::Refused), CLOSED, Next::After(2 * FIRST, "list")),
        ("does so again", cut_short, 9, Ended, given_up(Trouble::Unfinished), Next::After(2 * FIRST, "list")),
        ("is complete at last", cut_short, 9, bookmark(7, true), Commit(version(7)), Next::Open),
        ("falls silent", streaming, DUE, Deadline, given_up(Trouble::Unfinished), Next::After(FIRST, "list")),
    ]);
}

#[test]
fn a_paged_list() {
    use Effect::{Commit, Nothing, Stage};
    use Input::{Data, Deadline, Failed, Object, PageTooLarge};
    check(vec![
        ("brings bytes", paging, 1, Data, Nothing, Next::Open),
        ("brings an object", paging, 1, Object(None), Stage, Next::Open),
        ("has more pages", paging, 1, page(5, Some("t")), Nothing, Next::AtOnce("list from t")),
        ("has one page", paging, 1, page(5, None), Commit(version(5)), Next::AtOnce("watch from 5")),
        ("has come to its end", second_page, 1, page(5, None), Commit(version(5)), Next::AtOnce("watch from 5")),
        ("loses its token", second_page, 1, Failed(Failure::Expired), CLOSED, Next::AtOnce("list")),
        ("breaks off", second_page, 9, Failed(Failure::Broken), CLOSED, Next::After(FIRST, "list")),
        ("is refused", paging, 0, Failed(Failure::Refused), CLOSED, Next::After(FIRST, "list")),
        ("is not understood", paging, 0, Failed(Failure::Unsupported), CLOSED, Next::After(FIRST, "list")),
        ("falls silent", second_page, DUE, Deadline, given_up(Trouble::Silent), Next::After(FIRST, "list")),
        ("begins with a page that is too large", paging, 1, PageTooLarge, Nothing, Next::AtOnce("list")),
        ("has a page that is too large", second_page, 1, PageTooLarge, Nothing, Next::AtOnce("list from t")),
        (
            "fails as the streaming lists did",
            paging_after_failures,
            9,
            Failed(Failure::Refused),
            CLOSED,
            Next::After(4 * FIRST, "streaming list"),
        ),
    ]);
}

#[test]
fn a_page_that_is_too_large_is_requested_with_fewer_objects_down_to_one() {
    let mut protocol = second_page();
    let mut limits = Vec::new();
    for _ in 0..4 {
        assert_eq!(protocol.step(Input::PageTooLarge, seconds(0)), Effect::Nothing);
        let effect = protocol.step(Input::Deadline, seconds(0));
        let Effect::Open(ListWatchRequest::Page { continue_token: Some(token), limit }) = effect else {
            panic!("must request the same page, not {effect:?}")
        };
        limits.push((token, limit));
        drop(protocol.step(Input::ResponseStarted, seconds(0)));
    }
    let t = || "t".to_owned();
    assert_eq!(limits, [(t(), 125), (t(), 31), (t(), 7), (t(), 1)]);
    // The following pages are as small, and the next list begins with large pages.
    assert_eq!(protocol.step(page(5, Some("u")), seconds(0)), Effect::Nothing);
    let effect = protocol.step(Input::Deadline, seconds(0));
    let next = ListWatchRequest::Page { continue_token: Some("u".to_owned()), limit: 1 };
    assert_eq!(effect, Effect::Open(next));
    drop(protocol.step(Input::ResponseStarted, seconds(0)));
    assert_eq!(protocol.step(Input::PageTooLarge, seconds(0)), given_up(Trouble::TooLarge));
    let effect = protocol.step(Input::Deadline, protocol.deadline());
    assert_eq!(effect, Effect::Open(ListWatchRequest::Page { continue_token: None, limit: Protocol::PAGE_SIZE }));
}

/// A list by page is complete at the time zero, because streaming lists are not supported, and its watch is open.
fn listed_by_page(mut protocol: Protocol) -> Protocol {
    let now = protocol.deadline();
    drop(protocol.step(page(5, None), now));
    drop(protocol.step(Input::Deadline, now));
    drop(protocol.step(Input::ResponseStarted, now));
    protocol
}

#[test]
fn the_refusal_of_streaming_lists_is_remembered_for_an_hour() {
    for (name, start) in [("refused", paging as fn() -> Protocol), ("failed twice", paging_after_failures)] {
        for (at, question) in [(3_000, "list"), (4_000, "streaming list")] {
            let mut protocol = listed_by_page(start());
            assert_eq!(protocol.step(Input::Failed(Failure::Expired), seconds(at)), CLOSED);
            assert_next(name, protocol, seconds(at), &Next::AtOnce(question));
        }
    }
}

#[test]
fn the_refusal_of_streaming_lists_is_forgotten_after_an_outage() {
    let mut protocol = lost(listed_by_page(paging()));
    assert_eq!(protocol.connection_restored(seconds(9)), Effect::Nothing);
    assert_eq!(protocol.step(Input::Failed(Failure::Expired), seconds(10)), CLOSED);
    assert_next("after an outage", protocol, seconds(10), &Next::AtOnce("streaming list"));
}

#[test]
fn a_list_that_has_begun_by_page_goes_on_by_page() {
    let mut protocol = second_page();
    let now = seconds(4_000);
    drop(protocol.step(Input::Data, now));
    assert_eq!(protocol.step(page(5, Some("u")), now), Effect::Nothing);
    assert_next("an hour later", protocol, now, &Next::AtOnce("list from u"));
}
