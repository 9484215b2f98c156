//! The body of a response that is read by its caller, whose bytes are counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Method;
use http_body::{Frame, SizeHint};
use kube::client::Body;

use super::metrics::ClientMetrics;

/// The counter of the bytes of responses to requests of that method.
type Counter = (Method, Arc<dyn ClientMetrics>);

/// A response body, whose bytes are counted when it is dropped.
pub(super) struct CountedBody {
    body: Body,
    bytes: u64,
    /// `None` if the bytes are not counted.
    counter: Option<Counter>,
}

impl CountedBody {
    pub(super) fn new(body: Body, counter: Option<Counter>) -> Self {
        Self { body, bytes: 0, counter }
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        if let Some((method, metrics)) = &self.counter {
            metrics.response_size(method.as_str(), self.bytes);
        }
    }
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = <Body as http_body::Body>::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
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
