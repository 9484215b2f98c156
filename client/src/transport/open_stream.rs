//! The open streams of a connection, and whether it is connected.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::fence::Fenced;

/// A handle of one open stream: clones are counted, and share the state of the connection.
#[derive(Clone, Default)]
pub(crate) struct OpenStream(Arc<AtomicBool>);

impl OpenStream {
    /// Number of other clones.
    pub(crate) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// Returns `true` if the connection was made and has not failed since.
    pub(crate) fn is_connected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Records an error. A reset stream leaves the connection connected, and so does a write that we did not send.
    pub(crate) fn failed(&self, error: &(dyn Error + 'static)) {
        let mut causes = std::iter::successors(Some(error), |&error| error.source());
        let is_of_stream =
            causes.any(|cause| cause.is::<Fenced>() || cause.downcast_ref().is_some_and(h2::Error::is_reset));
        if !is_of_stream {
            self.0.store(false, Ordering::Relaxed);
        }
    }
}

/// A response body, whose stream counts as open until it is dropped.
pub(crate) struct StreamBody {
    body: Incoming,
    stream: OpenStream,
    /// Ends the body before the server does.
    end: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl StreamBody {
    /// A body that ends with the response, or when `end` is cancelled.
    pub(crate) fn new(body: Incoming, stream: OpenStream, end: Option<CancellationToken>) -> Self {
        Self { body, stream, end: end.map(|end| Box::pin(end.cancelled_owned())) }
    }

    fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        self.end.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready())
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.has_ended(cx) {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Err(error))) = &polled {
            self.stream.failed(error);
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
