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
use crate::state::ServingState;

/// Largest number of open event streams of all clients together. Each counts as a response that is being sent.
pub(super) const MOST_STREAMS: usize = 8;

/// Interval at which samples are taken and state is sent.
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
    /// Makes a feed of the state in `shown`. Its streams end at `stop`.
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
        let manager = &self.shown.manager;
        // Without a viewer nothing needs the keys, and copying them would hold up workers.
        let has_viewers = self.event.receiver_count() > 0;
        let queues = if has_viewers { manager.queues() } else { manager.queue_counts() };
        let tick = {
            let mut history = self.history.lock();
            history.add(&queues);
            history.tick()
        };
        if has_viewers {
            self.event.send_replace(event("state", &state(&self.shown, queues, tick)));
        }
    }

    /// Opens a stream of events: `history`, then `state` repeatedly. Returns `None` if too many are open.
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::task::JoinSet;

    use super::*;
    use crate::tests::{settings, state};

    /// A running feed, with its stop.
    fn running() -> (Arc<Feed>, CancellationToken, JoinSet<()>) {
        let stop = CancellationToken::new();
        let feed = Feed::new(Arc::new(state(&settings(&["--debug-ui", "--kube-api-qps=50"]))), stop.clone());
        let (runs, mut tasks) = (Arc::clone(&feed), JoinSet::new());
        tasks.spawn(async move { runs.run().await });
        (feed, stop, tasks)
    }

    /// The next events of a stream, by name; empty at its end.
    async fn next(stream: &mut Body) -> Vec<(String, Value)> {
        let Some(frame) = stream.frame().await else { return Vec::new() };
        let sent = frame.expect("it never fails").into_data().expect("there are no trailers");
        let sent = String::from_utf8(sent.to_vec()).expect("events are text");
        let events = sent.split_terminator("\n\n").map(|event| {
            let (name, data) = event.split_once('\n').expect("an event has two lines");
            let data = data.strip_prefix("data: ").expect("the second is its data");
            let name = name.strip_prefix("event: ").expect("the first is its name");
            (name.to_owned(), serde_json::from_str(data).expect("it is JSON"))
        });
        events.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_begins_with_the_history_and_goes_on_with_a_state_for_each_sample() {
        let (feed, _stop, _tasks) = running();
        tokio::time::sleep(INTERVAL * 4).await;
        let mut stream = feed.stream().expect("it is the first");
        let first = next(&mut stream).await;
        let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["history", "state"]);
        assert_eq!(first[0].1["tick"], first[1].1["tick"]);
        let tick = first[1].1["tick"].as_u64().expect("it is a number");
        for later in 1..3 {
            let [(name, state)] = &next(&mut stream).await[..] else { panic!("one event for each sample") };
            assert_eq!((name.as_str(), state["tick"].as_u64()), ("state", Some(tick + later)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_collected_without_a_stream() {
        let (feed, _stop, _tasks) = running();
        tokio::time::sleep(INTERVAL * 2).await;
        assert!(feed.event.borrow().is_empty());
        let _stream = feed.stream();
        tokio::time::sleep(INTERVAL).await;
        assert!(!feed.event.borrow().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_streams_are_open_as_may_be() {
        let (feed, _stop, _tasks) = running();
        let mut open: Vec<Body> = (0..MOST_STREAMS).map(|_| feed.stream().expect("there is room")).collect();
        assert!(feed.stream().is_none());
        drop(open.pop());
        assert!(feed.stream().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn streams_end_when_the_port_is_closed() {
        let (feed, stop, _tasks) = running();
        let mut stream = feed.stream().expect("it is the first");
        assert!(!next(&mut stream).await.is_empty());
        stop.cancel();
        assert!(next(&mut stream).await.is_empty());
    }

    #[test]
    fn a_line_feed_in_a_message_ends_no_event() {
        let sent = event("state", &serde_json::json!({ "error": "a\n\nevent: b\r\n" }));
        assert_eq!(String::from_utf8_lossy(&sent).matches('\n').count(), 3);
    }
}
