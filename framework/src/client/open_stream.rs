//! Counts the answers that are still being read on a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// One open answer; the count is the number of clones.
#[derive(Clone, Default)]
pub(crate) struct Open(Arc<()>);

impl Open {
    /// How many clones there are beside this one.
    pub(crate) fn others(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// The body of an answer, counted as open until it is dropped.
pub(crate) struct Counted {
    body: Incoming,
    _open: Open,
}

impl Counted {
    pub(crate) const fn new(body: Incoming, open: Open) -> Self {
        Self { body, _open: open }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
