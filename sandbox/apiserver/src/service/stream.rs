//! A watch as a response body: the thin shell around [`Watch`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http_body::Frame;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::faults::{Cut, WatchFaults};
use crate::server::watch::{Watch, WatchEvent};
use crate::service::ConnectionLost;
use crate::service::shared::{Shared, State};

/// Interval of bookmarks on an idle watch.
///
/// # Upstream
/// `defaultBookmarkFrequency` of the cacher
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);

/// Time between the last bookmark of a watch and its end.
///
/// # Upstream
/// `nextBookmarkTime` of `cache_watcher.go`
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Returns the time of the next bookmark, if one is sent before the watch ends.
fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline.checked_sub(LAST_BOOKMARK)?;
    Some(last.min(now + BOOKMARK_PERIOD)).filter(|next| *next > now)
}

pub(crate) struct WatchStream {
    shared: Arc<Shared>,
    watch: Watch,
    notifier: watch::Receiver<()>,
    /// Sequence number at opening, compared with the numbers of faults.
    since: u64,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    bookmarked: u64,
    /// Number of further events before the stream ends.
    cut_after: Option<(usize, Cut)>,
    broken: bool,
}

enum Step {
    Send(WatchEvent),
    End(Cut),
    Wait(Option<Instant>),
}

impl WatchStream {
    /// Opens a stream; `state` is the locked state of `shared`.
    pub(crate) fn open(shared: &Arc<Shared>, state: &mut State, watch: Watch, timeout: Duration) -> Self {
        let now = Instant::now();
        let since = state.faults.tick();
        let notifier = state.subscribe(watch.resource());
        let faults = state.faults.of(watch.resource());
        Self {
            shared: shared.clone(),
            notifier,
            since,
            deadline: now + timeout,
            next_bookmark: next_bookmark(now, now + timeout),
            bookmarked: faults.bookmarked(),
            cut_after: faults.cut_next.take(),
            broken: false,
            watch,
        }
    }

    /// Returns the frames of the body; the stream ends with the watch.
    pub(crate) fn frames(self) -> impl Stream<Item = Result<Frame<Bytes>, ConnectionLost>> + Send {
        stream::unfold(self, |mut watch| async move {
            if watch.broken {
                return None;
            }
            match watch.next().await {
                Ok(line) => Some((Ok(Frame::data(Bytes::from(line))), watch)),
                Err(Cut::Clean) => None,
                Err(Cut::Broken) => {
                    watch.broken = true;
                    Some((Err(ConnectionLost), watch))
                }
            }
        })
        .fuse()
    }

    async fn next(&mut self) -> Result<Vec<u8>, Cut> {
        loop {
            self.notifier.borrow_and_update();
            let shared = self.shared.clone();
            let step = self.step(&mut shared.lock(), Instant::now());
            let until = match step {
                // Encoded outside of the lock: a table takes a while.
                Step::Send(event) => return Ok(self.watch.encode(&event, self.shared.now().time)),
                Step::End(how) => return Err(how),
                Step::Wait(until) => until,
            };
            let time_up = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            // The stream holds the state and with it the notifier, so the channel cannot close.
            tokio::select! {
                biased;
                _ = self.notifier.changed() => {}
                () = time_up => {}
            }
        }
    }

    /// Decides what happens next on this stream.
    fn step(&mut self, state: &mut State, now: Instant) -> Step {
        let State { server, faults, .. } = state;
        let served = server.kinds.get(self.watch.resource()).is_some();
        if faults.has_broken(self.since) {
            return Step::End(Cut::Broken);
        }
        let faults = faults.of(self.watch.resource());
        if let Some(how) = faults.cuts(self.since) {
            return Step::End(how);
        }
        if let Some((0, how)) = self.cut_after {
            return Step::End(how);
        }
        if faults.is_silent(self.since) {
            return Step::Wait(None);
        }
        if !served || now >= self.deadline {
            return Step::End(Cut::Clean);
        }
        if faults.held {
            return Step::Wait(Some(self.deadline));
        }
        if let Some(refusal) = self.watch.take_refusal() {
            // The stream consists of the error and ends.
            self.cut_after = Some((1, Cut::Clean));
            return self.send(WatchEvent::Error(Box::new(refusal)));
        }
        if let Some(event) = self.watch.next_initial() {
            return self.send(event);
        }
        if self.watch.pull(&server.store, |version| faults.hides(version)).is_err() {
            return Step::End(Cut::Clean);
        }
        if let Some(at) = self.watch.next_at() {
            let due = self.shared.instant(at + faults.delay);
            if due > now {
                return Step::Wait(Some(due.min(self.deadline)));
            }
            if let Some(event) = self.watch.next() {
                return self.send(event);
            }
        }
        self.bookmark_or_wait(faults, now)
    }

    fn bookmark_or_wait(&mut self, faults: &WatchFaults, now: Instant) -> Step {
        if !self.watch.bookmarks {
            return Step::Wait(Some(self.deadline));
        }
        let ordered = faults.bookmarked() > self.bookmarked;
        if ordered || self.next_bookmark.is_some_and(|next| now >= next) {
            self.bookmarked = faults.bookmarked();
            self.next_bookmark = next_bookmark(now, self.deadline);
            let bookmark = self.watch.bookmark();
            return self.send(bookmark);
        }
        Step::Wait(Some(self.next_bookmark.map_or(self.deadline, |next| next.min(self.deadline))))
    }

    fn send(&mut self, event: WatchEvent) -> Step {
        if let Some((left, _)) = &mut self.cut_after {
            *left -= 1;
        }
        Step::Send(event)
    }
}
