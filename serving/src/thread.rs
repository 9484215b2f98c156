//! The thread of the HTTPS port.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::clock::Clock;
use parking_lot::Mutex;
use rustix::net::sockopt;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::access::{LookupError, Setup, SetupError};
use super::answers::Answers;
use super::connection::{Shared, serve};
use super::connection_limit::ConnectionLimit;
use super::listener::listen_on;
use super::options::ServingOptions;
use super::reloading::Reloading;
use super::routes::router;
use super::state::ServingState;
use super::supervised::supervised;
use super::tls::{Tls, TlsError};
use super::ui::Feed;

/// Largest number of open connections. With the memory of one connection, it bounds the cost of all clients.
pub(super) const MOST_CONNECTIONS: usize = 256;

/// Interval at which bodies are looked at that clients may have stopped reading.
const SWEEP: Duration = Duration::from_secs(5);

/// Time for which requests may finish when the port is closed.
const GRACE: Duration = Duration::from_secs(1);

/// The pause after a connection could not be accepted, mostly for want of file descriptors.
const RESPITE: Duration = Duration::from_millis(50);

/// Time without data on a connection, after which the kernel asks whether its client is there.
///
/// # Upstream
/// `defaultKeepAlivePeriod` in `apiserver/pkg/server/secure_serving.go`.
const KEEP_ALIVE: Duration = Duration::from_mins(3);

/// An error of serving the port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServingError {
    /// The address is taken, or not of this machine.
    #[error(
        "cannot listen on {address} for HTTPS: give another --bind-address or --secure-port, or --secure-port=0 to serve \
         nothing"
    )]
    Listen {
        /// The address that was requested.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Certificates or TLS parameters cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Kubeconfigs or CAs cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The cluster's settings of authentication.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The operating system refuses another thread or its runtime.
    #[error("cannot start the thread of the HTTPS port")]
    Spawn(#[from] std::io::Error),
    /// The thread of the HTTPS port ended.
    #[error("the thread of the HTTPS port ended")]
    Ended,
}

/// The bound port. Clients can connect, and get responses once it is served.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    options: ServingOptions,
    clock: Arc<dyn Clock>,
}

impl Bound {
    /// Binds the port.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn bind(options: ServingOptions, clock: Arc<dyn Clock>) -> Result<Self, ServingError> {
        let address = options.address;
        let unbound = |source| ServingError::Listen { address, source };
        let listener = listen_on(address, options.shares_port).map_err(unbound)?;
        let address = listener.local_addr().map_err(unbound)?;
        Ok(Self { listener, address, options, clock })
    }

    /// Returns the address that is bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the thread and returns when it serves the port. `seed` seeds random numbers.
    ///
    /// # Errors
    /// If the thread cannot run, or a certificate, a kubeconfig or another file of the settings cannot be used.
    pub async fn serve(self, state: ServingState, seed: u64) -> Result<Serving, ServingError> {
        let (started, start) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("serving".to_owned()).spawn(move || {
            let result = runtime.block_on(self.run(state, seed, stopped, started));
            runtime.shutdown_timeout(Duration::ZERO);
            // An error means that the caller does not wait.
            drop(end.send(result));
        })?;
        // An end without a start has its error in `ended`.
        if start.await.is_err() {
            return Err(ended.await.map_or(ServingError::Ended, |result| result.err().unwrap_or(ServingError::Ended)));
        }
        Ok(Serving { stop, ended: Some(ended) })
    }

    /// Reads or makes the certificates, says so, and serves the port until `stop`.
    pub(super) async fn run(
        self,
        mut state: ServingState,
        seed: u64,
        stop: CancellationToken,
        started: oneshot::Sender<()>,
    ) -> Result<(), ServingError> {
        let Self { listener, address, options, clock } = self;
        let tls = Arc::new(Tls::load(options.tls, options.address.ip(), clock.now())?);
        let metrics = Arc::clone(&state.metrics);
        let setup =
            Setup::new(options.authentication, options.authorization, Arc::clone(&clock), &metrics, seed).await?;
        let (access, trust, follower) = setup.split();
        let reloading = Reloading::new(Arc::clone(&tls), trust, clock, &metrics);
        reloading.ask_clients();
        state.ready.push(reloading.check());
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let state = Arc::new(state);
        let feed = options.has_page.then(|| Feed::new(Arc::clone(&state), stop.clone()));
        let shared = Arc::new(Shared {
            tls,
            answers: Answers::new(Arc::new(access), router(&state, feed.as_ref())),
            streams: options.http2_streams.unwrap_or(1),
            stop: stop.clone(),
        });
        let connections = Connections::new();
        tracing::info!(%address, "Serving securely");
        // An error means that the caller was dropped, which cancels nothing: the process ends.
        let _waits = started.send(());
        let follow = || follower.run(&stop, || reloading.ask_clients());
        let result = tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            result = supervised(&metrics, "serving-authentication", follow) => result.map_err(ServingError::from),
            () = supervised(&metrics, "serving-certificates", || reloading.run()) => Ok(()),
            () = supervised(&metrics, "serving-page", || sample(feed.as_deref())) => Ok(()),
            () = supervised(&metrics, "serving-bodies", || drop_stalled(&shared.answers)) => Ok(()),
            () = supervised(&metrics, "serving-connections", || connections.accept(&listener, &shared)) => Ok(()),
        };
        drop(listener);
        shared.stop.cancel();
        connections.end().await;
        result
    }
}

/// The port that is being served. It is closed when this is dropped.
pub struct Serving {
    stop: CancellationToken,
    /// `None` once the thread has ended.
    ended: Option<oneshot::Receiver<Result<(), ServingError>>>,
}

impl Serving {
    /// Waits until the port cannot be served any more.
    pub async fn failed(&mut self) -> ServingError {
        let Some(ended) = &mut self.ended else { return ServingError::Ended };
        let result = ended.await;
        self.ended = None;
        match result {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => ServingError::Ended,
        }
    }

    /// Closes the port, and returns when all requests have been answered.
    pub async fn stop(mut self) {
        self.stop.cancel();
        drop(self.failed().await);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Takes the samples of the status page, for ever.
async fn sample(feed: Option<&Feed>) {
    match feed {
        Some(feed) => feed.run().await,
        None => std::future::pending().await,
    }
}

/// Drops the bodies that clients have stopped reading, for ever.
async fn drop_stalled(answers: &Answers) {
    loop {
        sleep(SWEEP).await;
        answers.drop_stalled(Instant::now());
    }
}

/// The open connections. They stay open if the task that accepts them is started again.
struct Connections {
    limit: Arc<ConnectionLimit>,
    tasks: Mutex<JoinSet<()>>,
}

impl Connections {
    fn new() -> Self {
        Self { limit: ConnectionLimit::new(MOST_CONNECTIONS), tasks: Mutex::default() }
    }

    /// Accepts connections, for ever.
    async fn accept(&self, listener: &tokio::net::TcpListener, shared: &Arc<Shared>) {
        loop {
            let accepted = listener.accept().await;
            self.forget_ended();
            match accepted {
                Ok((stream, client)) => {
                    // If the kernel refuses, only dead clients stay longer.
                    let _kept = sockopt::set_socket_keepalive(&stream, true);
                    let _kept = sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE);
                    let place = self.limit.enter(client.ip(), Instant::now());
                    self.tasks.lock().spawn(serve(stream, place, Arc::clone(shared)));
                }
                Err(error) => {
                    tracing::debug!(%error, "Cannot accept a connection");
                    sleep(RESPITE).await;
                }
            }
        }
    }

    fn forget_ended(&self) {
        while let Some(ended) = self.tasks.lock().try_join_next() {
            if let Err(panic) = ended
                && panic.is_panic()
            {
                tracing::error!("A handler of the HTTPS port panicked");
            }
        }
    }

    /// Lets connections end for a moment, and cuts those that do not.
    async fn end(self) {
        let mut tasks = self.tasks.into_inner();
        drop(timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await);
        tasks.shutdown().await;
    }
}
