//! The list/watch protocol as a stepped state machine: no clock, no I/O, no objects.
//!
//! ```text
//!              ┌────────────── refused for good ──────────────┐
//!              │                                              ▼
//!  Waiting ─▶ streaming list ── end of initial events ─▶    page ─▶ page …
//!     ▲                              │ commit                 │ commit
//!     │                              ▼                        ▼
//!     └──── failed: back-off ────  watch  ◀── closed, silent ─┘
//! ```
//!
//! While the API server is unreachable nothing is requested. [`Protocol::connection_restored`] ends the outage, and leaves
//! no back-off behind.
//!
//! The reflector passes an [`Input`] and performs the one [`Effect`] that is returned; when
//! [`deadline`](Protocol::deadline) passes it passes [`Input::Deadline`]. A step that is due at once is a deadline that
//! has already passed, so no input has two effects.

mod inputs_and_effects;
mod page_request;
mod streaming;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kcm_api::ResourceVersion;

use crate::backoff::Backoff;
use crate::jitter::{jittered, up_to};

pub use inputs_and_effects::{Effect, Failure, Input, ListWatchRequest, Trouble};
use page_request::PageRequest;
use streaming::Streaming;

/// The state machine of the list and watch of one resource.
#[derive(Debug)]
pub struct Protocol {
    state: State,
    /// The version at which a watch resumes; without it, all objects are listed again.
    version: Option<ResourceVersion>,
    streaming: Streaming,
    /// Number of watches in a row that failed or stayed silent, and whose version may be the reason.
    doubts: u32,
    backoff: Backoff,
    /// The last time that the version or a token had expired.
    last_expiry: Option<Expiry>,
    /// Whether the API server can be reached, as far as is known.
    is_connected: bool,
    rng: fastrand::Rng,
}

#[derive(Debug)]
struct Expiry {
    at: Duration,
    /// Whether a watch was served since then.
    served_since: bool,
}

#[derive(Debug)]
enum State {
    Waiting { until: Duration, page: PageRequest },
    Exchanging(Exchange),
}

#[derive(Debug)]
struct Exchange {
    kind: ExchangeKind,
    /// The page that is requested, if it is a page.
    page: PageRequest,
    requested_at: Duration,
    has_response: bool,
    last_data_at: Duration,
    /// Whether an object or a bookmark was received.
    has_events: bool,
    /// Set once an event was received that cannot be read.
    has_unreadable_events: bool,
    /// Since when the exchange is a watch that the server has accepted.
    watching_since: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeKind {
    StreamingList,
    Page,
    Watch,
}

impl Protocol {
    /// Number of objects on a page of a list, unless the page is larger than [`LONGEST_PAGE`](Self::LONGEST_PAGE).
    pub const PAGE_SIZE: u32 = 500;
    /// Number of bytes of a page that are read. A larger page is requested again with a quarter of its objects.
    pub const LONGEST_PAGE: usize = 32 << 20;
    /// Time within which a response must begin: a list may take a kube-apiserver a minute (`--request-timeout`).
    pub const ANSWERED_WITHIN: Duration = Duration::from_secs(65);
    /// Time after which a body without data is closed: a kube-apiserver sends a bookmark every minute.
    pub const SILENCE: Duration = Duration::from_secs(150);
    /// Shortest healthy watch. A watch that ends earlier without an event has failed.
    pub const SHORT: Duration = Duration::from_secs(1);
    /// The least `timeoutSeconds` of a watch, which is drawn in [this, twice this).
    pub const LEAST_TIMEOUT: Duration = Duration::from_mins(5);
    /// Number of failed or silent watches in a row after which all objects are listed again.
    ///
    /// A server restored from a backup does not know the version, and may stay silent until it reaches the version. A
    /// watch that authentication, authorization or a missing route refuses says nothing about the version.
    pub const DOUBTS: u32 = 4;

    /// The delay after the first failure, before jitter.
    ///
    /// # Upstream
    /// The reflector's back-off: 800 ms doubling to 30 s, jittered by up to as much again. Upstream resets it after two
    /// minutes without failure; here a watch that was served ends it, so that failures minutes apart do not add up.
    pub const BACKOFF_INITIAL: Duration = Duration::from_millis(800);
    /// The longest delay after a failure, before jitter.
    pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
    /// Time within which the next request after an outage is sent. It is drawn at random, so that not all kinds request
    /// at once.
    pub const RESUMED_WITHIN: Duration = Duration::from_millis(500);

    /// A protocol that lists as soon as its [deadline](Self::deadline), which is zero, has passed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: State::Waiting { until: Duration::ZERO, page: PageRequest::FIRST },
            version: None,
            streaming: Streaming::default(),
            doubts: 0,
            backoff: Backoff::new(Self::BACKOFF_INITIAL, Self::BACKOFF_MAX, Duration::MAX),
            last_expiry: None,
            is_connected: true,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Time after which [`Input::Deadline`] is passed unless another input comes before.
    ///
    /// [`Duration::MAX`] if the next request waits for [`connection_restored`](Self::connection_restored).
    #[must_use]
    pub fn deadline(&self) -> Duration {
        match &self.state {
            State::Waiting { .. } if !self.is_connected => Duration::MAX,
            State::Waiting { until, .. } => *until,
            State::Exchanging(exchange) => {
                exchange.last_data_at + if exchange.has_response { Self::SILENCE } else { Self::ANSWERED_WITHIN }
            }
        }
    }

    /// Returns `true` if a list must come before the next watch.
    #[must_use]
    pub const fn must_list(&self) -> bool {
        self.version.is_none()
    }

    /// Takes one step; `now` is the time since any fixed point and never goes back.
    #[must_use]
    pub fn step(&mut self, input: Input, now: Duration) -> Effect {
        let is_due = now >= self.deadline();
        let State::Exchanging(exchange) = &mut self.state else {
            return self.step_while_waiting(&input, now);
        };
        match input {
            Input::Deadline if is_due => self.overdue(now),
            Input::Deadline => Effect::Nothing,
            Input::ResponseStarted => {
                exchange.has_response = true;
                exchange.last_data_at = now;
                exchange.watching_since = (exchange.kind == ExchangeKind::Watch).then_some(now);
                Effect::Nothing
            }
            Input::Data => {
                exchange.last_data_at = now;
                Effect::Nothing
            }
            Input::Object(version) => match exchange.kind {
                ExchangeKind::StreamingList | ExchangeKind::Page => Effect::Stage,
                ExchangeKind::Watch => {
                    self.version = version.or(self.version.take());
                    self.served();
                    Effect::Apply
                }
            },
            Input::UnreadableEvent => {
                exchange.has_unreadable_events = true;
                match exchange.kind {
                    ExchangeKind::StreamingList | ExchangeKind::Page => Effect::Stage,
                    ExchangeKind::Watch => Effect::Apply,
                }
            }
            Input::Bookmark { version, ends_initial_events } => self.bookmark(version, ends_initial_events, now),
            Input::Page { version: _, continue_token: Some(token) } => {
                let page = exchange.page.next(token);
                self.state = State::Waiting { until: now, page };
                Effect::Nothing
            }
            Input::Page { version, continue_token: None } => {
                self.wait_until(now);
                self.streaming.pages_completed(now);
                self.version = Some(version.clone());
                self.doubts = 0;
                Effect::Commit(version)
            }
            Input::PageTooLarge => {
                if let Some(page) = exchange.page.clone().smaller() {
                    self.state = State::Waiting { until: now, page };
                    Effect::Nothing
                } else {
                    self.streaming.pages_failed();
                    self.back_off(now, None, Some(Trouble::TooLarge))
                }
            }
            Input::Ended => self.ended(now),
            Input::Failed(failure) => self.failed(failure, now),
        }
    }

    /// Requests nothing until [`connection_restored`](Self::connection_restored). An open exchange continues.
    pub const fn connection_lost(&mut self) {
        self.is_connected = false;
    }

    /// Continues after an outage: within [`RESUMED_WITHIN`](Self::RESUMED_WITHIN), and without the back-off from before
    /// it.
    #[must_use]
    pub fn connection_restored(&mut self, now: Duration) -> Effect {
        self.is_connected = true;
        self.backoff.reset();
        self.streaming.forget();
        let resumed_at = now + up_to(Self::RESUMED_WITHIN, &mut self.rng);
        match &mut self.state {
            State::Waiting { until, .. } => {
                *until = resumed_at;
                Effect::Nothing
            }
            // The response to a request from before the outage may never come.
            State::Exchanging(exchange) if !exchange.has_response => {
                self.wait_until(resumed_at);
                Effect::Close(None)
            }
            // A watch that survived an outage behind the API server continues.
            State::Exchanging(_) => Effect::Nothing,
        }
    }

    /// Lists all objects again. Nothing changes if a list is due or has begun.
    #[must_use]
    pub fn relist(&mut self, now: Duration) -> Effect {
        if self.must_list() {
            return Effect::Nothing;
        }
        self.version = None;
        self.doubts = 0;
        self.wait_until(now);
        Effect::Close(None)
    }

    fn step_while_waiting(&mut self, input: &Input, now: Duration) -> Effect {
        match input {
            Input::Deadline if now >= self.deadline() => self.next_request(now),
            Input::Failed(failure) => self.failed(*failure, now),
            // Late events of a closed exchange.
            Input::Deadline
            | Input::ResponseStarted
            | Input::Data
            | Input::Object(_)
            | Input::UnreadableEvent
            | Input::Bookmark { .. }
            | Input::Page { .. }
            | Input::PageTooLarge
            | Input::Ended => Effect::Nothing,
        }
    }

    fn next_request(&mut self, now: Duration) -> Effect {
        let page = match &self.state {
            State::Waiting { page, .. } => page.clone(),
            State::Exchanging(_) => PageRequest::FIRST,
        };
        let (kind, request) = match &self.version {
            Some(from) => {
                let timeout = jittered(Self::LEAST_TIMEOUT, &mut self.rng);
                (ExchangeKind::Watch, ListWatchRequest::Watch { from: from.clone(), timeout })
            }
            // A list that has begun by page goes on by page.
            None if page == PageRequest::FIRST && self.streaming.is_next(now) => {
                let timeout = jittered(Self::LEAST_TIMEOUT, &mut self.rng);
                (ExchangeKind::StreamingList, ListWatchRequest::StreamingList { timeout })
            }
            None => {
                let PageRequest { continue_token, limit } = page.clone();
                (ExchangeKind::Page, ListWatchRequest::Page { continue_token, limit })
            }
        };
        self.state = State::Exchanging(Exchange {
            kind,
            page,
            requested_at: now,
            has_response: false,
            last_data_at: now,
            has_events: false,
            has_unreadable_events: false,
            watching_since: None,
        });
        Effect::Open(request)
    }

    fn bookmark(&mut self, version: ResourceVersion, ends_initial_events: bool, now: Duration) -> Effect {
        let State::Exchanging(exchange) = &mut self.state else { return Effect::Nothing };
        match exchange.kind {
            ExchangeKind::StreamingList if ends_initial_events => {
                exchange.kind = ExchangeKind::Watch;
                exchange.watching_since = Some(now);
                exchange.has_events = true;
                self.streaming.completed();
                self.doubts = 0;
                self.version = Some(version.clone());
                Effect::Commit(version)
            }
            // Not everything up to that version has come: initial events are not ordered by version.
            ExchangeKind::StreamingList | ExchangeKind::Page => Effect::Nothing,
            ExchangeKind::Watch => {
                self.version = Some(version.clone());
                self.served();
                Effect::Advance(version)
            }
        }
    }

    fn overdue(&mut self, now: Duration) -> Effect {
        let State::Exchanging(exchange) = &self.state else { return Effect::Nothing };
        if !exchange.has_response {
            return self.back_off(now, None, Some(Trouble::NoAnswer));
        }
        match exchange.kind {
            // A server that ignores `sendInitialEvents` never ends the initial events.
            ExchangeKind::StreamingList => {
                self.streaming.unsupported(now);
                self.back_off(now, None, Some(Trouble::Unfinished))
            }
            ExchangeKind::Page => {
                self.streaming.pages_failed();
                self.back_off(now, None, Some(Trouble::Silent))
            }
            ExchangeKind::Watch => {
                self.doubt();
                self.wait_until(now);
                Effect::Close(Some(Trouble::Silent))
            }
        }
    }

    /// Records an event or a bookmark on the open watch.
    fn served(&mut self) {
        if let State::Exchanging(exchange) = &mut self.state {
            exchange.has_events = true;
        }
        self.doubts = 0;
        self.end_backoff();
    }

    /// Ends the back-off: the server serves the watch, so what fails next fails for the first time.
    fn end_backoff(&mut self) {
        self.backoff.reset();
        if let Some(expiry) = &mut self.last_expiry {
            expiry.served_since = true;
        }
    }

    /// Ends the back-off if the exchange was a watch that stayed open for [`SHORT`](Self::SHORT): a server under load
    /// accepts watches and closes them at once, and a quiet kind has no event for long.
    fn end_backoff_if_it_lasted(&mut self, now: Duration) {
        if let State::Exchanging(Exchange { watching_since: Some(since), .. }) = &self.state
            && now.saturating_sub(*since) >= Self::SHORT
        {
            self.end_backoff();
        }
    }

    fn ended(&mut self, now: Duration) -> Effect {
        self.end_backoff_if_it_lasted(now);
        match self.lasting_exchange(now) {
            Some(ExchangeKind::Watch) => {
                self.wait_until(now);
                Effect::Close(None)
            }
            // A server that shuts down ends its streams. A server that ends them twice does not support streaming
            // lists.
            Some(ExchangeKind::StreamingList) => {
                self.streaming.failed();
                self.back_off(now, None, Some(Trouble::Unfinished))
            }
            Some(ExchangeKind::Page) | None => {
                // The response is no watch.
                if matches!(&self.state, State::Exchanging(exchange) if exchange.has_unreadable_events) {
                    self.doubt();
                }
                self.back_off(now, None, Some(Trouble::Short))
            }
        }
    }

    fn failed(&mut self, failure: Failure, now: Duration) -> Effect {
        self.end_backoff_if_it_lasted(now);
        let kind = match &self.state {
            State::Exchanging(exchange) => Some(exchange.kind),
            State::Waiting { .. } => None,
        };
        self.learn_about_streaming(failure, now);
        match failure {
            Failure::Expired => self.expired(now),
            Failure::Panicked => {
                self.version = None;
                self.back_off(now, None, None)
            }
            Failure::Unsupported if kind == Some(ExchangeKind::StreamingList) => {
                self.wait_until(now);
                Effect::Close(None)
            }
            Failure::Unsupported | Failure::Refused => {
                self.doubt();
                self.back_off(now, None, None)
            }
            Failure::Busy { retry_after } => self.back_off(now, retry_after, None),
            // A watch that has lasted was not refused: its connection broke.
            Failure::Broken if self.lasting_exchange(now) == Some(ExchangeKind::Watch) => {
                self.wait_until(now);
                Effect::Close(None)
            }
            Failure::Broken | Failure::Denied => self.back_off(now, None, None),
        }
    }

    /// Records how a list failed.
    fn learn_about_streaming(&mut self, failure: Failure, now: Duration) {
        let State::Exchanging(Exchange { kind, has_response, .. }) = self.state else { return };
        match (kind, failure) {
            (ExchangeKind::StreamingList, Failure::Unsupported) => self.streaming.unsupported(now),
            (ExchangeKind::StreamingList, Failure::Refused | Failure::Panicked) => self.streaming.failed(),
            // A proxy may end long responses.
            (ExchangeKind::StreamingList, Failure::Broken) if has_response => self.streaming.failed(),
            (ExchangeKind::Page, Failure::Unsupported | Failure::Refused | Failure::Panicked | Failure::Broken) => {
                self.streaming.pages_failed();
            }
            (ExchangeKind::StreamingList, Failure::Broken)
            | (
                ExchangeKind::StreamingList | ExchangeKind::Page,
                Failure::Expired | Failure::Busy { .. } | Failure::Denied,
            )
            | (ExchangeKind::Watch, _) => {}
        }
    }

    /// Lists again at once. A second time within a second, or without a watch that was served in between, it backs off:
    /// a server that refuses what it has just listed must not be listed in a loop.
    fn expired(&mut self, now: Duration) -> Effect {
        let is_repeated = self
            .last_expiry
            .replace(Expiry { at: now, served_since: false })
            .is_some_and(|last| !last.served_since || now.saturating_sub(last.at) < Self::SHORT);
        self.version = None;
        if is_repeated {
            return self.back_off(now, None, None);
        }
        self.wait_until(now);
        Effect::Close(None)
    }

    /// The kind of the open exchange, unless it ended too early.
    fn lasting_exchange(&self, now: Duration) -> Option<ExchangeKind> {
        match &self.state {
            State::Exchanging(exchange) if exchange.has_response => {
                let lived = exchange.has_events || now.saturating_sub(exchange.requested_at) >= Self::SHORT;
                (lived || exchange.kind != ExchangeKind::Watch).then_some(exchange.kind)
            }
            State::Exchanging(_) | State::Waiting { .. } => None,
        }
    }

    fn doubt(&mut self) {
        self.doubts += 1;
        if self.doubts >= Self::DOUBTS {
            self.doubts = 0;
            self.version = None;
        }
    }

    fn back_off(&mut self, now: Duration, at_least: Option<Duration>, trouble: Option<Trouble>) -> Effect {
        let delay = jittered(self.backoff.next_delay(), &mut self.rng);
        let wait = delay.max(at_least.unwrap_or_default());
        self.wait_until(now + wait);
        Effect::Close(trouble)
    }

    /// Waits for the next request, which begins a new list if it is a list.
    fn wait_until(&mut self, until: Duration) {
        self.state = State::Waiting { until, page: PageRequest::FIRST };
    }
}
