//! Requests and watches step by step, without a runtime: [`Sandbox::exchange`](crate::Sandbox::exchange) and [`OpenWatch`].
//!
//! A simulation decides itself when a request is performed, and when each event of a watch is sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::Response;
use http_body_util::BodyExt as _;
use kcm_api::Resource;

use super::shared::Shared;
use super::{Found, find, receive, status_response};
use crate::faults::{Effect, Verdict};
use crate::server::watch::{Watch, WatchEvent};
use crate::store::stored::Stored;

/// The outcome of [`Sandbox::exchange`](crate::Sandbox::exchange).
#[derive(Debug)]
pub enum Exchanged {
    /// The whole response, headers included.
    Response(Response<Bytes>),
    /// The response is a watch with code 200. Its lines are the body.
    Watch(OpenWatch),
    /// The connection breaks without a response.
    Lost,
    /// The API server never responds.
    Silence,
}

/// A watch that is read line by line.
pub struct OpenWatch {
    shared: Arc<Shared>,
    watch: Watch,
    timeout: Duration,
    has_ended: bool,
}

/// The next step of an [`OpenWatch`].
#[derive(Debug)]
pub enum WatchStep {
    /// A line is sent.
    Line(WatchLine),
    /// There is nothing to send.
    Waiting,
    /// The watch has ended: after an error, behind the window of events, or because its kind is not served any more.
    Ended,
}

/// A line of a watch: one event.
#[derive(Debug, Clone)]
pub struct WatchLine {
    /// Type of the event.
    pub kind: LineKind,
    /// The object; absent for bookmarks and errors.
    pub object: Option<Arc<Stored>>,
    /// The line as it is sent.
    pub bytes: Bytes,
}

/// Type of an event of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// An event `ADDED` of a watch.
    Added,
    /// An event `MODIFIED` of a watch.
    Modified,
    /// An event `DELETED` of a watch.
    Deleted,
    /// An event `BOOKMARK`, also after the initial events.
    Bookmark,
    /// An event `ERROR` of a watch.
    Error,
}

impl std::fmt::Debug for OpenWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenWatch").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl OpenWatch {
    /// Returns the resource under which the watched objects are stored.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        self.watch.resource()
    }

    /// Returns the time after which the API server ends the watch. The caller keeps the time.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns `true` if the client has asked for bookmarks.
    #[must_use]
    pub const fn allows_bookmarks(&self) -> bool {
        self.watch.bookmarks
    }

    /// Takes the next step. Faults of watches do not apply.
    pub fn step(&mut self) -> WatchStep {
        if self.has_ended {
            return WatchStep::Ended;
        }
        let event = {
            let state = self.shared.lock();
            let server = &state.server;
            self.has_ended = server.kinds.get(self.watch.resource()).is_none();
            if self.has_ended {
                return WatchStep::Ended;
            }
            if let Some(refusal) = self.watch.take_refusal() {
                self.has_ended = true;
                Some(WatchEvent::Error(Box::new(refusal)))
            } else if let Some(event) = self.watch.next_initial() {
                Some(event)
            } else if self.watch.pull(&server.store, |_| false).is_err() {
                self.has_ended = true;
                return WatchStep::Ended;
            } else {
                self.watch.next()
            }
        };
        event.map_or(WatchStep::Waiting, |event| WatchStep::Line(self.line(&event)))
    }

    /// Returns a bookmark, for a watch that is [`WatchStep::Waiting`].
    pub fn bookmark(&mut self) -> WatchLine {
        let bookmark = self.watch.bookmark();
        self.line(&bookmark)
    }

    fn line(&mut self, event: &WatchEvent) -> WatchLine {
        let (kind, object) = match event {
            WatchEvent::Added(object) => (LineKind::Added, Some(object)),
            WatchEvent::Modified(object) => (LineKind::Modified, Some(object)),
            WatchEvent::Deleted(object) => (LineKind::Deleted, Some(object)),
            WatchEvent::Bookmark { .. } => (LineKind::Bookmark, None),
            WatchEvent::Error(_) => (LineKind::Error, None),
        };
        let bytes = Bytes::from(self.watch.encode(event, self.shared.now().time));
        WatchLine { kind, object: object.cloned(), bytes }
    }
}

/// Performs a request at once and returns its whole response, or the watch that it opens.
///
/// It needs no runtime. Faults apply except for their delays. A read of a version that is not reached yet fails at once.
pub(crate) fn exchange(shared: &Arc<Shared>, request: http::Request<Bytes>) -> Exchanged {
    let (parts, body) = request.into_parts();
    let (number, route, Verdict { effect, .. }) = receive(shared, &parts, &body);
    match &effect {
        None | Some(Effect::LoseAnswer) => {}
        Some(Effect::Fail(status)) => return whole(status_response(status)),
        Some(Effect::Disconnect) => return Exchanged::Lost,
        Some(Effect::Stall) => return Exchanged::Silence,
        Some(Effect::NotReady) => return whole(super::not_ready()),
    }
    let found = find(shared, &parts, &body, route);
    if effect == Some(Effect::LoseAnswer) {
        return Exchanged::Lost;
    }
    let response = match found {
        Ok(Found::Response(response)) => response,
        Ok(Found::Silence) => return Exchanged::Silence,
        Ok(Found::Watch(watch, timeout)) => {
            shared.lock().log.answer(number, 200);
            let shared = Arc::clone(shared);
            return Exchanged::Watch(OpenWatch { shared, watch: *watch, timeout, has_ended: false });
        }
        Err(status) => status_response(&status),
    };
    shared.lock().log.answer(number, response.status().as_u16());
    whole(response)
}

/// Collects the body of a response, all of which is there.
fn whole(response: Response<super::ResponseBody>) -> Exchanged {
    let (parts, body) = response.into_parts();
    match body.collect().now_or_never() {
        Some(Ok(body)) => Exchanged::Response(Response::from_parts(parts, body.to_bytes())),
        Some(Err(super::ConnectionLost)) => Exchanged::Lost,
        None => Exchanged::Silence,
    }
}
