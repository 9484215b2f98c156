//! Managers that take turns on a lease of an API server in this process, with paused time.

mod elector;
#[cfg(feature = "builtin")]
mod handovers;
mod model;
mod simulation;

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

#[tokio::test(start_paused = true)]
async fn the_first_creates_the_lease_without_a_transition() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let record = record(&sandbox);
    assert_eq!(record["holderIdentity"], "first");
    assert_eq!((&record["leaseDurationSeconds"], &record["leaseTransitions"]), (&15.into(), &0.into()));
    assert_eq!(record["acquireTime"], record["renewTime"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_every_retry_period_with_one_request() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    sandbox.clear_requests();
    sleep(Duration::from_mins(1)).await;
    let requests = sandbox.requests();
    let methods: Vec<_> = requests
        .iter()
        .filter(|it| it.path.ends_with("/kube-controller-manager"))
        .map(|it| it.method.clone())
        .collect();
    assert_eq!(methods, vec!["PUT"; methods.len()]);
    assert!((29..=31).contains(&methods.len()), "{} renewals in a minute", methods.len());
}

#[tokio::test(start_paused = true)]
async fn a_standby_leads_at_once_when_the_lease_is_released() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(30)).await;
    let stopped = Instant::now();
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    assert!(stopped.elapsed() < Duration::from_millis(200), "it took {:?}", stopped.elapsed());
    let record = record(&sandbox);
    assert_eq!((&record["holderIdentity"], &record["leaseTransitions"]), (&"second".into(), &1.into()));
}

/// The requests about the lease of a handover.
async fn handover(sandbox: &Sandbox, first: &mut Participant, second: &mut Participant) -> Vec<String> {
    sleep(Duration::from_millis(4_900)).await;
    sandbox.clear_requests();
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    let of_lease = sandbox.requests().into_iter().filter(|it| it.path.ends_with("/kube-controller-manager"));
    of_lease.map(|request| request.method.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn one_request_releases_the_lease_and_one_takes_it() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    assert_eq!(handover(&sandbox, &mut first, &mut second).await, ["PUT", "PUT"]);
    assert_eq!(record(&sandbox)["holderIdentity"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_act_leaves_the_lease_to_others_for_thirty_seconds() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let ready = watch::Sender::new(false);
    let mut cold = participant_when(&sandbox, "cold", 2, ready.subscribe());
    let mut warm = participant(&sandbox, "warm", 3);
    sleep(Duration::from_secs(30)).await;
    first.stop.cancel();
    drop(first.task.join_next().await);
    warm.leads().await;
    warm.stop.cancel();
    drop(warm.task.join_next().await);
    let free = Instant::now();
    cold.leads().await;
    let waited = free.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(35)).contains(&waited), "nobody else leads: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_competes_as_soon_as_it_can_act_and_a_leader_goes_on_when_it_cannot() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let ready = watch::Sender::new(false);
    let mut first = participant_when(&sandbox, "first", 1, ready.subscribe());
    sleep(Duration::from_secs(10)).await;
    assert!(sandbox.get(&LEASES, &lease()).is_none());
    ready.send_replace(true);
    let since = Instant::now();
    first.leads().await;
    assert!(since.elapsed() < Duration::from_millis(200), "it took {:?}", since.elapsed());
    ready.send_replace(false);
    let lost = first.leadership.wait_for(|leadership| leadership.leads_until.is_none());
    assert!(timeout(Duration::from_mins(2), lost).await.is_err(), "it must go on leading");
}

#[tokio::test(start_paused = true)]
async fn a_release_tells_the_next_leader_what_the_last_has_written() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    assert_eq!(first.leadership.borrow().predecessor, Predecessor::Unknown, "there was no lease");
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(30)).await;
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    assert_eq!(second.leadership.borrow().predecessor, Predecessor::Released(Arc::default()));
    let mut third = participant(&sandbox, "third", 3);
    sleep(Duration::from_secs(30)).await;
    second.task.shutdown().await;
    third.leads().await;
    assert_eq!(third.leadership.borrow().predecessor, Predecessor::Unknown, "the lease has expired");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_client_has_changed_is_read_before_it_is_released() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_millis(1_900)).await;
    // The watch of the leader does not show the change before the leader is asked to stop.
    sandbox.faults().delay_events(&LEASES, Duration::from_millis(1));
    let labelled = serde_json::json!({ "metadata": { "labels": { "a": "b" } } });
    sandbox.patch(&LEASES, &lease(), &labelled).expect("the patch is valid");
    sandbox.clear_requests();
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    let of_lease = sandbox.requests().into_iter().filter(|it| it.path.ends_with("/kube-controller-manager"));
    let methods: Vec<_> = of_lease.map(|request| request.method.clone()).collect();
    assert_eq!(methods[..3], ["PUT", "GET", "PUT"], "{methods:?}");
    let lease = sandbox.get(&LEASES, &lease()).expect("the lease must exist");
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["metadata"]["labels"]["a"]), (&"second".into(), &"b".into()));
}

/// Patches a label of the lease to `value`, which its holder does not see.
fn label(sandbox: &Sandbox, value: usize) {
    let labelled = serde_json::json!({ "metadata": { "labels": { "a": value.to_string() } } });
    sandbox.patch(&LEASES, &lease(), &labelled).expect("the patch is valid");
}

/// Stops a leader whose lease another client changes before each of the first `conflicts` updates that release it.
async fn release_among_conflicts(sandbox: &Sandbox, first: &mut Participant, conflicts: usize) {
    sandbox.faults().delay_events(&LEASES, Duration::from_hours(1));
    let slow = Fault::on(Verb::Update).resource(LEASES).delay(Duration::from_millis(10));
    let slow = sandbox.faults().inject(slow);
    first.stop.cancel();
    let mut changed = 0;
    while changed < conflicts {
        sleep(Duration::from_millis(1)).await;
        if slow.hits() > changed {
            changed += 1;
            label(sandbox, changed);
        }
    }
    drop(first.task.join_next().await);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_conflicts_is_repeated() {
    for conflicts in [1, 2, 5] {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", 1);
        first.leads().await;
        sleep(Duration::from_millis(1_900)).await;
        release_among_conflicts(&sandbox, &mut first, conflicts).await;
        assert_eq!(record(&sandbox)["holderIdentity"], "", "after {conflicts} conflicts");
        let lease = sandbox.get(&LEASES, &lease()).expect("the lease must exist");
        assert_eq!(lease["metadata"]["labels"]["a"], conflicts.to_string(), "the changes of others stay");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_conflicts_without_end_ends_at_the_renew_deadline() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let conflict = Fault::on(Verb::Update).resource(LEASES).fail(Status::conflict(&LEASES, lease().name(), "test"));
    let conflict = sandbox.faults().inject(conflict);
    let stopped = Instant::now();
    first.stop.cancel();
    drop(first.task.join_next().await);
    let took = stopped.elapsed();
    let expected = TIMING.renew_deadline..TIMING.renew_deadline + Duration::from_secs(2);
    assert!(expected.contains(&took), "it took {took:?}");
    assert!((2..=200).contains(&conflict.hits()), "it sent {} updates", conflict.hits());
}

#[tokio::test(start_paused = true)]
async fn a_release_does_not_free_the_lease_of_another_that_a_conflict_shows() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    sleep(Duration::from_millis(1_900)).await;
    sandbox.faults().delay_events(&LEASES, Duration::from_hours(1));
    let slow = Fault::on(Verb::Update).resource(LEASES).delay(Duration::from_millis(10));
    let slow = sandbox.faults().inject(slow);
    first.stop.cancel();
    while slow.hits() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    label(&sandbox, 1);
    while slow.hits() == 1 {
        sleep(Duration::from_millis(1)).await;
    }
    let taken = serde_json::json!({ "spec": { "holderIdentity": "second" } });
    sandbox.patch(&LEASES, &lease(), &taken).expect("the patch is valid");
    drop(first.task.join_next().await);
    assert_eq!(slow.hits(), 2);
    assert_eq!(record(&sandbox)["holderIdentity"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_released_whose_acquisition_has_no_answer_before_the_stop() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    sandbox.faults().delay_events(&LEASES, Duration::from_mins(1));
    sandbox.faults().inject(Fault::on(Verb::Create).resource(LEASES).times(1).lose_answer());
    let mut first = participant(&sandbox, "first", 1);
    while sandbox.get(&LEASES, &lease()).is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(record(&sandbox)["holderIdentity"], "first");
    first.stop.cancel();
    drop(first.task.join_next().await);
    assert_eq!(record(&sandbox)["holderIdentity"], "");
    assert!(first.leadership.borrow().term.is_none(), "it has never led");
}

#[tokio::test(start_paused = true)]
async fn a_standby_leads_within_the_duration_and_a_second_of_the_death_of_the_leader() {
    for seed in 0..20 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", seed);
        first.leads().await;
        let mut second = participant(&sandbox, "second", seed + 100);
        sleep(Duration::from_secs(30) + Duration::from_millis(seed * 300)).await;
        let killed = Instant::now();
        first.task.shutdown().await;
        second.leads().await;
        let took = killed.elapsed();
        assert!(took <= TIMING.lease_duration + Duration::from_secs(1), "it took {took:?} with seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_expects_to_lead_shortly_before_the_lease_expires_and_not_while_it_is_renewed() {
    for seed in 0..10 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", seed);
        first.leads().await;
        let mut second = participant(&sandbox, "second", seed + 100);
        let mut changes = second.leadership.clone();
        let expected = changes.wait_for(|leadership| leadership.is_expected);
        assert!(timeout(Duration::from_mins(2), expected).await.is_err(), "the lease is renewed");
        first.task.shutdown().await;
        let expected = second.leadership.wait_for(|leadership| leadership.is_expected);
        drop(timeout(Duration::from_mins(1), expected).await.expect("the lease expires").expect("it must run"));
        let since = Instant::now();
        second.leads().await;
        let ahead = since.elapsed();
        let bounds = Duration::from_millis(750)..=Duration::from_millis(1_300);
        assert!(bounds.contains(&ahead), "{ahead:?} before it led, with seed {seed}");
        assert!(!second.leadership.borrow().is_expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_within_the_renew_deadline_and_leads_again_when_it_can() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let fault = sandbox.faults().inject(Fault::on_any().resource(LEASES).stall());
    let cut = Instant::now();
    first.lost().await;
    assert!(cut.elapsed() <= TIMING.renew_deadline, "it took {:?}", cut.elapsed());
    fault.remove();
    first.leads().await;
    assert_eq!(record(&sandbox)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_costs_nothing_but_a_read() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let fault = sandbox.faults().inject(Fault::on(Verb::Update).resource(LEASES).times(3).lose_answer());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fault.hits(), 3);
    assert!(first.leadership.borrow().leads_until.is_some());
    assert_eq!(record(&sandbox)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_standby_does_not_create_a_deleted_lease_while_its_holder_may_write() {
    for seed in 0..20 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", seed);
        first.leads().await;
        let mut second = participant(&sandbox, "second", seed + 100);
        sleep(Duration::from_secs(10) + Duration::from_millis(seed * 300)).await;
        // It does not see the deletion.
        first.task.shutdown().await;
        sandbox.delete(&LEASES, &lease()).expect("the lease must exist");
        assert!(!first.fence.is_closed());
        let deleted = Instant::now();
        second.leads().await;
        assert!(first.fence.is_closed(), "after {:?} with seed {seed}", deleted.elapsed());
        assert_eq!(record(&sandbox)["leaseTransitions"], 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restore_of_etcd_shows_in_the_version_of_the_lease() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let (of_first, of_second) = (Surroundings::default(), Surroundings::default());
    let mut first = participant_in(&sandbox, "first", 1, of_first.clone());
    first.leads().await;
    let _second = participant_in(&sandbox, "second", 2, of_second.clone());
    let backup = sandbox.version();
    sleep(Duration::from_mins(2)).await;
    let suspicions = || [&of_first, &of_second].map(|of| of.rollbacks.load(Ordering::Relaxed));
    assert_eq!(suspicions(), [0, 0], "each renewal has a new version");
    // No watch breaks.
    sandbox.faults().silence_watches(&LEASES);
    sandbox.restore(backup).expect("its events are kept");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(suspicions(), [1, 1]);
    assert_eq!(first.leadership.borrow().term, Some(1), "its record is in the backup");
}

#[tokio::test(start_paused = true)]
async fn a_leader_creates_its_lease_again_when_somebody_deletes_it() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(10)).await;
    sandbox.delete(&LEASES, &lease()).expect("the lease must exist");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(record(&sandbox)["holderIdentity"], "first");
    sleep(Duration::from_mins(1)).await;
    assert_eq!((first.leadership.borrow().term, second.leadership.borrow_and_update().term), (Some(1), None));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_takes_is_lost_at_once() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let taken = serde_json::json!({ "spec": { "holderIdentity": "second" } });
    sandbox.patch(&LEASES, &lease(), &taken).expect("the patch is valid");
    let since = Instant::now();
    first.lost().await;
    assert!(since.elapsed() < Duration::from_millis(200), "it took {:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_behind_does_not_end_a_term() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    sandbox.faults().delay_events(&LEASES, Duration::from_secs(1));
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    first.stop.cancel();
    drop(first.task.join_next().await);
    // The watch shows the release after the second has acquired the lease.
    let mut second = participant(&sandbox, "second", 2);
    second.leads().await;
    let lost = second.leadership.wait_for(|leadership| leadership.leads_until.is_none());
    assert!(timeout(Duration::from_mins(2), lost).await.is_err(), "it must go on leading");
    assert_eq!(record(&sandbox)["leaseTransitions"], 1);
}

/// Type, reason, message, object and source of each event.
fn events(sandbox: &Sandbox) -> Vec<[String; 5]> {
    let events = sandbox.list(&EVENTS, Some("kube-system"));
    let text = |event: &Value, path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    let paths = ["/type", "/reason", "/message", "/involvedObject/kind", "/source/component"];
    events.iter().map(|event| paths.map(|path| text(event, path))).collect()
}

#[tokio::test(start_paused = true)]
async fn events_on_the_lease_say_who_became_leader_and_who_stopped_leading() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    sleep(Duration::from_secs(1)).await;
    let of_lease =
        |message: &str| ["Normal", "LeaderElection", message, "Lease", "kube-controller-manager"].map(str::to_owned);
    assert_eq!(events(&sandbox), [of_lease("first became leader")]);
    let uid = &sandbox.get(&LEASES, &lease()).expect("the lease must exist")["metadata"]["uid"];
    assert_eq!(sandbox.list(&EVENTS, None)[0]["involvedObject"]["uid"], *uid);
    first.stop.cancel();
    drop(first.task.join_next().await);
    let mut events = events(&sandbox);
    events.sort();
    assert_eq!(events, [of_lease("first became leader"), of_lease("first stopped leading")]);
}

#[tokio::test(start_paused = true)]
async fn metrics_show_who_leads_and_how_often_a_renewal_had_to_read_first() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(10)).await;
    let status = |leads: u8| format!("leader_election_master_status{{name=\"kube-controller-manager\"}} {leads}");
    let shows = |participant: &Participant, line: &str| participant.metrics.encode().lines().any(|it| it == line);
    assert!(shows(&first, &status(1)) && shows(&second, &status(0)));
    // The client repeats the update because its response was lost. The API server refuses the repetition, because the
    // first update took effect.
    let slow = "leader_election_slowpath_total{name=\"kube-controller-manager\"} 1";
    let fault = sandbox.faults().inject(Fault::on(Verb::Update).resource(LEASES).times(2).lose_answer());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fault.hits(), 2);
    assert!(shows(&first, slow), "{}", first.metrics.encode());
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    assert!(shows(&first, &status(0)) && shows(&second, &status(1)));
}

#[tokio::test(start_paused = true)]
async fn each_term_of_leadership_has_a_number_of_its_own() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    assert_eq!(first.leadership.borrow().term, Some(1));
    let fault = sandbox.faults().inject(Fault::on_any().resource(LEASES).stall());
    first.lost().await;
    assert_eq!(first.leadership.borrow().term, None);
    fault.remove();
    first.leads().await;
    assert_eq!(first.leadership.borrow().term, Some(2));
}

#[tokio::test(start_paused = true)]
async fn writes_pass_the_fence_whenever_the_leadership_is_published() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    assert!(first.fence.is_closed());
    for _ in 0..3 {
        first.leads().await;
        assert!(!first.fence.is_closed(), "loops that start now may write at once");
        let fault = sandbox.faults().inject(Fault::on_any().resource(LEASES).stall());
        first.lost().await;
        assert!(first.fence.is_closed());
        fault.remove();
    }
}

/// The heartbeat of a main thread that beats until the sender is dropped, and then is blocked for ever.
fn beating(tasks: &mut JoinSet<()>) -> (Heartbeat, CancellationToken) {
    let (heartbeat, blocked) = (Heartbeat::new(), CancellationToken::new());
    let beats = blocked.clone().run_until_cancelled_owned(heartbeat.clone().run());
    tasks.spawn(async move {
        if let Some(never) = beats.await {
            match never {}
        }
    });
    (heartbeat, blocked)
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_main_thread_is_blocked_does_not_keep_the_lease() {
    let limit = Duration::from_mins(1);
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut main_thread = JoinSet::new();
    let (heartbeat, blocked) = beating(&mut main_thread);
    let watchdog = Watchdog::new(heartbeat, limit, || {});
    let mut first = participant_in(&sandbox, "first", 1, Surroundings { watchdog, ..Surroundings::default() });
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(first.leadership.borrow().term, Some(1), "a thread that is not blocked loses no lease");
    blocked.cancel();
    sleep(limit).await;
    assert_eq!(first.leadership.borrow().term, Some(1));
    let until = Instant::now();
    first.lost().await;
    assert!(first.fence.is_closed());
    assert!(until.elapsed() <= Duration::from_secs(6), "it took {:?}", until.elapsed());
    assert_eq!(record(&sandbox)["holderIdentity"], "first", "writes may be under way: the lease expires");
    drop(first.task.join_next().await);
    second.leads().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_as_a_whole_is_not_blocked() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let (heartbeat, exits) = (Heartbeat::new(), Arc::new(AtomicUsize::new(0)));
    let exit = Arc::clone(&exits);
    let watchdog = Watchdog::new(heartbeat.clone(), Duration::from_mins(1), move || {
        exit.fetch_add(1, Ordering::Relaxed);
    });
    let mut first = participant_in(&sandbox, "first", 1, Surroundings { watchdog, ..Surroundings::default() });
    first.leads().await;
    let mut main_thread = JoinSet::new();
    // The lease's thread is the first to go on.
    sleep(Duration::from_secs(62)).await;
    main_thread.spawn(async move { match heartbeat.run().await {} });
    sleep(Duration::from_mins(5)).await;
    assert_eq!(first.leadership.borrow().term, Some(1));
    assert_eq!(exits.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_machine_was_suspended_steps_down_before_it_reads_the_lease() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let clock = surroundings.clock.clone();
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    sleep(Duration::from_millis(900)).await;
    clock.suspend(Duration::from_hours(1));
    assert!(first.fence.is_closed(), "no write passes, though nothing has run since");
    sandbox.clear_requests();
    first.leads_in_term(2).await;
    let of_lease = sandbox.requests().into_iter().filter(|it| it.path.ends_with("/kube-controller-manager"));
    let methods: Vec<_> = of_lease.map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["GET", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_was_under_way_during_a_suspension_does_not_count() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let clock = surroundings.clock.clone();
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    let slow = sandbox.faults().inject(Fault::on(Verb::Update).resource(LEASES).times(1).delay(Duration::from_secs(1)));
    while slow.hits() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    clock.suspend(Duration::from_secs(5));
    first.leads_in_term(2).await;
    assert_eq!(record(&sandbox)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_controllers_have_no_connection_for_the_renew_deadline_steps_down() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let connection = Arc::clone(&surroundings.connection);
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(30)).await;
    *connection.lock() = Some(Instant::now());
    sleep(TIMING.renew_deadline.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(first.leadership.borrow().term, Some(1), "its lease is renewed, and a probe may succeed yet");
    first.lost().await;
    assert!(first.fence.is_closed());
    second.leads().await;
    // It does not compete for a lease under which it could not act.
    second.task.shutdown().await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(first.leadership.borrow().term, None);
    *connection.lock() = None;
    first.leads().await;
}

#[tokio::test(start_paused = true)]
async fn an_unusable_connection_that_recovers_within_the_renew_deadline_ends_no_term() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let connection = Arc::clone(&surroundings.connection);
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    for _ in 0..10 {
        *connection.lock() = Some(Instant::now());
        sleep(TIMING.renew_deadline.saturating_sub(Duration::from_secs(1))).await;
        *connection.lock() = None;
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(first.leadership.borrow().term, Some(1));
}
