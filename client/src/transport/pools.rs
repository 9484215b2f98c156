//! The pools of connections: one connection for requests, and others that watches share.
//!
//! # Why HTTP/2, and why several connections
//! HTTP/2 costs one TLS connection for many requests, and its pings find a dead connection within 20 s; over
//! HTTP/1.1 each of our 45 watches would be a connection of its own, and a silent one could be dead for long. But
//! hyper keeps a single HTTP/2 connection to a host, and kube-apiserver serves 100 streams on one: if a cluster has
//! more kinds than that, the next watch would wait for ever, and writes with it. So requests have one connection, and
//! watches share others by [`WATCHES_PER_CONNECTION`]. A server that speaks only HTTP/1.1 gets that, from the same
//! pools.

use std::sync::Arc;

use http::{Request, Response};
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::connector::{CONNECT_TIMEOUT, Connector, PING_AFTER, PING_TIMEOUT};
use super::fenced_body::FencedBody;
use super::open_stream::{OpenStream, StreamBody};

/// Number of watches that share a connection: half of the default limit of kube-apiserver.
const WATCHES_PER_CONNECTION: usize = 50;

// The flow control windows. They bound memory while a large list is decoded; the window of the connection allows some
// slow streams without blocking the others.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

type Pool = hyper_util::client::legacy::Client<Connector, FencedBody>;

/// The connections to the API server that were made with one set of certificates.
///
/// When others take their place, [`retire`](Self::retire) ends their watches, which are resumed over the others; what was
/// requested over them is answered, and then they close.
pub(super) struct Pools {
    connector: Connector,
    requests: Arc<Http2Connection>,
    watches: Mutex<Vec<Arc<Http2Connection>>>,
    retired: CancellationToken,
}

/// A pool that holds one HTTP/2 connection.
struct Http2Connection {
    pool: Pool,
    streams: OpenStream,
    first: tokio::sync::Mutex<()>,
}

impl Pools {
    pub(super) fn new(connector: Connector) -> Self {
        let requests = Arc::new(Http2Connection::new(connector.clone()));
        Self { connector, requests, watches: Mutex::default(), retired: CancellationToken::new() }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<StreamBody>, BoxError> {
        let is_watch = is_watch(request.uri());
        let (connection, open) = if is_watch { self.watch_connection() } else { self.request_connection() };
        let response = connection.send(request).await?;
        let end = is_watch.then(|| self.retired.clone());
        Ok(response.map(|body| StreamBody::new(body, open, end)))
    }

    pub(super) fn retire(&self) {
        self.retired.cancel();
    }

    fn request_connection(&self) -> (Arc<Http2Connection>, OpenStream) {
        (Arc::clone(&self.requests), self.requests.streams.clone())
    }

    /// The first connection with room for another watch, or a new one.
    fn watch_connection(&self) -> (Arc<Http2Connection>, OpenStream) {
        let mut connections = self.watches.lock();
        let free = connections.iter().find(|connection| connection.streams.others() < WATCHES_PER_CONNECTION).cloned();
        let connection = free.unwrap_or_else(|| {
            let connection = Arc::new(Http2Connection::new(self.connector.clone()));
            connections.push(Arc::clone(&connection));
            connection
        });
        let open = connection.streams.clone();
        (connection, open)
    }
}

impl Http2Connection {
    fn new(connector: Connector) -> Self {
        let mut builder = hyper_util::client::legacy::Builder::new(TokioExecutor::new());
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

    async fn send(&self, request: Request<Body>) -> Result<Response<hyper::body::Incoming>, BoxError> {
        // Until ALPN has chosen HTTP/2, hyper opens a connection for each request, and drops all but one. So a single
        // request goes first, at the start and after a broken connection, and a restarted server is not overloaded.
        if self.streams.is_connected() {
            return self.request(request, None).await;
        }
        let first = tokio::time::timeout(CONNECT_TIMEOUT, self.first.lock()).await.ok();
        self.request(request, first.filter(|_| !self.streams.is_connected())).await
    }

    /// Sends a request. All that wait for `first` go on once the request has its connection: its response may take long.
    async fn request(
        &self,
        request: Request<Body>,
        first: Option<MutexGuard<'_, ()>>,
    ) -> Result<Response<hyper::body::Incoming>, BoxError> {
        let mut request = FencedBody::of(request);
        let mut connection = capture_connection(&mut request);
        let mut responding = self.pool.request(request);
        if first.is_some() {
            let is_made = async { connection.wait_for_connection_metadata().await.is_some() };
            tokio::select! {
                biased;
                response = &mut responding => return self.answered(response),
                is_made = is_made => if is_made {
                    self.streams.connected();
                },
            }
        }
        drop(first);
        self.answered(responding.await)
    }

    fn answered<R>(&self, response: Result<R, hyper_util::client::legacy::Error>) -> Result<R, BoxError> {
        match &response {
            Ok(_) => self.streams.connected(),
            Err(error) => self.streams.failed(error),
        }
        Ok(response?)
    }
}

/// Returns `true` if a request is a watch, which stays open.
pub(crate) fn is_watch(uri: &http::Uri) -> bool {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    pairs.any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_recognized_by_their_query() {
        for (uri, watch) in [
            ("/api/v1/pods?watch=true&x=1", true),
            ("/api/v1/pods?x=1&watch=1", true),
            ("/api/v1/pods?watch=false", false),
            ("/api/v1/pods?rewatch=true", false),
            ("/api/v1/pods", false),
        ] {
            assert_eq!(is_watch(&uri.parse().unwrap()), watch, "{uri}");
        }
    }
}
