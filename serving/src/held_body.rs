//! A body that keeps something until it has been sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// A body that drops `held` when it has been sent, or its connection has ended.
pub(super) struct HeldBody<T> {
    body: Body,
    held: Option<T>,
}

impl<T: Send + Unpin + 'static> HeldBody<T> {
    /// Wraps `body` so that it keeps `held`.
    pub(super) fn wrap(body: Body, held: T) -> Body {
        // A body without an end to wait for keeps nothing: hyper may never poll it.
        if body.is_end_stream() { body } else { Body::new(Self { body, held: Some(held) }) }
    }
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.held = None;
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
