//! A connection as the answers see that are still being read on it: how many they are, and whether it stands.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// One open answer; the count is the number of clones, and all share what is known of the connection.
#[derive(Clone, Default)]
pub(crate) struct Open(Arc<AtomicBool>);

impl Open {
    /// How many clones there are beside this one.
    pub(crate) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// Whether the last that was heard of the connection was good.
    pub(crate) fn is_connected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An answer came.
    pub(crate) fn answered(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// A request or an answer broke. A server that resets a stream does so over a connection that stands.
    pub(crate) fn broke(&self, error: &(dyn Error + 'static)) {
        let mut causes = std::iter::successors(Some(error), |&error| error.source());
        let is_of_stream = causes.any(|cause| cause.downcast_ref().is_some_and(h2::Error::is_reset));
        if !is_of_stream {
            self.0.store(false, Ordering::Relaxed);
        }
    }
}

/// The body of an answer, counted as open until it is dropped.
pub(crate) struct Counted {
    body: Incoming,
    open: Open,
}

impl Counted {
    pub(crate) const fn new(body: Incoming, open: Open) -> Self {
        Self { body, open }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Err(error))) = &polled {
            self.open.broke(error);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
