//! The feed of the status page: samples of the queues, and streams of server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::history::History;
use super::snapshot::{settings, state};
use crate::serving::state::ServingState;

/// How many streams of events are open at a time, of all clients together. Each counts as an answer under way.
pub(super) const MOST_STREAMS: usize = 8;

/// How often samples are taken, and state is sent.
const INTERVAL: Duration = Duration::from_secs(3);

/// The feed of the status page.
pub(crate) struct Feed {
    shown: Arc<ServingState>,
    history: Mutex<History>,
    /// The last state that was sent, as an event.
    event: watch::Sender<Bytes>,
    streams: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Feed {
    /// A feed of what `shown` shows, whose streams end at `stop`.
    pub(crate) fn new(shown: Arc<ServingState>, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            shown,
            history: Mutex::default(),
            event: watch::Sender::default(),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            stop,
        })
    }

    /// Takes samples and feeds the streams, for ever.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.tick();
        }
    }

    fn tick(&self) {
        let queues = self.shown.manager.queues();
        let tick = {
            let mut history = self.history.lock();
            history.add(&queues);
            history.tick()
        };
        if self.event.receiver_count() > 0 {
            self.event.send_replace(event("state", &state(&self.shown, queues, tick)));
        }
    }

    /// A stream of events: `history`, then `state` again and again. Absent while as many are open as may be.
    pub(crate) fn stream(&self) -> Option<Body> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        let (history, tick) = {
            let history = self.history.lock();
            (history.to_json(INTERVAL.as_secs_f64()), history.tick())
        };
        let now = state(&self.shown, self.shown.manager.queues(), tick);
        let first = [event("history", &history), event("state", &now)].concat();
        // An event that was sent before is older than `now`.
        let mut events = self.event.subscribe();
        events.mark_unchanged();
        let viewer = Viewer { first: Some(first.into()), events, stop: self.stop.clone(), _permit: permit };
        Some(Body::from_stream(stream::unfold(viewer, Viewer::next)))
    }

    /// Every setting with its origin.
    pub(crate) fn settings(&self) -> Value {
        settings(&self.shown.settings)
    }
}

/// The other end of a stream.
struct Viewer {
    first: Option<Bytes>,
    events: watch::Receiver<Bytes>,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Viewer {
    /// The next event. A client that reads slowly misses those in between, so that nothing piles up.
    async fn next(mut self) -> Option<(Result<Bytes, std::convert::Infallible>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first), self));
        }
        let changed = self.stop.run_until_cancelled(self.events.changed()).await;
        if !matches!(changed, Some(Ok(()))) {
            return None;
        }
        let event = self.events.borrow_and_update().clone();
        Some((Ok(event), self))
    }
}

/// A server-sent event. JSON has no line feeds.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
