//! The connector: TCP, a proxy if there is one, and TLS.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

use super::proxy::{Proxy, ProxyError};
use super::read_ahead::ReadAhead;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

// A connection without data for so long is pinged, and closed if there is no response. client-go waits for 30 s and 15
// s. Here one probe guards the reconnection of all watches, so that closing too early costs little, and a server that
// disappears silently is detected before the requests to it time out.
pub(super) const PING_AFTER: Duration = Duration::from_secs(10);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which sent data may be unacknowledged. It is not retransmitted later, so that no write arrives long after
/// its timeout.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Connects to the API server.
pub(super) type Connector = BoxCloneSyncService<Uri, Connection, BoxError>;

/// A connection to the API server.
pub(super) type Connection = MaybeHttpsStream<Route>;

/// The connection beneath TLS to the API server: TCP, or a connection through a proxy that may speak TLS itself.
type Route = MaybeHttpsStream<ReadAhead<TokioIo<TcpStream>>>;

type Router = BoxCloneSyncService<Uri, Route, RouteError>;

/// A route that was not made.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect")]
enum RouteError {
    /// The API server cannot be connected to.
    Tcp(#[source] BoxError),
    /// A proxy cannot be used.
    Proxy(#[source] ProxyError),
}

/// A connector with the certificates of `tls`. `timeout` is for all of a connection: TCP, proxy, and TLS.
pub(super) fn connector(
    tls: ClientConfig,
    server_name: Option<ServerName<'static>>,
    proxy: Option<Arc<Proxy>>,
    timeout: Duration,
) -> Connector {
    let route = match proxy {
        None => {
            let direct = tcp().map_response(|socket| Route::Http(ReadAhead::new(socket)));
            BoxCloneSyncService::new(direct.map_err(|error| RouteError::Tcp(error.into())))
        }
        Some(proxy) => through(proxy, tls.clone()),
    };
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let https = match server_name {
        Some(name) => https.with_server_name_resolver(FixedServerNameResolver::new(name)),
        None => https,
    };
    let https = https.enable_all_versions().wrap_connector(route);
    // The time-out of `HttpConnector` would end with TCP; a server that accepts and then says nothing counts too.
    let timeout = timeout.min(CONNECT_TIMEOUT);
    BoxCloneSyncService::new(tower::service_fn(move |uri| {
        let connecting = https.clone().oneshot(uri);
        async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
            }
        }
    }))
}

/// Routes through a proxy. To a proxy whose address is `https` it speaks TLS with the same certificates.
///
/// # Upstream
/// Go uses one TLS configuration for both as well.
fn through(proxy: Arc<Proxy>, tls: ClientConfig) -> Router {
    let to_proxy = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp().map_response(ReadAhead::new));
    BoxCloneSyncService::new(tower::service_fn(move |destination: Uri| {
        let (proxy, to_proxy) = (Arc::clone(&proxy), to_proxy.clone());
        async move {
            match to_proxy.oneshot(proxy.endpoint()).await {
                Ok(route) => proxy.tunnel(route, &destination).await.map_err(RouteError::Proxy),
                Err(error) => Err(RouteError::Proxy(proxy.unreachable(error))),
            }
        }
    }))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // HTTP/1.1 has no pings: without these a dead connection could look open for hours.
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_TIMEOUT));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}
