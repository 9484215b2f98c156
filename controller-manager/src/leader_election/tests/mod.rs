//! Managers that take turns on a lease of an API server in this process, with paused time.

mod disturbances;
mod elector;
#[cfg(feature = "builtin")]
mod handovers;
mod model;
mod release;
mod reports;
mod sick_server;
mod simulation;
mod step_down;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_framework::client::{ClientBuilder, Fence, Limits, SimulatedElapsed, UserAgent};
use kcm_framework::clock::SimulatedClock;
use kcm_framework::events::Broadcaster;
use kcm_framework::informers::{Factory, FactoryOptions};
use kcm_framework::{CacheVersions, Metrics, Predecessor};
use kcm_sandbox_apiserver::{EVENTS, Fault, LEASES, Sandbox, SandboxOptions, Status, Verb};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::fences::closed_for_lease;
use super::keeper::End;
use super::report::Report;
use super::request_connection::RequestConnection;
use super::watchdog::Watchdog;
use super::{Elector, Keeper, KeeperOptions, Leadership, LeaseMetrics, Timing, watch_lease};
use crate::heartbeat::Heartbeat;

const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

/// A process that competes for the lease.
struct Participant {
    leadership: watch::Receiver<Leadership>,
    fence: Fence,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

fn lease() -> ObjectKey {
    ObjectKey::namespaced("kube-system", "kube-controller-manager")
}

/// The surroundings of a participant, which tests disturb.
#[derive(Clone)]
struct Surroundings {
    watchdog: Watchdog,
    clock: SimulatedElapsed,
    connection: Arc<Mutex<Option<Instant>>>,
    ready: watch::Receiver<bool>,
    /// Number of suspicions that the storage of the API server has gone back.
    rollbacks: Arc<AtomicUsize>,
}

impl Default for Surroundings {
    fn default() -> Self {
        let watchdog = Watchdog::new(Heartbeat::new(), Duration::MAX, || {});
        let ready = watch::Sender::new(true).subscribe();
        let (connection, rollbacks) = (Arc::default(), Arc::default());
        Self { watchdog, clock: SimulatedElapsed::starting_now(), connection, ready, rollbacks }
    }
}

/// A connection that has been unusable since that time.
impl RequestConnection for Mutex<Option<Instant>> {
    fn unusable(&self) -> Option<(Duration, String)> {
        self.lock().map(|since| (since.elapsed(), "etcd-readiness failed".to_owned()))
    }

    fn suspect_rollback(&self) {}
}

fn participant(sandbox: &Sandbox, identity: &str, seed: u64) -> Participant {
    participant_in(sandbox, identity, seed, Surroundings::default())
}

/// A process that can act from `ready` on.
fn participant_when(sandbox: &Sandbox, identity: &str, seed: u64, ready: watch::Receiver<bool>) -> Participant {
    participant_in(sandbox, identity, seed, Surroundings { ready, ..Surroundings::default() })
}

fn participant_in(sandbox: &Sandbox, identity: &str, seed: u64, surroundings: Surroundings) -> Participant {
    let Surroundings { watchdog, clock: elapsed, connection, ready, rollbacks } = surroundings;
    let clients =
        ClientBuilder::new(sandbox.client(), UserAgent::new("kube-controller-manager", "v0", ""), Limits::UNLIMITED);
    let factory = Factory::new(FactoryOptions::new(clients.kube_client_for("leader-election"), seed));
    let (informer, changes) = watch_lease(&factory, &lease());
    factory.start();
    let api = clients.client_for("leader-election");
    let clock = Arc::new(SimulatedClock::starting_at(sandbox.now()));
    let metrics = Metrics::new();
    let (recorder, broadcaster) = Broadcaster::new(api.clone(), "kube-controller-manager", clock.clone(), seed);
    let report = Report::new(lease().name(), identity, metrics.register(LeaseMetrics::register), recorder);
    let sender = watch::Sender::default();
    let leadership = sender.subscribe();
    let fence = Fence::default();
    let of_lease = closed_for_lease(fence.clone(), Arc::new(elapsed.clone()));
    let options = KeeperOptions {
        lease: lease(),
        timing: TIMING,
        api,
        clock,
        seed,
        changes,
        leadership: sender,
        fence: of_lease,
        report,
        ready,
        watchdog,
        elapsed: Arc::new(elapsed),
        connection,
        suspect_rollback: Box::new(move || {
            rollbacks.fetch_add(1, Ordering::Relaxed);
        }),
    };
    let mut keeper = Keeper::new(Elector::new(identity, TIMING), options);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let end_of_events = CancellationToken::new();
        let events = broadcaster.run(end_of_events.clone(), Duration::from_secs(1));
        let keeping = async {
            match keeper.run(&stopped).await {
                End::Stopped => keeper.release(&CacheVersions::default()).await,
                End::MainThreadBlocked => {}
            }
            end_of_events.cancel();
        };
        tokio::join!(keeping, events);
        drop((informer, factory));
    });
    Participant { leadership, fence, metrics, stop, task }
}

impl Participant {
    async fn leads(&mut self) {
        let leads = self.leadership.wait_for(|leadership| leadership.leads_until.is_some());
        drop(timeout(Duration::from_mins(5), leads).await.expect("it must lead").expect("it must run"));
    }

    /// Waits for a term of that number: another process may have led before it.
    async fn leads_in_term(&mut self, term: u64) {
        let leads = self.leadership.wait_for(|leadership| leadership.term == Some(term));
        drop(timeout(Duration::from_mins(5), leads).await.expect("it must lead again").expect("it must run"));
    }

    async fn lost(&mut self) {
        let lost = self.leadership.wait_for(|leadership| leadership.leads_until.is_none());
        drop(timeout(Duration::from_mins(5), lost).await.expect("it must stop leading").expect("it must run"));
    }
}

fn record(sandbox: &Sandbox) -> Value {
    sandbox.get(&LEASES, &lease()).expect("the lease must exist")["spec"].clone()
}
