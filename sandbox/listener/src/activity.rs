//! What a connection is doing, and what it is told to do.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use kcm_sandbox_apiserver::{ConnectionLost, ResponseBody};

/// The most that is handed over at a time: what a client that reads nothing keeps in memory beyond the sockets.
pub(crate) const PIECE: usize = 32 * 1024;

/// How a connection is to end, in rising urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Stay,
    /// After the requests that it has.
    Leave,
    /// Whatever it is doing.
    Cut,
}

/// The requests of one connection, and whether its client takes what it is sent.
pub(crate) struct Activity {
    state: Mutex<State>,
    order: watch::Sender<Order>,
}

struct State {
    begun: u64,
    requests: BTreeMap<u64, Progress>,
    /// When the last request ended, or the connection began.
    quiet_since: Instant,
}

#[derive(Default)]
struct Progress {
    watches: bool,
    /// When the client was handed something that it has not taken yet.
    handed_at: Option<Instant>,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { begun: 0, requests: BTreeMap::new(), quiet_since: Instant::now() };
        Arc::new(Self { state: Mutex::new(state), order: watch::Sender::new(Order::Stay) })
    }

    /// Notes a request; it lasts until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = self.state.lock();
        state.begun += 1;
        let number = state.begun;
        state.requests.insert(number, Progress::default());
        Exchange { activity: self.clone(), number }
    }

    /// Since when there is no request.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.requests.is_empty().then_some(state.quiet_since)
    }

    /// Since when a client has not taken what it was handed.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        self.state.lock().requests.values().filter_map(|progress| progress.handed_at).min()
    }

    /// Whether there is a request that ends by itself soon.
    pub(crate) fn will_answer(&self) -> bool {
        self.state.lock().requests.values().any(|progress| !progress.watches)
    }

    /// Tells the connection to end; an order is never taken back.
    pub(crate) fn order(&self, order: Order) {
        self.order.send_if_modified(|given| {
            let rises = order > *given;
            *given = order.max(*given);
            rises
        });
    }

    /// Waits until the connection is told to end as urgently as that.
    pub(crate) async fn ordered(&self, order: Order) {
        let mut orders = self.order.subscribe();
        // The sender lives as long as this borrow.
        drop(orders.wait_for(|given| *given >= order).await);
    }
}

/// One request and its answer.
pub(crate) struct Exchange {
    activity: Arc<Activity>,
    number: u64,
}

impl Exchange {
    /// Follows the body of the answer on its way to the client.
    pub(crate) fn answer(self, body: ResponseBody) -> Answer {
        // Of all answers only watches do not know their length.
        let watches = body.size_hint().exact().is_none();
        self.note(|progress| progress.watches = watches);
        Answer { body, rest: Bytes::new(), exchange: self }
    }

    fn note(&self, note: impl FnOnce(&mut Progress)) {
        if let Some(progress) = self.activity.state.lock().requests.get_mut(&self.number) {
            note(progress);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.requests.remove(&self.number);
        state.quiet_since = Instant::now();
    }
}

/// A body in pieces; being asked for the next one tells that the client has taken the one before.
pub(crate) struct Answer {
    body: ResponseBody,
    rest: Bytes,
    exchange: Exchange,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = ConnectionLost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.exchange.note(|progress| progress.handed_at = None);
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.exchange.note(|progress| progress.handed_at = Some(Instant::now()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.size_hint().exact() {
            Some(length) => SizeHint::with_exact(length + self.rest.len() as u64),
            None => SizeHint::new(),
        }
    }
}
