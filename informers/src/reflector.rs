//! The reflector: the task of an informer, which performs the effects of the list/watch protocol.

use std::convert::Infallible;
use std::error::Error;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use kube::Client;
use tokio::time::{Instant, sleep_until};

use crate::connection::{Connection, ConnectionChange, ConnectionChanges};
use crate::decode::shortened;
use crate::envelope::{Bookmark, Event, EventError, EventKind, Page, status_of_event};
use crate::error_chain::chain;
use crate::failure::{Cause, ExchangeError};
use crate::frames::{Frame, Frames};
use crate::http_exchange::{HttpExchange, ResponseBody, ResponseEvent};
use crate::moments::Moment;
use crate::panic_message::panic_message;
use crate::protocol::{Effect, Failure, Input, ListWatchRequest, Protocol};
use crate::reflector_store::{Destination, ReflectorStore};
use crate::request::http_request;
use crate::shared_informer::InformerState;
use crate::status::Phase;

/// Lists and watches until it is dropped. After a panic it lists again; when the resource has disappeared it empties the
/// cache, and lists again when the resource appears.
///
/// It is compiled once for all types of objects: what depends on them is behind `store`.
pub(crate) async fn run(
    shared: Arc<InformerState>,
    store: Box<dyn ReflectorStore>,
    client: Client,
    connection: Connection,
    seed: u64,
) {
    let _stopped = StoppedOnDrop(Arc::clone(&shared));
    let mut reflector = Reflector::new(Arc::clone(&shared), store, client, connection, seed);
    loop {
        tokio::select! {
            biased;
            () = shared.availability.disappeared() => {
                tracing::info!(resource = %shared.resource, "API server no longer serves the resource");
                shared.record.lock().enter(Phase::NotServed);
                // The new one waits without a request; the old one drops its exchange.
                reflector = reflector.renewed(seed);
                shared.availability.appeared().await;
                shared.availability.set_not_found(false);
            }
            Err(panic) = AssertUnwindSafe(reflector.drive()).catch_unwind() => {
                reflector.start_again(&panic_message(&*panic));
            }
        }
    }
}

struct StoppedOnDrop(Arc<InformerState>);

impl Drop for StoppedOnDrop {
    fn drop(&mut self) {
        self.0.record.lock().enter(Phase::Stopped);
    }
}

struct Reflector {
    shared: Arc<InformerState>,
    store: Box<dyn ReflectorStore>,
    client: Client,
    connection: Connection,
    connection_changes: ConnectionChanges,
    started: Instant,
    protocol: Protocol,
    /// The request of the open exchange, or of the last one.
    request: ListWatchRequest,
    /// The moment at which the last list began.
    listed: Moment,
    /// The moment of a list whose commit has not ended.
    unproven: Option<Moment>,
    exchange: HttpExchange,
    frames: Frames,
    page: Vec<u8>,
    /// Whether the last exchange failed in a way that may be an outage, and led to a back-off.
    was_suspected: bool,
    /// Set once an event was ignored, which is logged once.
    has_ignored_events: bool,
}

impl Reflector {
    fn new(
        shared: Arc<InformerState>,
        store: Box<dyn ReflectorStore>,
        client: Client,
        connection: Connection,
        seed: u64,
    ) -> Self {
        Self {
            shared,
            store,
            client,
            connection_changes: connection.changes(),
            connection,
            started: Instant::now(),
            protocol: Protocol::new(seed),
            listed: Moment::default(),
            unproven: None,
            request: ListWatchRequest::Page { continue_token: None, limit: Protocol::PAGE_SIZE },
            exchange: HttpExchange::Idle,
            frames: Frames::default(),
            page: Vec::new(),
            was_suspected: false,
            has_ignored_events: false,
        }
    }

    /// A new one, with an empty cache.
    fn renewed(self, seed: u64) -> Self {
        let Self { shared, mut store, client, connection, .. } = self;
        store.unstage();
        store.empty();
        Self::new(shared, store, client, connection, seed)
    }

    async fn drive(&mut self) -> Infallible {
        // An outage that has begun before: the first request waits for its end too.
        while let Some(change) = self.connection_changes.next().now_or_never() {
            self.on_connection_change(change);
        }
        loop {
            let now = Instant::now();
            let has_work = self.store.work(now);
            self.prove_committed();
            if self.protocol.deadline() <= now - self.started {
                self.step(Input::Deadline);
            }
            let deadline = self.started.checked_add(self.protocol.deadline());
            let wake = [deadline, self.store.next_work()].into_iter().flatten().min();
            tokio::select! {
                // A stream that always has a next event must not keep the other inputs from being read.
                biased;
                change = self.connection_changes.next() => self.on_connection_change(change),
                () = self.shared.currency.relist.notified() => self.relist(),
                () = self.shared.rescheduled.notified() => {}
                event = self.exchange.next(), if !self.store.is_committing() => self.on_response_event(event),
                () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
                // Between two steps other tasks run.
                () = tokio::task::yield_now(), if has_work => {}
            }
            tokio::task::consume_budget().await;
        }
    }

    /// A list proves the cache current when its commit has ended.
    fn prove_committed(&mut self) {
        if !self.store.is_committing()
            && let Some(listed) = self.unproven.take()
        {
            self.shared.currency.is_proven(listed);
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lists again. A list that has begun goes on.
    fn relist(&mut self) {
        let effect = self.protocol.relist(self.now());
        self.perform(effect);
    }

    fn on_connection_change(&mut self, change: ConnectionChange) {
        match change {
            ConnectionChange::Lost => self.protocol.connection_lost(),
            ConnectionChange::Restored => {
                self.was_suspected = false;
                self.shared.record.lock().outage_ended();
                let effect = self.protocol.connection_restored(self.now());
                self.perform(effect);
            }
        }
    }

    fn step(&mut self, input: Input) {
        let effect = self.protocol.step(input, self.now());
        self.perform(effect);
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            // The code that decodes objects also stages and applies them.
            Effect::Nothing | Effect::Stage | Effect::Apply => {}
            Effect::Open(request) => self.open(request),
            Effect::Close(trouble) => {
                if let Some(trouble) = trouble {
                    self.report(Cause::GivenUp(trouble));
                }
                self.close();
            }
            Effect::Commit(version) => {
                self.store.commit(version);
                self.unproven = Some(self.listed);
                self.prove_committed();
                let mut record = self.shared.record.lock();
                record.all_is_well();
                record.confirm();
                record.enter(Phase::Watching);
            }
            Effect::Advance(version) => self.store.advance(version),
        }
    }

    fn open(&mut self, request: ListWatchRequest) {
        if request.begins_a_list() {
            self.listed = self.shared.currency.now();
            self.store.unstage();
        }
        let phase = if self.protocol.must_list() { Phase::Listing } else { Phase::Watching };
        self.shared.record.lock().enter(phase);
        let http_request = http_request(&self.shared.resource, &self.shared.list_options, self.store.form(), &request);
        tracing::debug!(resource = %self.shared.resource, %request, uri = %http_request.uri(), "Sending request");
        self.exchange = HttpExchange::open(self.client.clone(), http_request);
        self.request = request;
    }

    fn close(&mut self) {
        self.exchange = HttpExchange::Idle;
        self.frames = Frames::default();
        self.page = Vec::new();
        self.store.unstage();
        if self.is_backing_off() {
            self.shared.record.lock().enter(Phase::BackingOff);
        }
    }

    fn on_response_event(&mut self, event: ResponseEvent) {
        match event {
            ResponseEvent::Started(ResponseBody { body, is_protobuf }) => {
                self.exchange = HttpExchange::Reading(body);
                self.frames = Frames::of(is_protobuf);
                self.shared.availability.set_not_found(false);
                self.step(Input::ResponseStarted);
                if matches!(self.request, ListWatchRequest::Watch { .. }) {
                    self.shared.record.lock().watches();
                }
            }
            ResponseEvent::Chunk(chunk) => {
                self.step(Input::Data);
                match &self.request {
                    ListWatchRequest::Page { .. } => self.on_part_of_page(&chunk),
                    ListWatchRequest::StreamingList { .. } | ListWatchRequest::Watch { .. } => self.on_chunk(&chunk),
                }
            }
            ResponseEvent::Ended => match &self.request {
                ListWatchRequest::Page { .. } => self.on_page(),
                ListWatchRequest::StreamingList { .. } | ListWatchRequest::Watch { .. } => self.step(Input::Ended),
            },
            ResponseEvent::Failed(cause) => self.fail(cause),
        }
    }

    fn on_part_of_page(&mut self, chunk: &Bytes) {
        if self.page.len() + chunk.len() <= Protocol::LONGEST_PAGE {
            self.page.extend_from_slice(chunk);
            return;
        }
        tracing::debug!(resource = %self.shared.resource, "A page of the list is too large, requesting fewer objects");
        self.exchange = HttpExchange::Idle;
        self.page = Vec::new();
        self.step(Input::PageTooLarge);
    }

    fn on_chunk(&mut self, chunk: &Bytes) {
        let mut frames = std::mem::take(&mut self.frames);
        let context = Arc::clone(&self.shared.decode_context);
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = context.scope(|| {
            frames.feed(chunk, |frame| {
                self.on_frame(frame);
                // Frames after the end of an exchange are ignored.
                if self.exchange.is_open() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        });
        self.frames = frames;
    }

    fn on_frame(&mut self, frame: Frame<'_>) {
        let (read, line) = match frame {
            Frame::Line(line) => (Event::split(line), Some(line)),
            Frame::Message(message) => (Event::of_message(message), None),
            Frame::TooLong(too_long) => return self.on_unreadable_event(chain(&too_long)),
        };
        let event = match read {
            Ok(event) => event,
            Err(error @ EventError::UnknownType(_)) => return self.ignore(&error),
            Err(error @ EventError::Malformed(_)) => return self.on_unreadable_event(chain(&error)),
        };
        self.shared.metrics.event(event.kind);
        {
            let mut record = self.shared.record.lock();
            record.received_event();
            if event.kind != EventKind::Error {
                record.confirm();
            }
        }
        match event.kind {
            EventKind::Added | EventKind::Modified | EventKind::Deleted => self.on_object(event, line),
            EventKind::Bookmark => match Bookmark::read(event.object) {
                Ok(Bookmark { version, ends_initial_events }) => {
                    self.shared.record.lock().received_bookmark();
                    self.step(Input::Bookmark { version, ends_initial_events });
                }
                Err(error) => self.ignore(&error),
            },
            EventKind::Error => match status_of_event(event.object) {
                Ok(status) => self.fail(Cause::Status(status)),
                Err(error) => self.fail(Cause::Unreadable(error)),
            },
        }
    }

    /// Ignores an event without an object.
    fn ignore(&mut self, error: &dyn Error) {
        let error = chain(error);
        if std::mem::replace(&mut self.has_ignored_events, true) {
            tracing::debug!(resource = %self.shared.resource, error, "Ignoring an event of the watch");
        } else {
            tracing::warn!(resource = %self.shared.resource, error, "Ignoring events of the watch that cannot be read");
        }
    }

    /// Records an object of which only the event is known to be too long or malformed. It holds up no other object.
    fn on_unreadable_event(&mut self, error: String) {
        let mut dropped_by = Effect::Nothing;
        let destination = destination_of(self.protocol.step(Input::UnreadableEvent, self.now()), &mut dropped_by);
        self.store.note_unreadable(shortened(error), destination);
        self.perform(dropped_by);
    }

    fn on_object(&mut self, event: Event<'_>, line: Option<&[u8]>) {
        let now = self.now();
        let mut dropped_by = Effect::Nothing;
        let mut destination =
            |version| destination_of(self.protocol.step(Input::Object(version), now), &mut dropped_by);
        self.store.read(event, line, &mut destination);
        self.perform(dropped_by);
    }

    fn on_page(&mut self) {
        self.exchange = HttpExchange::Idle;
        let body = std::mem::take(&mut self.page);
        let page = match Page::read(&body) {
            Ok(page) => page,
            Err(error) => return self.fail(Cause::Unreadable(error)),
        };
        let context = Arc::clone(&self.shared.decode_context);
        context.scope(|| {
            for item in page.items {
                self.store.stage(item);
            }
            let continue_token = page.metadata.continue_token.filter(|token| !token.is_empty());
            self.step(Input::Page { version: page.metadata.resource_version, continue_token });
        });
    }

    fn fail(&mut self, cause: Cause) {
        let class = cause.class();
        self.shared.availability.set_not_found(cause.is_not_found());
        let effect = self.protocol.step(Input::Failed(class), self.now());
        if class == Failure::Unsupported && !self.is_backing_off() {
            tracing::debug!(resource = %self.shared.resource, "The API server has no streaming lists, listing by page");
        } else {
            self.report(cause);
        }
        self.perform(effect);
    }

    /// Logs an error; a watch that is resumed without back-off is logged at debug level.
    fn report(&mut self, cause: Cause) {
        let is_suspected = cause.may_be_outage();
        let error = ExchangeError { request: self.request.clone(), resource: self.shared.resource.clone(), cause };
        let text = chain(&error);
        // An outage is logged once for all kinds. An error that continues while the server serves belongs to this kind.
        let is_of_outage = is_suspected && (!self.was_suspected || !self.connection.is_serving());
        if is_suspected {
            self.connection.suspect(&text);
        }
        self.was_suspected = is_suspected && self.is_backing_off();
        if !self.is_backing_off() {
            tracing::debug!(resource = %self.shared.resource, error = text, "List or watch is requested again");
            return;
        }
        self.shared.metrics.failed();
        if is_of_outage && self.connection.is_monitored() {
            tracing::debug!(resource = %self.shared.resource, error = %text, "List or watch failed");
        } else {
            tracing::warn!(resource = %self.shared.resource, error = %text, "List or watch failed");
        }
        self.shared.record.lock().trouble(text);
    }

    fn is_backing_off(&self) -> bool {
        self.protocol.deadline() > self.now()
    }

    fn start_again(&mut self, panic: &str) {
        self.shared.metrics.panicked("informer");
        self.store.repair();
        self.fail(Cause::Panic(panic.to_owned()));
    }
}

/// The destination of an object that leads to `effect`. An effect that drops the object is stored in `dropped_by`.
fn destination_of(effect: Effect, dropped_by: &mut Effect) -> Destination {
    match effect {
        Effect::Stage => Destination::Staged,
        Effect::Apply => Destination::Cache,
        other @ (Effect::Nothing | Effect::Open(_) | Effect::Close(_) | Effect::Commit(_) | Effect::Advance(_)) => {
            *dropped_by = other;
            Destination::Dropped
        }
    }
}
