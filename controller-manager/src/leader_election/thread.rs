//! The thread of a lease.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kcm_framework::api::{Fnv1a, ObjectKey};
use kcm_framework::client::{
    ClientBuilder, ElapsedClock, ExecPluginMetrics, Fence, Limits, NoMetrics, StackError, connect_with_metrics,
};
use kcm_framework::clock::{Clock, SystemClock};
use kcm_framework::events::Broadcaster;
use kcm_framework::informers::{Connection, ConnectionMonitor, ConnectionStatus, Factory, FactoryOptions};
use kcm_framework::{CacheVersions, user_agent};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::keeper::End;
use super::report::{LeaseMetrics, Report};
use super::request_connection::RequestConnection;
use super::watchdog::Watchdog;
use super::{Elector, Keeper, KeeperOptions, Leadership, Timing, watch_lease};

/// The options of leader election with one lease.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Namespace and name of the lease.
    pub(crate) lease: ObjectKey,
    /// The identity of this process, unique among all processes, ever.
    pub(crate) identity: String,
    pub(crate) timing: Timing,
    /// The limits of the requests for the lease, which count for themselves.
    pub(crate) limits: Limits,
    /// Whether the lease is released at the end, so that another manager leads at once.
    pub(crate) releases: bool,
    /// The metrics of all leases.
    pub(crate) metrics: LeaseMetrics,
    /// The metrics of the exec plugin that the thread may run for its connection.
    pub(crate) plugins: ExecPluginMetrics,
    /// The watchdog of the main thread.
    pub(crate) watchdog: Watchdog,
    /// The clock by which the lease is held.
    pub(crate) elapsed: Arc<dyn ElapsedClock>,
    /// Sends changes of the leadership.
    pub(crate) leadership: watch::Sender<Leadership>,
    /// `true` if this process can act as soon as it leads.
    pub(crate) ready: watch::Sender<bool>,
    /// The connection of the lease.
    pub(crate) connection: LeaseConnection,
}

/// The connection of a lease, with its monitor: behind a load balancer it leaves an API server that cannot serve. Cheap to
/// clone; all clones are one.
#[derive(Debug, Clone)]
pub(crate) struct LeaseConnection {
    connection: Connection,
    monitor: Arc<ConnectionMonitor>,
}

impl LeaseConnection {
    /// The connection of `lease` in the process with that identity.
    pub(crate) fn new(lease: &ObjectKey, identity: &str) -> Self {
        let seed = Fnv1a::new().part(identity).part(lease.name()).value();
        let (connection, monitor) = Connection::new(seed);
        Self { connection, monitor: Arc::new(monitor) }
    }

    /// The state of the connection.
    pub(crate) fn status(&self) -> ConnectionStatus {
        self.connection.status()
    }
}

/// The way in which a lease is given up.
#[derive(Debug, Clone, Default)]
pub(crate) enum GiveUp {
    /// It expires, because a write may still take effect.
    #[default]
    Expire,
    /// It is freed, and these versions are handed over to the successor.
    Release(CacheVersions),
}

/// The request to give a lease up. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopLease {
    requested: CancellationToken,
    how: Arc<Mutex<GiveUp>>,
}

impl StopLease {
    fn request(&self, how: GiveUp) {
        *self.how.lock() = how;
        self.requested.cancel();
    }
}

/// The parts of a manager that the thread of a lease uses.
#[derive(Clone)]
pub(crate) struct Held {
    /// The fence of the controllers that the lease covers.
    pub(crate) fence: Fence,
    /// The connection for the requests of these controllers.
    pub(crate) connection: Arc<dyn RequestConnection>,
}

/// The thread that keeps a lease, over a connection and with rate limits of its own.
///
/// Neither a long reconcile nor a full queue of requests delays a renewal. The fence is opened and closed on this
/// thread too.
pub(crate) struct LeaseThread {
    stop: StopLease,
    /// `None` once the end has been received.
    ended: Option<oneshot::Receiver<()>>,
}

/// The reason why the thread of a lease does not run.
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

/// Starts the thread that competes for the lease of these options.
pub(crate) type Compete =
    Arc<dyn Fn(Options, Held) -> BoxFuture<'static, Result<LeaseThread, LeaseThreadError>> + Send + Sync>;

impl LeaseThread {
    /// The handle of what keeps a lease until `stop`, and then drops the sender of `ended`.
    pub(crate) const fn new(stop: StopLease, ended: oneshot::Receiver<()>) -> Self {
        Self { stop, ended: Some(ended) }
    }

    /// Starts threads that connect with `config`.
    pub(crate) fn with_config(config: kube::Config) -> Compete {
        Arc::new(move |options, held| Box::pin(Self::start(config.clone(), options, held)))
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread cannot run.
    async fn start(config: kube::Config, options: Options, held: Held) -> Result<Self, LeaseThreadError> {
        let (started, start) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let stop = StopLease::default();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("leader-election".to_owned()).spawn(move || {
            // Dropped in reverse, even if the thread panics.
            let _end = end;
            let _leadership = NoLeaderOnDrop(options.leadership.clone());
            runtime.block_on(keep(&config, options, held, &stopped, started));
            runtime.shutdown_timeout(Duration::ZERO);
        })?;
        start.await.map_err(|_| LeaseThreadError::Ended)??;
        Ok(Self::new(stop, ended))
    }

    /// Waits for the end of the thread, which does not end by itself unless it panics.
    pub(crate) async fn ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            // The thread drops its end: an error is the message.
            drop(ended.await);
            self.ended = None;
        }
    }

    /// Gives the lease up, and returns when the thread has ended. Called when nothing writes under the lease any more.
    pub(crate) async fn stop(&mut self, how: GiveUp) {
        self.stop.request(how);
        self.ended().await;
    }
}

/// A manager whose thread of the lease has ended does not lead.
struct NoLeaderOnDrop(watch::Sender<Leadership>);

impl Drop for NoLeaderOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(Leadership::default());
    }
}

async fn keep(
    config: &kube::Config,
    options: Options,
    held: Held,
    stop: &StopLease,
    started: oneshot::Sender<Result<(), LeaseThreadError>>,
) {
    let client = match connect_with_metrics(config, &options.plugins) {
        Ok(client) => client,
        Err(error) => return drop(started.send(Err(error.into()))),
    };
    // An error means that the caller was dropped, which cancels nothing: the process ends.
    drop(started.send(Ok(())));
    keep_through(client, Arc::new(SystemClock), options, held, stop).await;
}

/// Keeps the lease through `client` until `stop`, and then gives it up.
pub(crate) async fn keep_through(
    client: kube::Client,
    clock: Arc<dyn Clock>,
    options: Options,
    held: Held,
    stop: &StopLease,
) {
    let Held { fence, connection } = held;
    let Options {
        lease,
        identity,
        timing,
        limits,
        releases,
        metrics,
        plugins: _,
        watchdog,
        elapsed,
        leadership,
        ready,
        connection: LeaseConnection { connection: own_connection, monitor },
    } = options;
    // Random, as the identity is.
    let seed = Fnv1a::new().part(&identity).value();
    let (agent, no_metrics) = (user_agent(), Arc::new(NoMetrics));
    let clients = ClientBuilder::over_connection(own_connection.clone(), client, agent, limits, no_metrics);
    let of_lease = FactoryOptions::new(clients.kube_client_for(IDENTITY), seed);
    let factory = Factory::new(FactoryOptions { connection: own_connection, ..of_lease });
    let (informer, changes) = watch_lease(&factory, &lease);
    factory.start();
    let events = clients.client_for(ClientBuilder::MANAGER);
    let (recorder, broadcaster) = Broadcaster::new(events, EVENT_SOURCE, Arc::clone(&clock), seed);
    let report = Report::new(lease.name(), &identity, metrics, recorder);
    let (mut tasks, end_of_events) = (JoinSet::new(), CancellationToken::new());
    tasks.spawn(broadcaster.run(end_of_events.clone(), FLUSH));
    let (prober, end_of_probes) = (clients.kube_client_for(ClientBuilder::PROBE), end_of_events.clone());
    tasks.spawn(async move {
        end_of_probes.run_until_cancelled(monitor.run(&prober)).await;
    });
    let api = clients.client_for(IDENTITY);
    let (of_lease, of_controllers) = (factory.clone(), Arc::clone(&connection));
    let options = KeeperOptions {
        lease,
        timing,
        api,
        clock,
        seed,
        changes,
        leadership,
        fence: fence.clone(),
        report,
        watchdog: watchdog.clone(),
        ready: ready.subscribe(),
        elapsed,
        connection,
        suspect_rollback: Box::new(move || {
            of_lease.suspect_rollback();
            of_controllers.suspect_rollback();
        }),
    };
    let mut keeper = Keeper::new(Elector::new(identity, timing), options);
    let end = keeper.run(&stop.requested).await;
    fence.close();
    let how = std::mem::take(&mut *stop.how.lock());
    match (end, how) {
        // Writes that the main thread has sent may still take effect: the lease expires.
        (End::MainThreadBlocked, _) => watchdog.exit().await,
        (End::Stopped, GiveUp::Release(versions)) if releases => keeper.release(&versions).await,
        (End::Stopped, GiveUp::Release(_) | GiveUp::Expire) => keeper.stop_leading(),
    }
    drop(keeper);
    end_of_events.cancel();
    while tasks.join_next().await.is_some() {}
    drop(informer);
    factory.shut_down().await;
}

/// The name of the client of the lease in User-Agent and metrics.
///
/// # Upstream
/// `NewFromKubeconfig` of `client-go/tools/leaderelection/resourcelock`.
const IDENTITY: &str = "leader-election";

/// The component that reports the events of leases.
///
/// # Upstream
/// `KubeControllerManagerUserAgent` in `cmd/kube-controller-manager/app/options`.
const EVENT_SOURCE: &str = "kube-controller-manager";

/// Longest time for which pending events are sent at the end.
const FLUSH: Duration = Duration::from_secs(1);
