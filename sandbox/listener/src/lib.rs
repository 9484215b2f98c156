//! The sandbox's API over HTTPS: for kubectl and other processes.
//!
//! A [`Listener`] binds an address, makes a certificate and a token, serves a
//! [`Sandbox`] there, and writes the kubeconfig of its only user.
//!
//! ```text
//! socket ──▶ connection ──▶ authn ──▶ service
//! (limit)   (TLS, HTTP)    (token)   (the API)
//! ```
//!
//! # Guarantees
//!
//! - Every path except health and version requires the token, which is compared in constant time and appears in no log.
//! - Handshakes, headers, requests, silence, and clients that accept no bytes have deadlines, on tokio's clock.
//! - Memory is bounded by the connections, their streams, and a small buffer for each; a client that stalls holds up
//!   no other connection. A watch of HTTP/2 that is not read waits for its client.
//! - All tasks end with the future of [`Listener::serve`].
//!
//! # Differences from kube-apiserver
//!
//! - There are no anonymous users: a request without a token gets 401, not 403.
//! - Idle connections of HTTP/1.1 end after 32 seconds, not 90: hyper has one deadline for both. Connections of HTTP/2
//!   stay while their client responds to pings.

mod authn;
mod connection;
mod identity;
mod kubeconfig;
mod token;
mod upload;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::authn::Authn;
use self::identity::{Identity, reachable};
use self::token::{Token, random};
use kcm_sandbox_apiserver::Sandbox;

pub use self::kubeconfig::KubeconfigError;

/// Time limit of running requests when the listener stops.
const GRACE: Duration = Duration::from_secs(2);
/// Number of connections that the system keeps until they are accepted. With fewer, the system refuses some of many
/// clients that connect at once, or lets them believe that they are connected.
const BACKLOG: u32 = 4096;
/// The pause after a connection could not be accepted, mostly for lack of file descriptors.
const RESPITE: Duration = Duration::from_millis(50);

/// Options of the address, the token and the connections of a listener.
#[derive(Clone)]
pub struct ListenOptions {
    /// The address. Any address other than a loopback address lets other machines in, which need the token too.
    pub address: SocketAddr,
    /// The token of the only user. `None` for a random token, which cannot be guessed.
    pub token: Option<String>,
    /// Number of connections that are served at a time. Further connections wait until one ends.
    pub connections: usize,
}

impl Default for ListenOptions {
    /// Any free port of 127.0.0.1, a token of its own, and 512 connections: half of the descriptors that a process
    /// usually may have.
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, 0).into(), token: None, connections: 512 }
    }
}

impl std::fmt::Debug for ListenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenOptions")
            .field("address", &self.address)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// Error of starting a listener.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address}; choose another address, or port 0 for any free port")]
    Address {
        /// Address of the listener.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The token cannot be sent.
    #[error("cannot ask for the given token: it must be of visible ASCII characters, and not empty")]
    Token,
    /// The system gives no randomness.
    #[error("cannot make a token: the system gives no randomness")]
    Randomness,
    /// No certificate could be made.
    #[error("cannot make the certificate of {address}")]
    Certificate {
        /// Address of the listener.
        address: SocketAddr,
        /// Cause of the failure to create it.
        source: rcgen::Error,
    },
    /// The certificate cannot be used.
    #[error("cannot serve TLS on {address}")]
    Tls {
        /// Address of the listener.
        address: SocketAddr,
        /// Cause of the failure, from rustls.
        source: rustls::Error,
    },
}

/// A sandbox behind a socket. Connections are accepted from [`Listener::bind`] on, and served while [`Listener::serve`]
/// runs.
///
/// # Examples
///
/// ```
/// use kcm_sandbox_apiserver::Sandbox;
/// use kcm_sandbox_listener::{ListenOptions, Listener};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kcm_sandbox_listener::ListenError> {
/// let listener = Listener::bind(&Sandbox::default(), ListenOptions::default()).await?;
/// assert!(listener.address().ip().is_loopback());
/// assert!(listener.kubeconfig().contains("current-context: sandbox"));
/// listener.serve(std::future::ready(())).await;
/// # Ok(())
/// # }
/// ```
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    authority: String,
    tls: TlsAcceptor,
    authn: Arc<Authn>,
    connections: Arc<Semaphore>,
    provider: Arc<CryptoProvider>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Listener {
    /// Binds the address, and creates a CA, a certificate and a token.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or the token is invalid. The other errors mean that the system lacks randomness.
    #[expect(clippy::unused_async, reason = "sockets are made within a tokio runtime, which `async` tells the caller")]
    pub async fn bind(sandbox: &Sandbox, options: ListenOptions) -> Result<Self, ListenError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let token = match options.token {
            Some(text) => Token::chosen(text).ok_or(ListenError::Token)?,
            None => Token::random(provider.secure_random).ok_or(ListenError::Randomness)?,
        };
        let unbound = |source| ListenError::Address { address: options.address, source };
        let socket = listen(options.address).map_err(unbound)?;
        let address = socket.local_addr().map_err(unbound)?;
        let identity = Identity::new(address.ip()).map_err(|source| ListenError::Certificate { address, source })?;
        let tls = identity.server(provider.clone()).map_err(|source| ListenError::Tls { address, source })?;
        Ok(Self {
            socket,
            address,
            authority: identity.authority,
            tls: TlsAcceptor::from(Arc::new(tls)),
            authn: Arc::new(Authn { service: sandbox.service(), token }),
            connections: Arc::new(Semaphore::new(options.connections)),
            provider,
        })
    }

    /// Returns the address that the listener bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the certificate of the CA that signed the server's certificate, as PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns a kubeconfig for clients on this machine. It contains the token.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let server = format!("https://{}", reachable(self.address));
        kubeconfig::text(&server, &self.authority, self.authn.token.reveal())
    }

    /// Writes the kubeconfig to a file that only its owner may read.
    ///
    /// A reader finds the old file or the new one, never half of one.
    ///
    /// # Errors
    ///
    /// [`KubeconfigError::NotOurs`] if the path is not a sandbox's kubeconfig. That file is not changed.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), KubeconfigError> {
        let suffix = random(self.provider.secure_random).unwrap_or_else(|| self.address.port().to_string());
        kubeconfig::write(path, &self.kubeconfig(), &suffix)
    }

    /// Serves until `stop`, then ends: idle connections and watches at once, requests within two seconds.
    ///
    /// # Cancellation
    ///
    /// Dropping the future cuts all connections.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let Self { socket, tls, authn, connections, .. } = self;
        let mut tasks = JoinSet::new();
        let stopping = CancellationToken::new();
        let accept = async {
            loop {
                // The semaphore is never closed.
                let Ok(permit) = connections.clone().acquire_owned().await else { return };
                // A connection that panicked has ended as others do.
                while tasks.try_join_next().is_some() {}
                match socket.accept().await {
                    Ok((stream, _)) => {
                        let connection = connection::serve(stream, tls.clone(), authn.clone(), stopping.clone());
                        tasks.spawn(async move {
                            connection.await;
                            drop(permit);
                        });
                    }
                    Err(_) => sleep(RESPITE).await,
                }
            }
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = accept => {}
        }
        drop(socket);
        stopping.cancel();
        // Requests without a response by then are cut.
        drop(timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await);
        tasks.shutdown().await;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As tokio's own listeners: a port is free again at once when its last user has stopped.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
