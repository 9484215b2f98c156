//! The thread of the lease.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{Fnv1a, ObjectKey};
use kcm_framework::client::{ClientBuilder, Fence, Limits, StackError, UserAgent, connect};
use kcm_framework::clock::SystemClock;
use kcm_framework::informers::{Factory, FactoryOptions};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{Elector, Keeper, Leadership, Timing, watch_lease};

/// The options of leader election.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Namespace and name of the lease.
    pub(crate) lease: ObjectKey,
    /// The identity of this process, unique among all processes, ever.
    pub(crate) identity: String,
    /// The periods.
    pub(crate) timing: Timing,
    /// The limits of the requests for the lease, which count for themselves.
    pub(crate) limits: Limits,
    /// Whether the lease is released at the end, so that another manager leads at once.
    pub(crate) releases: bool,
}

/// The thread that keeps the lease, over a connection and with rate limits of its own.
///
/// Neither a long reconcile nor a full queue of requests holds up a renewal. The fence is opened and closed on that thread
/// too.
pub(crate) struct LeaseThread {
    leadership: watch::Receiver<Leadership>,
    stop: CancellationToken,
    ended: oneshot::Receiver<()>,
}

/// The reason why the thread of the lease does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseThreadError {
    /// The operating system refuses another thread or its runtime.
    #[error("cannot start the thread of leader election")]
    Spawn(#[from] std::io::Error),
    /// The configuration cannot be used to connect.
    #[error("cannot connect to the API server for leader election")]
    Connect(#[from] StackError),
    /// The thread ended before it began.
    #[error("the thread of leader election ended at once")]
    Ended,
}

impl LeaseThread {
    /// Starts the thread. The fence is closed until this process leads.
    ///
    /// # Errors
    /// Where the thread cannot run.
    pub(crate) async fn start(config: kube::Config, options: Options, fence: Fence) -> Result<Self, LeaseThreadError> {
        fence.close();
        let (started, start) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("leader-election".to_owned()).spawn(move || {
            runtime.block_on(keep(&config, options, &fence, &stopped, started));
            runtime.shutdown_timeout(Duration::ZERO);
            drop(end);
        })?;
        let leadership = start.await.map_err(|_| LeaseThreadError::Ended)??;
        Ok(Self { leadership, stop, ended })
    }

    /// The leadership, as it changes.
    pub(crate) fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// Gives the lease up, and returns when the thread has ended. Called when nothing writes any more.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // The thread drops its end: an error is the message.
        drop(self.ended.await);
    }
}

async fn keep(
    config: &kube::Config,
    options: Options,
    fence: &Fence,
    stop: &CancellationToken,
    started: oneshot::Sender<Result<watch::Receiver<Leadership>, LeaseThreadError>>,
) {
    let client = match connect(config) {
        Ok(client) => client,
        Err(error) => return drop(started.send(Err(error.into()))),
    };
    let Options { lease, identity, timing, limits, releases } = options;
    // Random, as the identity is.
    let seed = Fnv1a::new().part(&identity).value();
    let clients = ClientBuilder::new(client, UserAgent::default(), limits);
    let factory = Factory::new(FactoryOptions::new(clients.kube_client_for(IDENTITY), seed));
    let (informer, changes) = watch_lease(&factory, &lease);
    factory.start();
    let api = clients.client_for(IDENTITY);
    let elector = Elector::new(identity, timing);
    let mut keeper = Keeper::new(elector, timing, api, lease, Arc::new(SystemClock), seed, changes);
    let mut leadership = keeper.leadership();
    // An error means that the caller is gone, which cancels nothing: the process ends.
    drop(started.send(Ok(leadership.clone())));
    tokio::select! {
        () = keeper.run(stop) => {}
        () = hold(fence, &mut leadership) => {}
    }
    fence.close();
    if releases {
        keeper.release().await;
    }
    drop(informer);
    factory.shut_down().await;
}

/// The name of the client of the lease in User-Agent and metrics.
///
/// # Upstream
/// `leaderElectionClient` in `cmd/kube-controller-manager`.
const IDENTITY: &str = "leader-election";

/// Keeps the fence open as long as this process leads.
async fn hold(fence: &Fence, leadership: &mut watch::Receiver<Leadership>) {
    loop {
        match leadership.borrow_and_update().writes_until {
            Some(until) => fence.open_until(until),
            None => fence.close(),
        }
        if leadership.changed().await.is_err() {
            return;
        }
    }
}
