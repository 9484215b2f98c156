//! A row for each transition: the state of the protocol, the input, the effect, and the next request.

use std::time::Duration;

use kcm_api::ResourceVersion;
use proptest::prelude::*;

use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from(number)
}

fn bookmark(number: u64, ends_initial_events: bool) -> Input {
    Input::Bookmark { version: version(number), ends_initial_events }
}

fn page(number: u64, token: Option<&str>) -> Input {
    Input::Page { version: version(number), continue_token: token.map(str::to_owned) }
}

const fn busy(retry_after: Option<u64>) -> Input {
    let retry_after = match retry_after {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => None,
    };
    Input::Failed(Failure::Busy { retry_after })
}

/// Feeds inputs at time zero.
fn after(inputs: impl IntoIterator<Item = Input>) -> Protocol {
    let mut protocol = Protocol::new(1);
    for input in inputs {
        // What the protocol does on the way is the business of the rows that look at it.
        drop(protocol.step(input, Duration::ZERO));
    }
    protocol
}

/// The streaming list is asked for.
fn asking() -> Protocol {
    after([Input::Deadline])
}

/// The streaming list has been accepted.
fn streaming() -> Protocol {
    after([Input::Deadline, Input::ResponseStarted])
}

/// A streaming list has been ended in good order before its time, and the next one has been accepted.
fn cut_short() -> Protocol {
    let mut protocol = streaming();
    drop(protocol.step(Input::Ended, seconds(0)));
    let due = protocol.deadline();
    drop(protocol.step(Input::Deadline, due));
    drop(protocol.step(Input::ResponseStarted, due));
    protocol
}

/// The streaming list is complete at version 7, and its stream goes on as a watch.
fn watching() -> Protocol {
    after([Input::Deadline, Input::ResponseStarted, bookmark(7, true)])
}

/// A watch from version 7 is asked for.
fn asking_to_watch() -> Protocol {
    let mut protocol = watching();
    drop(protocol.step(Input::Ended, seconds(0)));
    drop(protocol.step(Input::Deadline, seconds(0)));
    protocol
}

/// A watch from version 7 has been accepted, and nothing has come on it.
fn watching_again() -> Protocol {
    let mut protocol = asking_to_watch();
    drop(protocol.step(Input::ResponseStarted, seconds(0)));
    protocol
}

/// The server has no streaming lists, and the first page is asked for.
fn paging() -> Protocol {
    after([Input::Deadline, Input::Failed(Failure::Unsupported), Input::Deadline, Input::ResponseStarted])
}

/// The second page is asked for.
fn second_page() -> Protocol {
    let mut protocol = paging();
    drop(protocol.step(page(5, Some("t")), seconds(0)));
    drop(protocol.step(Input::Deadline, seconds(0)));
    drop(protocol.step(Input::ResponseStarted, seconds(0)));
    protocol
}

/// Two streaming lists have failed, and the first page is asked for.
fn paging_after_failures() -> Protocol {
    let mut protocol = asking();
    fail_repeatedly(&mut protocol, 2, seconds(0));
    drop(protocol.step(Input::ResponseStarted, protocol.deadline()));
    protocol
}

/// One refusal more, and the version is no longer trusted.
fn doubting() -> Protocol {
    let mut protocol = watching();
    for _ in 1..Protocol::DOUBTS {
        drop(protocol.step(Input::Failed(Failure::Refused), seconds(0)));
        let due = protocol.deadline();
        drop(protocol.step(Input::Deadline, due));
    }
    protocol
}

#[derive(Debug, PartialEq)]
enum Next {
    /// The exchange goes on.
    Open,
    /// The protocol asks this at once.
    AtOnce(&'static str),
    /// The protocol asks this after a back-off of at least that, and less than its double.
    After(Duration, &'static str),
}

const FIRST: Duration = Protocol::BACKOFF_INITIAL;

fn words(ask: &ListWatchRequest) -> String {
    match ask {
        ListWatchRequest::StreamingList { .. } => "streaming list".to_owned(),
        ListWatchRequest::Page { continue_token: None, .. } => "list".to_owned(),
        ListWatchRequest::Page { continue_token: Some(token), .. } => format!("list from {token}"),
        ListWatchRequest::Watch { from, .. } => format!("watch from {from}"),
    }
}

fn assert_next(name: &str, mut protocol: Protocol, now: Duration, expected: &Next) {
    let is_open = matches!(protocol.state, State::Exchanging(_));
    let (wait, question) = match expected {
        Next::Open => return assert!(is_open, "{name}: the exchange must go on"),
        Next::AtOnce(question) => (Duration::ZERO..Duration::from_nanos(1), question),
        Next::After(least, question) => (*least..*least * 2, question),
    };
    assert!(!is_open, "{name}: the exchange must be over");
    let due = protocol.deadline();
    let waits = due.saturating_sub(now);
    assert!(wait.contains(&waits), "{name}: waits {waits:?}, which is not in {wait:?}");
    if due > now {
        let early = protocol.step(Input::Deadline, due.saturating_sub(Duration::from_millis(1)));
        assert_eq!(early, Effect::Nothing, "{name}: must not ask before its time");
    }
    let effect = protocol.step(Input::Deadline, due);
    let Effect::Open(ask) = effect else { panic!("{name}: must ask, not {effect:?}") };
    assert_eq!(words(&ask), *question, "{name}");
}

type Row = (&'static str, fn() -> Protocol, u64, Input, Effect, Next);

fn check(rows: Vec<Row>) {
    for (name, start, at, input, effect, next) in rows {
        let (mut protocol, now) = (start(), seconds(at));
        let start = protocol.deadline();
        let now = if at == DUE { start } else { now };
        assert_eq!(protocol.step(input, now), effect, "{name}");
        assert_next(name, protocol, now, &next);
    }
}

/// Stands for the deadline of the state.
const DUE: u64 = u64::MAX;

const CLOSED: Effect = Effect::Close(None);

const fn given_up(trouble: Trouble) -> Effect {
    Effect::Close(Some(trouble))
}

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

/// Fails as often as given, each time as soon as the back-off is over, and returns the time of the last failure.
fn fail_repeatedly(protocol: &mut Protocol, times: u32, mut now: Duration) -> Duration {
    for _ in 0..times {
        assert_eq!(protocol.step(Input::Failed(Failure::Refused), now), CLOSED);
        now = protocol.deadline();
        drop(protocol.step(Input::Deadline, now));
    }
    now
}

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

/// The connection is lost.
fn lost(mut protocol: Protocol) -> Protocol {
    protocol.connection_lost();
    protocol
}

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

fn any_input() -> impl Strategy<Value = Input> {
    let number = 1_u64..50;
    prop_oneof![
        3 => Just(Input::Deadline),
        3 => Just(Input::ResponseStarted),
        1 => Just(Input::Data),
        1 => Just(Input::UnreadableEvent),
        1 => Just(Input::PageTooLarge),
        1 => number.clone().prop_map(|number| Input::Object(Some(version(number)))),
        1 => (number.clone(), any::<bool>()).prop_map(|(number, ends)| bookmark(number, ends)),
        1 => (number, any::<bool>()).prop_map(|(number, more)| page(number, more.then_some("t"))),
        1 => Just(Input::Ended),
        1 => prop_oneof![
            Just(Failure::Expired),
            Just(Failure::Unsupported),
            Just(Failure::Refused),
            Just(Failure::Denied),
            Just(Failure::Broken),
            Just(Failure::Panicked),
            Just(Failure::Busy { retry_after: None }),
        ]
        .prop_map(Input::Failed),
    ]
}

/// An event of the connection before an input.
#[derive(Debug, Clone, Copy)]
enum Before {
    Nothing,
    Lost,
    Restored,
}

fn before_an_input() -> impl Strategy<Value = Before> {
    prop_oneof![8 => Just(Before::Nothing), 1 => Just(Before::Lost), 3 => Just(Before::Restored)]
}

proptest! {
    #[test]
    fn whatever_happens_it_asks_again_within_bounds_and_never_watches_without_a_version(
        inputs in prop::collection::vec((before_an_input(), any_input(), 0_u64..200_000), 0..80),
    ) {
        let mut protocol = Protocol::new(3);
        let mut now = Duration::ZERO;
        let (mut committed, mut connected) = (false, true);
        for (before, input, passed) in inputs {
            now += Duration::from_millis(passed);
            match before {
                Before::Nothing => {}
                Before::Lost => {
                    connected = false;
                    protocol.connection_lost();
                }
                Before::Restored => {
                    connected = true;
                    drop(protocol.connection_restored(now));
                }
            }
            let input = if now >= protocol.deadline() { Input::Deadline } else { input };
            match protocol.step(input, now) {
                Effect::Open(_) if !connected => prop_assert!(false, "nothing is requested without a connection"),
                Effect::Commit(_) => committed = true,
                Effect::Open(ListWatchRequest::Watch { .. }) | Effect::Apply | Effect::Advance(_) => {
                    prop_assert!(committed, "nothing live before a complete list");
                }
                Effect::Nothing | Effect::Open(_) | Effect::Close(_) | Effect::Stage => {}
            }
            let deadline = protocol.deadline();
            prop_assert!(deadline <= now + Protocol::SILENCE || !connected, "always comes back");
        }
        drop(protocol.connection_restored(now));
        prop_assert!(protocol.deadline() <= now + Protocol::SILENCE, "comes back with the connection");
    }
}
