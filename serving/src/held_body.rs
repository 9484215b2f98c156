//! A body that keeps something until it has been sent, or its client stops reading.

use std::any::Any;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Longest time for which a client takes nothing of a body. The body is dropped then.
const STALL: Duration = Duration::from_secs(30);

/// Bytes of a body that are handed to the connection at a time. They are copied, so that the connection's buffers do not
/// keep a large body after its permit has been returned.
const PIECE: usize = 16 * 1024;

/// The bodies that are being sent.
#[derive(Debug, Default)]
pub(super) struct HeldBodies {
    /// Number of the next body, and the bodies by their numbers.
    open: Mutex<(u64, BTreeMap<u64, SharedSending>)>,
}

type SharedSending = Weak<Mutex<Sending>>;

/// The state of a body.
enum Sending {
    Open(Open),
    /// It has been sent.
    Ended,
    /// Its client has read nothing for too long.
    Dropped,
}

struct Open {
    body: Body,
    /// Data of `body` that has not been handed over.
    rest: Bytes,
    /// Time since which the client could take more. `None` while the body has nothing to send.
    offered: Option<Instant>,
    _held: Box<dyn Any + Send>,
}

/// The body that is sent. Its `state` is shared with [`HeldBodies`].
struct HeldBody {
    bodies: Arc<HeldBodies>,
    id: u64,
    state: Arc<Mutex<Sending>>,
}

/// The error of a body that was dropped.
#[derive(Debug, thiserror::Error)]
#[error("the client has read nothing of the response for {}s", STALL.as_secs())]
struct Stalled;

impl std::fmt::Debug for Sending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Ended => "Ended",
            Self::Dropped => "Dropped",
        })
    }
}

impl HeldBodies {
    /// Wraps `body` so that `held` is dropped when the body has been sent, its connection has ended, or its client has
    /// read nothing for too long.
    pub(super) fn hold(self: &Arc<Self>, body: Body, held: impl Any + Send) -> Body {
        // A body without an end to wait for keeps nothing: hyper may never poll it.
        if body.is_end_stream() {
            return body;
        }
        let offered = Some(Instant::now());
        let state = Sending::Open(Open { body, rest: Bytes::new(), offered, _held: Box::new(held) });
        let state = Arc::new(Mutex::new(state));
        let mut guard = self.open.lock();
        let (next, open) = &mut *guard;
        let id = *next;
        *next += 1;
        open.insert(id, Arc::downgrade(&state));
        drop(guard);
        Body::new(HeldBody { bodies: Arc::clone(self), id, state })
    }

    /// Drops the bodies whose clients have read nothing for too long at `now`.
    ///
    /// A connection does not poll a body that its client does not want, so that no body notices by itself.
    pub(super) fn drop_stalled(&self, now: Instant) {
        let open: Vec<_> = self.open.lock().1.values().filter_map(Weak::upgrade).collect();
        for state in open {
            let mut state = state.lock();
            let is_stalled = match &*state {
                Sending::Open(open) => open.offered.is_some_and(|offered| now.duration_since(offered) >= STALL),
                Sending::Ended | Sending::Dropped => false,
            };
            if is_stalled {
                *state = Sending::Dropped;
            }
        }
    }
}

impl Open {
    /// The next piece of the data that has been read.
    fn piece(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        Some(Bytes::copy_from_slice(&piece))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(piece) = self.piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if data.len() > PIECE => {
                    self.rest = data;
                    Poll::Ready(self.piece().map(|piece| Ok(Frame::data(piece))))
                }
                Ok(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(trailers) => Poll::Ready(Some(Ok(trailers))),
            },
            Poll::Ready(ended @ (None | Some(Err(_)))) => Poll::Ready(ended),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut state = self.state.lock();
        let open = match &mut *state {
            Sending::Open(open) => open,
            Sending::Ended => return Poll::Ready(None),
            Sending::Dropped => return Poll::Ready(Some(Err(axum::Error::new(Stalled)))),
        };
        let polled = open.poll(context);
        open.offered = polled.is_ready().then(Instant::now);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            *state = Sending::Ended;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &*self.state.lock() {
            Sending::Open(open) => open.rest.is_empty() && open.body.is_end_stream(),
            Sending::Ended => true,
            Sending::Dropped => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.state.lock() {
            Sending::Open(open) => {
                let (hint, rest) = (open.body.size_hint(), open.rest.len() as u64);
                let mut joined = SizeHint::new();
                if let Some(upper) = hint.upper() {
                    joined.set_upper(upper + rest);
                }
                joined.set_lower(hint.lower() + rest);
                joined
            }
            Sending::Ended => SizeHint::with_exact(0),
            Sending::Dropped => SizeHint::new(),
        }
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        self.bodies.open.lock().1.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;
    use tokio::time::advance;

    use super::*;

    /// Something to hold, and a reference that tells if it is held.
    fn held() -> (Arc<()>, Weak<()>) {
        let held = Arc::new(());
        let reference = Arc::downgrade(&held);
        (held, reference)
    }

    #[tokio::test]
    async fn a_large_body_is_handed_over_in_pieces_and_kept_until_the_last() {
        let (bodies, (value, is_held)) = (Arc::new(HeldBodies::default()), held());
        let content: Vec<u8> = (0..=255).cycle().take(3 * PIECE + 7).collect();
        let mut body = bodies.hold(Body::from(content.clone()), value);
        assert_eq!(body.size_hint().exact(), Some(content.len() as u64));
        let mut sent = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.expect("it is memory").into_data().expect("it is data");
            assert!(piece.len() <= PIECE && is_held.strong_count() == 1);
            sent.extend_from_slice(&piece);
            let left = (content.len() - sent.len()) as u64;
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left), left == 0));
        }
        assert_eq!((sent, is_held.strong_count()), (content, 0));
        drop(body);
        assert!(bodies.open.lock().1.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_dropped_after_30_s_in_which_its_client_reads_nothing() {
        let (bodies, (value, is_held)) = (Arc::new(HeldBodies::default()), held());
        let mut body = bodies.hold(Body::from(vec![0; 5 * PIECE]), value);
        for _ in 0..3 {
            // A slow client goes on.
            advance(STALL.saturating_sub(Duration::from_millis(1))).await;
            bodies.drop_stalled(Instant::now());
            assert_eq!(is_held.strong_count(), 1);
            body.frame().await.expect("it goes on").expect("it is memory");
        }
        advance(STALL).await;
        bodies.drop_stalled(Instant::now());
        assert_eq!(is_held.strong_count(), 0);
        assert!(!body.is_end_stream(), "what was cut does not look whole");
        let error = body.frame().await.expect("it is no end").expect_err("it was dropped");
        assert!(error.to_string().contains("has read nothing"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_has_nothing_to_send_is_not_dropped() {
        let (bodies, (value, is_held)) = (Arc::new(HeldBodies::default()), held());
        let events = stream::iter(["one"]).chain(stream::pending()).map(Ok::<_, std::convert::Infallible>);
        let mut body = bodies.hold(Body::from_stream(events), value);
        body.frame().await.expect("it goes on").expect("it never fails");
        assert!(tokio::time::timeout(10 * STALL, body.frame()).await.is_err());
        bodies.drop_stalled(Instant::now());
        assert_eq!(is_held.strong_count(), 1);
    }
}
