//! The HTTP stack beneath kube's client.
//!
//! # Why HTTP/2, and why several connections
//! HTTP/2 costs one TLS connection for many requests, and its pings find a dead connection within 20 s; over
//! HTTP/1.1 each of our 45 watches would be a connection of its own, and a silent one could be dead for long. But
//! hyper keeps a single HTTP/2 connection to a host, and kube-apiserver serves 100 streams on one: where a cluster
//! has more kinds than that, the next watch would wait for ever, and writes with it. So requests have one
//! connection, and watches share others by [`WATCHES_PER_CONNECTION`]. A server that speaks only
//! HTTP/1.1 gets that, from the same pools.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::{Body, ConfigExt};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use super::fenced_body::FencedBody;
use super::open_stream::{OpenStream, StreamBody};
use super::read_ahead::ReadAhead;

/// How many watches share a connection: half of the default limit of kube-apiserver.
const WATCHES_PER_CONNECTION: usize = 50;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

// A connection without data for so long is pinged, and closed if the ping is not answered. client-go waits for 30 s and
// 15 s. Here one probe guards the reconnection of all watches, so that closing too early costs little, and a server that
// is gone without a word is found before the requests to it time out.
const PING_AFTER: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// How long sent data may be unacknowledged: it is not retransmitted later, so that no write arrives long after its
/// timeout.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

// The flow control windows. They bound memory while a large list is decoded; that of the connection allows some slow
// streams without blocking the others.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// A configuration that cannot be used to connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// A proxy is configured.
    #[error(
        "the API server is to be reached through the proxy {0}, which is not supported: remove `proxy-url` or the proxy variables of the environment, or list the server in NO_PROXY"
    )]
    Proxy(String),
    /// The CA, client certificate or key is invalid.
    #[error(
        "the certificates of the kubeconfig cannot be used: check `certificate-authority`, `client-certificate` and `client-key`"
    )]
    Certificates(#[source] kube::Error),
    /// The `tls-server-name` is invalid.
    #[error("`tls-server-name` of the kubeconfig, \"{0}\", is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The credentials are invalid.
    #[error("the credentials of the kubeconfig cannot be used: check its user's token, token file or exec command")]
    Credentials(#[source] kube::Error),
}

type Connector = BoxCloneSyncService<http::Uri, Connection, BoxError>;
type Connection = MaybeHttpsStream<ReadAhead<TokioIo<TcpStream>>>;
type Pool = hyper_util::client::legacy::Client<Connector, FencedBody>;

/// A client over connections that all identities share.
///
/// Requests are sent once: kube's retry layer, which repeats writes too, is left out.
///
/// # Panics
/// Outside of a tokio runtime.
///
/// # Errors
/// Where the configuration names a proxy, or certificates or credentials that cannot be used.
pub fn connect(config: &kube::Config) -> Result<kube::Client, StackError> {
    if let Some(proxy) = &config.proxy_url {
        return Err(StackError::Proxy(proxy.to_string()));
    }
    let pools = Arc::new(Pools::new(connector(config)?));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(StackError::Credentials)?)
        .layer(config.extra_headers_layer().map_err(StackError::Credentials)?)
        .service(tower::service_fn(move |request| Arc::clone(&pools).send(request)));
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

fn connector(config: &kube::Config) -> Result<Connector, StackError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread has installed one.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    }
    let tls = config.rustls_client_config().map_err(StackError::Certificates)?;

    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // HTTP/1.1 has no pings: without these a dead connection could look open for hours.
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_TIMEOUT));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));

    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let https = match &config.tls_server_name {
        Some(name) => {
            let name = ServerName::try_from(name.clone()).map_err(|_| StackError::ServerName(name.clone()))?;
            https.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => https,
    };
    let https = https.enable_all_versions().wrap_connector(tcp.map_response(ReadAhead::new));
    // The connector's own time-out would end with TCP; a server that accepts and then says nothing counts too.
    let timeout = config.connect_timeout.unwrap_or(CONNECT_TIMEOUT).min(CONNECT_TIMEOUT);
    Ok(BoxCloneSyncService::new(tower::service_fn(move |uri| {
        let connecting = https.clone().oneshot(uri);
        async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
            }
        }
    })))
}

struct Pools {
    connector: Connector,
    requests: Arc<Http2Connection>,
    watches: Mutex<Vec<Arc<Http2Connection>>>,
}

/// A pool that holds one HTTP/2 connection.
struct Http2Connection {
    pool: Pool,
    streams: OpenStream,
    first: tokio::sync::Mutex<()>,
}

impl Pools {
    fn new(connector: Connector) -> Self {
        let requests = Arc::new(Http2Connection::new(connector.clone()));
        Self { connector, requests, watches: Mutex::default() }
    }

    async fn send(self: Arc<Self>, request: Request<Body>) -> Result<Response<StreamBody>, BoxError> {
        let (connection, open) =
            if is_watch(request.uri()) { self.watch_connection() } else { self.request_connection() };
        let response = connection.send(request).await?;
        Ok(response.map(|body| StreamBody::new(body, open)))
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
        if !self.streams.is_connected() {
            let _first = tokio::time::timeout(CONNECT_TIMEOUT, self.first.lock()).await.ok();
            if !self.streams.is_connected() {
                return self.request(request).await;
            }
        }
        self.request(request).await
    }

    async fn request(&self, request: Request<Body>) -> Result<Response<hyper::body::Incoming>, BoxError> {
        let response = self.pool.request(FencedBody::of(request)).await;
        match &response {
            Ok(_) => self.streams.connected(),
            Err(error) => self.streams.failed(error),
        }
        Ok(response?)
    }
}

/// Whether a request is a watch, which stays open.
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
