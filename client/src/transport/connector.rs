//! The connector: TCP, a proxy if there is one, and TLS.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

use super::fenced_socket::FencedSocket;
use super::proxy::{Proxy, ProxyError};
use super::read_ahead::ReadAhead;
use crate::fence::Fence;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

// A connection without data for so long is pinged, and closed if there is no response. client-go waits for 30 s and 15
// s. Here one probe guards the reconnection of all watches, so that closing too early costs little, and a server that
// disappears silently is detected before the requests to it time out.
pub(super) const PING_AFTER: Duration = Duration::from_secs(10);
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which sent data may be unacknowledged. It is not retransmitted later, so that no write arrives long after
/// its timeout.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// The least such time for the writes of a lease: a connection outlives two lost packets.
const LEAST_UNACKNOWLEDGED: Duration = Duration::from_secs(2);

/// Connects to the API server.
pub(super) type Connector = BoxCloneSyncService<Uri, Connection, BoxError>;

/// A connection to the API server.
pub(super) type Connection = MaybeHttpsStream<Route>;

/// The connection beneath TLS to the API server: TCP, or a connection through a proxy that may speak TLS itself.
type Route = MaybeHttpsStream<Socket>;

type Socket = ReadAhead<FencedSocket<TokioIo<TcpStream>>>;

type TcpConnector = BoxCloneSyncService<Uri, Socket, TcpError>;

type Router = BoxCloneSyncService<Uri, Route, RouteError>;

/// A TCP connection that was not made.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct TcpError(BoxError);

/// A route that was not made.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect")]
enum RouteError {
    /// The API server cannot be connected to.
    Tcp(#[source] BoxError),
    /// A proxy cannot be used.
    Proxy(#[source] ProxyError),
}

/// Makes connectors to one API server.
pub(super) struct Connectors {
    tls: ClientConfig,
    server_name: Option<ServerName<'static>>,
    proxy: Option<Arc<Proxy>>,
    timeout: Duration,
}

impl Connectors {
    /// Connectors with the certificates of `tls`. `timeout` is for all of a connection: TCP, proxy, and TLS.
    pub(super) fn new(
        tls: ClientConfig,
        server_name: Option<ServerName<'static>>,
        proxy: Option<Arc<Proxy>>,
        timeout: Duration,
    ) -> Self {
        Self { tls, server_name, proxy, timeout: timeout.min(CONNECT_TIMEOUT) }
    }

    /// A connector for anything but the writes of a lease.
    pub(super) fn connector(&self) -> Connector {
        self.over(tcp_connector(None, self.timeout))
    }

    /// A connector for writes that pass `fence`.
    ///
    /// # Guarantees
    /// When the fence is over, the connection is reset. Bytes that the API server has not acknowledged by then, or for as
    /// long as the fence [reserves](Fence::reserve), are dropped by the kernel, even if this process is stopped or killed.
    pub(super) fn connector_of_writes(&self, fence: &Fence) -> Connector {
        self.over(tcp_connector(Some(fence.clone()), self.timeout))
    }

    fn over(&self, tcp: TcpConnector) -> Connector {
        let route = match &self.proxy {
            None => BoxCloneSyncService::new(
                tcp.map_response(Route::Http).map_err(|TcpError(error)| RouteError::Tcp(error)),
            ),
            Some(proxy) => through(Arc::clone(proxy), self.tls.clone(), tcp),
        };
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone()).https_or_http();
        let https = match &self.server_name {
            Some(name) => https.with_server_name_resolver(FixedServerNameResolver::new(name.clone())),
            None => https,
        };
        let https = https.enable_all_versions().wrap_connector(route);
        // The time-out of `HttpConnector` would end with TCP; a server that accepts and then says nothing counts too.
        let timeout = self.timeout;
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
}

/// Routes through a proxy. To a proxy whose address is `https` it speaks TLS with the same certificates.
///
/// # Upstream
/// Go uses one TLS configuration for both as well.
fn through(proxy: Arc<Proxy>, tls: ClientConfig, tcp: TcpConnector) -> Router {
    let to_proxy = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
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

/// Returns the time for which data may be unacknowledged, of writes that pass `fence` or of anything else.
fn unacknowledged(fence: Option<&Fence>) -> Duration {
    fence.map_or(UNACKNOWLEDGED, |fence| fence.reserved().max(LEAST_UNACKNOWLEDGED))
}

fn tcp_connector(fence: Option<Fence>, timeout: Duration) -> TcpConnector {
    let tcp = tcp(GaiResolver::new(), timeout, unacknowledged(fence.as_ref()));
    BoxCloneSyncService::new(tower::service_fn(move |destination| {
        let (connecting, fence) = (tcp.clone().oneshot(destination), fence.clone());
        async move {
            let socket = connecting.await.map_err(|error| TcpError(error.into()))?;
            if fence.is_some() {
                // Set before anything is sent, because the kernel closes the socket of a process that is killed.
                socket.inner().set_zero_linger().map_err(|error| TcpError(error.into()))?;
            }
            Ok::<_, TcpError>(ReadAhead::new(FencedSocket::new(socket, fence.as_ref())))
        }
    }))
}

/// Connects to the addresses of a name, one after another. Each address has its share of `timeout`, so that an address
/// that does not respond leaves time for the next.
fn tcp<R>(resolver: R, timeout: Duration, unacknowledged: Duration) -> HttpConnector<R> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_nodelay(true);
    // HTTP/1.1 has no pings: without these a dead connection could look open for hours.
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_TIMEOUT));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(unacknowledged));
    #[cfg(not(target_os = "linux"))]
    let _ = unacknowledged;
    tcp
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::io::ErrorKind;
    use std::net::SocketAddr;

    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// A server whose queue is full, so that it responds to no further connection, and the connections in its queue.
    async fn silent(address: SocketAddr) -> (TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address).unwrap();
        let listener = socket.listen(1).unwrap();
        let queued = [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        (listener, queued.into())
    }

    #[tokio::test]
    async fn an_address_that_does_not_respond_leaves_time_for_the_next() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let serving = server.local_addr().unwrap();
        let dead = SocketAddr::from(([127, 0, 0, 2], serving.port()));
        let _silent = silent(dead).await;
        let resolver = tower::service_fn(move |_| ready(Ok::<_, Infallible>([dead, serving].into_iter())));
        tokio::time::pause();
        let connecting = tcp(resolver, CONNECT_TIMEOUT, UNACKNOWLEDGED)
            .oneshot(format!("https://server:{}", serving.port()).parse().unwrap());
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let connected = connected.expect("the second address must be tried in time").unwrap();
        assert_eq!(connected.inner().peer_addr().unwrap(), serving);
    }

    #[tokio::test]
    async fn the_kernel_drops_what_it_holds_of_a_write_after_the_reserved_time_and_with_the_process() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}", server.local_addr().unwrap()).parse().unwrap();
        let fence = Fence::default();
        for (fence, reserved, longest) in [
            (None, 0, UNACKNOWLEDGED),
            (Some(fence.clone()), 4250, Duration::from_millis(4250)),
            (Some(fence), 100, LEAST_UNACKNOWLEDGED),
        ] {
            if let Some(fence) = &fence {
                fence.reserve(Duration::from_millis(reserved));
            }
            assert_eq!(unacknowledged(fence.as_ref()), longest);
            let is_reset = fence.is_some();
            drop(tcp_connector(fence, CONNECT_TIMEOUT).oneshot(uri.clone()).await.unwrap());
            let (mut accepted, _) = server.accept().await.unwrap();
            assert_eq!(accepted.read_u8().await.unwrap_err().kind() == ErrorKind::ConnectionReset, is_reset);
        }
    }
}
