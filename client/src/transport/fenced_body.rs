//! The body of a request that passes the fence a second time, when the connection sends it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tower::BoxError;

use crate::fence::{Fence, Fenced};

/// A body that a connection takes right before it sends it. The body of a write is refused once the fence is closed.
///
/// Between the check of a write and its turn on the connection, the process may have been stopped for longer than its lease.
/// The API server does not execute a request whose body does not arrive.
pub(super) struct FencedBody {
    body: Body,
    fence: Option<Fence>,
}

impl FencedBody {
    /// The same request, whose body passes the fence that it was [marked](Fence::mark) with.
    pub(super) fn of(request: Request<Body>) -> Request<Self> {
        let (mut head, body) = request.into_parts();
        let fence = head.extensions.remove::<Fence>();
        Request::from_parts(head, Self { body, fence })
    }
}

impl http_body::Body for FencedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.fence.as_ref().is_some_and(|fence| !fence.admits()) {
            return Poll::Ready(Some(Err(Fenced.into())));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_err(Into::into)
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
    use futures::FutureExt as _;
    use http::Method;
    use http_body_util::BodyExt as _;

    use super::*;

    fn request(method: Method, fence: &Fence) -> Request<FencedBody> {
        let mut request = Request::new(Body::from(b"{}".to_vec()));
        *request.method_mut() = method;
        fence.mark(&mut request);
        FencedBody::of(request)
    }

    fn taken(request: Request<FencedBody>) -> Result<Bytes, String> {
        let body = request.into_body().collect().now_or_never().expect("it waits for nothing");
        body.map(http_body_util::Collected::to_bytes).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_write_that_waits_for_its_connection_is_not_sent_once_the_fence_is_closed() {
        let fence = Fence::default();
        let [open, waits] = [0; 2].map(|_| request(Method::POST, &fence));
        assert_eq!(taken(open), Ok(Bytes::from_static(b"{}")));
        fence.close();
        assert_eq!(taken(waits), Err(Fenced.to_string()));
    }

    #[tokio::test]
    async fn a_body_that_is_no_write_passes_a_closed_fence() {
        let fence = Fence::default();
        fence.close();
        assert!(taken(request(Method::GET, &fence)).is_ok());
    }
}
