//! A row for each transition: the state of the protocol, the input, the effect, and the next request.

mod back_off;
mod lists;
mod outages;
mod properties;
mod watches;

use std::time::Duration;

use kcm_api::ResourceVersion;

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

/// Fails as often as given, each time as soon as the back-off is over, and returns the time of the last failure.
fn fail_repeatedly(protocol: &mut Protocol, times: u32, mut now: Duration) -> Duration {
    for _ in 0..times {
        assert_eq!(protocol.step(Input::Failed(Failure::Refused), now), CLOSED);
        now = protocol.deadline();
        drop(protocol.step(Input::Deadline, now));
    }
    now
}

/// The connection is lost.
fn lost(mut protocol: Protocol) -> Protocol {
    protocol.connection_lost();
    protocol
}
