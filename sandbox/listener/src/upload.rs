//! The body of a request while it is received.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Number of bytes, and time, for which the rest of a body is discarded after its response.
const LEFT: usize = 16 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Tasks of one connection, which end with it.
pub(crate) type Tasks = Arc<Mutex<JoinSet<()>>>;

/// The body of a request. Its unread rest is discarded when this is dropped.
///
/// On HTTP/1.1 a connection that is closed with something unread is reset, and the client may lose the response with
/// the error. HTTP/2 ends single streams, so nothing needs to be read there.
pub(crate) struct Upload {
    body: Option<Incoming>,
    leftovers: Option<Tasks>,
}

impl Upload {
    /// A body, and the tasks that read its rest, if any.
    pub(crate) const fn new(body: Incoming, leftovers: Option<Tasks>) -> Self {
        Self { body: Some(body), leftovers }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.body.as_mut().map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Some(tasks), Ok(runtime)) = (unread, &self.leftovers, Handle::try_current()) {
            let mut tasks = tasks.lock();
            while tasks.try_join_next().is_some() {}
            tasks.spawn_on(throw_away(body), &runtime);
        }
    }
}

async fn throw_away(mut body: Incoming) {
    let all = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > LEFT {
                break;
            }
        }
    };
    // Clients that are not finished by then are cut.
    drop(timeout(PATIENCE, all).await);
}
