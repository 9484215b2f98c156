//! The pools of connections: one connection for requests, and others that watches share.
//!
//! # Why HTTP/2, and why several connections
//! HTTP/2 costs one TLS connection for many requests, and its pings find a dead connection within 20 s; over
//! HTTP/1.1 each of our 45 watches would be a connection of its own, and a silent one could be dead for long. But
//! hyper keeps a single HTTP/2 connection to a host, and kube-apiserver serves 100 streams on one: if a cluster has
//! more kinds than that, the next watch would wait for ever, and writes with it. So requests have one connection, and
//! watches share others by [`WATCHES_PER_CONNECTION`]. A server that speaks only HTTP/1.1 gets that, from the same
//! pools.
//!
//! # Why writes have a connection of their own
//! The writes of a lease must not arrive after the lease. When its fence is over, their connection is reset; the reads
//! of a standby go on over the other. The writes of a manager without a lease go over the connection for requests.

use std::sync::Arc;

use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::connector::Connectors;
use super::http2_connection::Http2Connection;
use super::open_stream::{OpenStream, StreamBody};
use crate::fence::Fence;

/// Number of watches that share a connection: half of the default limit of kube-apiserver.
const WATCHES_PER_CONNECTION: usize = 50;

/// The connections to the API server that were made with one set of certificates.
///
/// When others take their place, what was requested over them is answered, and then they close.
/// [`retire`](Self::retire) ends their watches, which are resumed over the others.
pub(super) struct Pools {
    connectors: Connectors,
    requests: Arc<Http2Connection>,
    /// By the fence that the writes pass.
    writes: Mutex<Vec<(Fence, Arc<Http2Connection>)>>,
    watches: Mutex<Vec<Arc<Http2Connection>>>,
    retired: CancellationToken,
}

impl Pools {
    pub(super) fn new(connectors: Connectors) -> Self {
        let requests = Arc::new(Http2Connection::new(connectors.connector()));
        let (writes, watches) = Default::default();
        Self { connectors, requests, writes, watches, retired: CancellationToken::new() }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<StreamBody>, BoxError> {
        let is_watch = is_watch(request.uri());
        let fence = request.extensions().get::<Fence>().filter(|fence| fence.is_limited());
        let (connection, open) = match fence {
            _ if is_watch => self.watch_connection(),
            Some(fence) => counted(self.write_connection(fence)),
            None => counted(Arc::clone(&self.requests)),
        };
        let response = connection.send(request).await?;
        let end = is_watch.then(|| self.retired.clone());
        Ok(response.map(|body| StreamBody::new(body, open, end)))
    }

    /// Sends a probe over the connection whose request failed last, if one did since its last success. Every other
    /// connection may lead to an API server that serves.
    pub(super) async fn probe(&self, request: Request<Body>) -> Result<Response<StreamBody>, BoxError> {
        let (connection, open) = counted(self.most_doubtful());
        let response = connection.probe(request).await?;
        Ok(response.map(|body| StreamBody::new(body, open, None)))
    }

    fn most_doubtful(&self) -> Arc<Http2Connection> {
        let mut connections = vec![Arc::clone(&self.requests)];
        connections.extend(self.watches.lock().iter().cloned());
        // Nothing can be sent over the others, and the fence is not the fault of a server.
        let writes = self.writes.lock();
        connections.extend(writes.iter().filter(|(fence, _)| fence.passes()).map(|(_, writes)| Arc::clone(writes)));
        drop(writes);
        let doubtful = connections.iter().filter(|connection| connection.streams.doubted_at().is_some());
        let most = doubtful.max_by_key(|connection| connection.streams.doubted_at()).map(Arc::clone);
        most.unwrap_or_else(|| Arc::clone(&self.requests))
    }

    /// Ends the watches, because others have taken the place of these connections.
    pub(super) fn retire(&self) {
        self.retired.cancel();
    }

    /// The connection for the writes that pass `fence`.
    fn write_connection(&self, fence: &Fence) -> Arc<Http2Connection> {
        let mut connections = self.writes.lock();
        if let Some((_, connection)) = connections.iter().find(|(of, _)| of.is(fence)) {
            return Arc::clone(connection);
        }
        let connection = Arc::new(Http2Connection::new(self.connectors.connector_of_writes(fence)));
        connections.push((fence.clone(), Arc::clone(&connection)));
        connection
    }

    /// The first connection with room for another watch, or a new one.
    fn watch_connection(&self) -> (Arc<Http2Connection>, OpenStream) {
        let mut connections = self.watches.lock();
        let free = connections.iter().find(|connection| connection.streams.others() < WATCHES_PER_CONNECTION).cloned();
        let connection = free.unwrap_or_else(|| {
            let connection = Arc::new(Http2Connection::new(self.connectors.connector()));
            connections.push(Arc::clone(&connection));
            connection
        });
        counted(connection)
    }
}

/// A connection, and the handle of another stream of it.
fn counted(connection: Arc<Http2Connection>) -> (Arc<Http2Connection>, OpenStream) {
    let open = connection.streams.clone();
    (connection, open)
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
