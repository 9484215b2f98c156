//! A pool that holds one HTTP/2 connection.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connect, capture_connection};
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use tokio::sync::MutexGuard;
use tower::BoxError;

use super::connector::{CONNECT_TIMEOUT, Connector, PING_AFTER, PING_TIMEOUT};
use super::fenced_body::FencedBody;
use super::open_stream::OpenStream;

// The flow control windows. They bound memory while a large list is decoded; the window of the connection allows some
// slow streams without blocking the others.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

type Pool<C> = Client<C, FencedBody>;

/// A pool that holds one HTTP/2 connection.
pub(super) struct Http2Connection<C = Connector> {
    pool: Pool<C>,
    pub(super) streams: OpenStream,
    first: tokio::sync::Mutex<()>,
}

impl<C: Connect + Clone + Send + Sync + 'static> Http2Connection<C> {
    pub(super) fn new(connector: C) -> Self {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING_AFTER)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true);
        Self { pool: builder.build(connector), streams: OpenStream::default(), first: tokio::sync::Mutex::default() }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        // Until ALPN has chosen HTTP/2, hyper opens a connection for each request, and drops all but one. So a single
        // request goes first, at the start and after a broken connection, and a restarted server is not overloaded.
        if self.streams.is_connected() {
            return self.request(request, None).await;
        }
        let first = tokio::time::timeout(CONNECT_TIMEOUT, self.first.lock()).await.ok();
        self.request(request, first.filter(|_| !self.streams.is_connected())).await
    }

    /// Sends a probe, which waits for no other request.
    pub(super) async fn probe(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        self.request(request, None).await
    }

    /// Sends a request. All that wait for `first` go on once the request has its connection: its response may take long.
    async fn request(
        &self,
        request: Request<Body>,
        first: Option<MutexGuard<'_, ()>>,
    ) -> Result<Response<Incoming>, BoxError> {
        let mut request = FencedBody::of(request);
        let mut connection = capture_connection(&mut request);
        let mut responding = self.pool.request(request);
        let unanswered = Unanswered(&self.streams);
        if first.is_some() {
            let is_made = async { connection.wait_for_connection_metadata().await.is_some() };
            tokio::select! {
                biased;
                response = &mut responding => {
                    drop(unanswered);
                    return self.answered(response);
                }
                is_made = is_made => if is_made {
                    self.streams.connected();
                },
            }
        }
        drop(first);
        let response = responding.await;
        drop(unanswered);
        self.answered(response)
    }

    fn answered<R>(
        &self,
        response: Result<Response<R>, hyper_util::client::legacy::Error>,
    ) -> Result<Response<R>, BoxError> {
        match &response {
            Ok(response) => {
                self.streams.connected();
                if !may_be_fault_of_server(response.status()) {
                    self.streams.trust();
                }
            }
            Err(error) => self.streams.failed(error),
        }
        Ok(response?)
    }
}

/// Doubts the server of a connection unless its response says otherwise, even if nobody waits for it any more.
struct Unanswered<'a>(&'a OpenStream);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.doubt();
    }
}

/// Returns `true` if a response may come from a server that runs and cannot serve: without its storage, or at its start.
fn may_be_fault_of_server(code: StatusCode) -> bool {
    code.is_server_error() || code == StatusCode::FORBIDDEN
}
