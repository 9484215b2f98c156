//! The open streams of a connection, whether it is connected, and whether its server is in doubt.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::fence::Fenced;

/// A handle of one open stream: clones are counted, and share the state of the connection.
#[derive(Clone, Default)]
pub(crate) struct OpenStream(Arc<ConnectionState>);

#[derive(Default)]
struct ConnectionState {
    is_connected: AtomicBool,
    doubted_at: Mutex<Option<Instant>>,
}

/// Time without data after which the server of a watch is in doubt if its reader drops it. The API server sends a bookmark
/// every minute, so that the watch has missed one.
const SILENT: Duration = Duration::from_mins(2);

impl OpenStream {
    /// Number of other clones.
    pub(crate) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// Returns `true` if the connection was made and has not failed since.
    pub(crate) fn is_connected(&self) -> bool {
        self.0.is_connected.load(Ordering::Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.0.is_connected.store(true, Ordering::Relaxed);
    }

    /// Records an error. A reset stream leaves the connection connected, and so does a write that we did not send.
    pub(crate) fn failed(&self, error: &(dyn Error + 'static)) {
        let mut causes = std::iter::successors(Some(error), |&error| error.source());
        let is_of_stream =
            causes.any(|cause| cause.is::<Fenced>() || cause.downcast_ref().is_some_and(h2::Error::is_reset));
        if !is_of_stream {
            self.0.is_connected.store(false, Ordering::Relaxed);
        }
    }
}

impl OpenStream {
    /// When a request over the connection last failed in a way that may be the fault of its server; `None` if a request has
    /// succeeded since.
    pub(crate) fn doubted_at(&self) -> Option<Instant> {
        *self.0.doubted_at.lock()
    }

    /// Records that a request failed in such a way.
    pub(crate) fn doubt(&self) {
        *self.0.doubted_at.lock() = Some(Instant::now());
    }

    /// Records that a request succeeded.
    pub(crate) fn trust(&self) {
        *self.0.doubted_at.lock() = None;
    }
}

/// A response body, whose stream counts as open until it is dropped.
pub(crate) struct StreamBody {
    body: Incoming,
    stream: OpenStream,
    /// Ends the body before the server does.
    end: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    last_data_at: Instant,
    has_ended: bool,
}

impl StreamBody {
    /// A body that ends with the response, or when `end` is cancelled.
    pub(crate) fn new(body: Incoming, stream: OpenStream, end: Option<CancellationToken>) -> Self {
        let end = end.map(|end| Box::pin(end.cancelled_owned()));
        Self { body, stream, end, last_data_at: Instant::now(), has_ended: false }
    }

    fn ends_early(&mut self, cx: &mut Context<'_>) -> bool {
        self.end.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready())
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.ends_early(cx) {
            self.has_ended = true;
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Err(error))) => {
                self.stream.failed(error);
                self.has_ended = true;
            }
            Poll::Ready(Some(Ok(_))) => self.last_data_at = Instant::now(),
            Poll::Ready(None) => self.has_ended = true,
            Poll::Pending => {}
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

impl Drop for StreamBody {
    fn drop(&mut self) {
        if self.end.is_some() && !self.has_ended && self.last_data_at.elapsed() >= SILENT {
            self.stream.doubt();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::client_provider::CredentialsError;

    #[test]
    fn a_write_that_the_fence_holds_back_leaves_its_connection_connected() {
        let connection = OpenStream::default();
        connection.connected();
        connection.failed(&CredentialsError::new(Fenced));
        assert!(connection.is_connected());
        connection.failed(&io::Error::from(io::ErrorKind::ConnectionReset));
        assert!(!connection.is_connected());
    }
}
