//! Two whole managers that take turns while the watch of pods lags: no pod too many, and no index of a job twice.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kcm_controllers::apps::{job, replicaset};
use kcm_framework::api::KnownView as _;
use kcm_framework::api::views::Job;
use kcm_framework::config::{Loaded, Sources, Table, gates};
use kcm_framework::{Manager, Metrics, Registry, Stop};
use kcm_sandbox_apiserver::direct::{DirectClient, EventKind};
use kcm_sandbox_apiserver::{Fault, LEASES, ObjectKey, PODS, REPLICA_SETS, Resource, Sandbox, SandboxOptions, Verb};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::leader_election::settings::{Election, LeaderElection, MigrationSettings, Policy};
use crate::leader_election::thread::{Compete, LeaseThread, StopLease, keep_through};
use crate::leader_election::{Candidate, Ended, LeaderHealth};

/// The end of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// It is asked to stop.
    Terminated,
    /// It is gone from one poll to the next.
    Dropped,
    /// It cannot renew its lease.
    Expired,
}

/// A process with a manager of replica sets and jobs that competes for the lease.
struct Replica {
    identity: String,
    stop: Stop,
    manager: JoinSet<Result<(), Ended>>,
    lease: Arc<Mutex<JoinSet<()>>>,
    /// Requests for the lease hang while it is set.
    is_cut: Arc<AtomicBool>,
    health: LeaderHealth,
}

fn manager(sandbox: &Sandbox, seed: u64) -> (Manager, Arc<Metrics>) {
    let registry = Registry::of([replicaset::DESCRIPTOR, job::DESCRIPTOR]).expect("the descriptors are valid");
    let table = Table::with_gates(registry.rows(), gates::KNOWN.iter().copied().chain(registry.feature_gates()));
    let Ok(Loaded::Settings(settings)) = table.expect("the rows are valid").load(&Sources::default()) else {
        panic!("the default settings are valid")
    };
    let metrics = Metrics::new();
    let manager = Manager::builder(registry, *settings)
        .limits(Limits::UNLIMITED)
        .clock(SimulatedClock::starting_at(sandbox.now()))
        .metrics(Arc::clone(&metrics))
        .seed(seed)
        .build(sandbox.client(), "sandbox:443");
    (manager, metrics)
}

/// The election with one lease, or with another for the controllers that migrate.
fn election(migrating: &[&str]) -> Election {
    let settings: LeaderElection = serde_json::from_value(json!({
        "leaderElect": true, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s",
        "resourceName": lease().name(), "resourceNamespace": lease().namespace(),
    }))
    .expect("the settings are valid");
    let controllers: BTreeSet<_> = migrating.iter().map(|controller| (*controller).to_owned()).collect();
    let lease = "controller-migration".to_owned();
    let migration = (!controllers.is_empty()).then_some(MigrationSettings { lease, controllers });
    let policy = Policy { warm_standby: true, exit_on_lost_lease: true, grace: Duration::from_secs(10) };
    Election { settings, policy, limits: Limits::UNLIMITED, releases: true, migration }
}

/// The client of a lease, whose requests hang while it is cut.
fn client(sandbox: &Sandbox, is_cut: &Arc<AtomicBool>) -> kube::Client {
    let (sandbox, is_cut) = (sandbox.client(), Arc::clone(is_cut));
    let service = tower::service_fn(move |request| {
        let (sandbox, is_cut) = (sandbox.clone(), Arc::clone(&is_cut));
        async move {
            if is_cut.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            sandbox.send(request).await
        }
    });
    kube::Client::new(service, "default")
}

impl Replica {
    fn start(sandbox: &Sandbox, seed: u64) -> Self {
        Self::start_in(sandbox, seed, election(&[]))
    }

    fn start_in(sandbox: &Sandbox, seed: u64, election: Election) -> Self {
        let identity = format!("replica-{seed}");
        let (manager, metrics) = manager(sandbox, seed);
        let (lease, is_cut) = (Arc::<Mutex<JoinSet<()>>>::default(), Arc::<AtomicBool>::default());
        let (tasks, client) = (Arc::downgrade(&lease), client(sandbox, &is_cut));
        let clock: Arc<SimulatedClock> = Arc::new(SimulatedClock::starting_at(sandbox.now()));
        let compete: Compete = Arc::new(move |options, held| {
            let (client, clock, stop) = (client.clone(), Arc::clone(&clock), StopLease::default());
            let (end, ended) = oneshot::channel();
            let stopped = stop.clone();
            if let Some(tasks) = tasks.upgrade() {
                tasks.lock().spawn(async move {
                    keep_through(client, clock, options, held, &stopped).await;
                    drop(end);
                });
            }
            Box::pin(async { Ok(LeaseThread::new(stop, ended)) })
        });
        let leases = metrics.register(LeaseMetrics::register);
        let watchdog = Watchdog::new(Heartbeat::new(), Duration::MAX, || {});
        let plugins = metrics.exec_plugins().clone();
        let elapsed = Arc::new(SimulatedElapsed::starting_now());
        let candidate = Candidate::new(identity.clone(), election, leases, plugins, watchdog, elapsed);
        let health = candidate.health();
        let stop = Stop::default();
        let mut running = JoinSet::new();
        let stopped = stop.clone();
        running.spawn(async move { candidate.run_with(manager, &compete, stopped).await });
        Self { identity, stop, manager: running, lease, is_cut, health }
    }

    async fn end(mut self, end: End) {
        match end {
            End::Terminated => {
                self.stop.drain.cancel();
                let ended = self.manager.join_next().await.expect("it ends once").expect("it must not panic");
                assert!(ended.is_ok(), "{ended:?}");
            }
            End::Dropped => {
                self.manager.abort_all();
                self.lease.lock().abort_all();
            }
            End::Expired => {
                self.is_cut.store(true, Ordering::Relaxed);
                let ended = self.manager.join_next().await.expect("it ends once").expect("it must not panic");
                assert!(matches!(ended, Err(Ended::LeaseLost)), "{ended:?}");
            }
        }
    }
}

/// The wanted and the active pods of each set, and the pods of each index, at every version of the API server.
#[derive(Default)]
struct Oracle {
    seen: u64,
    /// The set or the job of each active pod.
    active: BTreeMap<ObjectKey, String>,
    /// The least and the most pods that each set may have.
    allowed: BTreeMap<String, (usize, usize)>,
    /// The pods that were created for each index of a job.
    indexes: BTreeMap<(String, String), usize>,
    /// The number of pods outside of the allowed range, by round and set: the most at any version.
    beyond: BTreeMap<(u64, String), usize>,
    /// The indexes of jobs that ran more than once.
    twice: BTreeSet<(String, String)>,
    round: u64,
}

impl Oracle {
    fn look(&mut self, sandbox: &Sandbox) {
        let events = DirectClient::new(sandbox).events_after(self.seen, usize::MAX).expect("the window is wide enough");
        for event in events {
            self.seen = event.version;
            if event.resource != PODS {
                continue;
            }
            let pod = event.object.value();
            let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let owner = text("/metadata/ownerReferences/0/name");
            let is_new = event.previous.is_none();
            let index = text("/metadata/annotations/batch.kubernetes.io~1job-completion-index");
            if is_new && !index.is_empty() {
                let pods = self.indexes.entry((owner.clone(), index.clone())).or_default();
                *pods += 1;
                if *pods > 1 {
                    self.twice.insert((owner.clone(), index));
                }
            }
            let is_gone = event.kind == EventKind::Deleted
                || !text("/metadata/deletionTimestamp").is_empty()
                || ["Succeeded", "Failed"].contains(&&*text("/status/phase"));
            if is_gone {
                self.active.remove(&event.key);
            } else {
                self.active.insert(event.key.clone(), owner.clone());
            }
            if let Some((least, most)) = self.allowed.get(&owner) {
                let pods = self.pods(&owner);
                let beyond = pods.saturating_sub(*most).max(least.saturating_sub(pods));
                if beyond > 0 {
                    let most = self.beyond.entry((self.round, owner)).or_default();
                    *most = beyond.max(*most);
                }
            }
        }
    }

    fn pods(&self, owner: &str) -> usize {
        self.active.values().filter(|active| *active == owner).count()
    }
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "restartPolicy": "Always", "containers": [{ "name": "main", "image": "example/main:1" }] },
    })
}

fn set_spec(set: &str, replicas: usize) -> Value {
    let template = json!({ "metadata": { "labels": { "set": set } }, "spec": template()["spec"] });
    json!({ "replicas": replicas, "selector": { "matchLabels": { "set": set } }, "template": template })
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn create(sandbox: &Sandbox, resource: &Resource, name: &str, spec: &Value) {
    let object = json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec });
    sandbox.create(resource, object).expect("the object must be valid");
}

const JOBS: Resource = Job::RESOURCE;

const SETS: [&str; 3] = ["a", "b", "c"];

/// The figures of many handovers.
#[derive(Debug, Default)]
struct Figures {
    beyond: BTreeMap<(u64, String), usize>,
    twice: BTreeSet<(String, String)>,
    /// Time from the acquisition of the lease until the successor has acted on a new set.
    to_the_first_act: BTreeMap<End, Vec<Duration>>,
}

impl Figures {
    fn median_to_the_first_act(&self, end: End) -> Duration {
        let mut all = self.to_the_first_act[&end].clone();
        all.sort();
        all[all.len() / 2]
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(Duration::from_mins(5), waiting).await.is_ok(), "it never came true that {what}");
}

/// `lags` are the least and the most milliseconds by which the watch of pods lags.
async fn handovers(count: u64, ends: &[End], lags: Range<u64>, seed: u64) -> Figures {
    handovers_with(count, ends, lags, seed, &[]).await
}

/// As [`handovers`], while some controllers run under the lease of leader migration.
async fn handovers_with(count: u64, ends: &[End], lags: Range<u64>, seed: u64, migrating: &[&str]) -> Figures {
    let options = SandboxOptions { watch_window: 1_000_000, seed, ..SandboxOptions::default() };
    let sandbox = Sandbox::new(options);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut oracle = Oracle { seen: sandbox.version(), ..Oracle::default() };
    let mut figures = Figures::default();
    let mut wanted = BTreeMap::new();
    for set in SETS {
        create(&sandbox, &REPLICA_SETS, set, &set_spec(set, 3));
        wanted.insert(set, 3);
        oracle.allowed.insert(set.to_owned(), (0, 3));
    }
    // A request takes time, so that a leader ends while its requests are under way.
    sandbox.faults().inject(Fault::on_writes().resource(PODS).delay(Duration::from_millis(2)));
    let holds = |replica: &Replica| {
        sandbox.get(&LEASES, &lease()).is_some_and(|lease| lease["spec"]["holderIdentity"] == replica.identity)
    };
    let mut leader = Replica::start_in(&sandbox, seed, election(migrating));
    until("the first leads", || holds(&leader)).await;
    for round in 0..count {
        oracle.round = round;
        let standby = Replica::start_in(&sandbox, seed + round + 1, election(migrating));
        let end = ends[usize::try_from(round).expect("it is small") % ends.len()];
        until("all is as wanted", || {
            oracle.look(&sandbox);
            wanted.iter().all(|(set, wanted)| oracle.pods(set) == *wanted)
        })
        .await;
        sleep(Duration::from_secs(10)).await;
        oracle.look(&sandbox);

        let lag = Duration::from_millis(rng.u64(lags.clone()));
        sandbox.faults().delay_events(&PODS, lag);
        for (set, wanted) in &mut wanted {
            let new = rng.usize(0..10);
            oracle.allowed.insert((*set).to_owned(), (new.min(*wanted), new.max(*wanted)));
            *wanted = new;
            sandbox.patch(&REPLICA_SETS, &key(set), &json!({ "spec": { "replicas": new } })).expect("it is valid");
        }
        let name = format!("job-{round}");
        let mut template = template();
        template["spec"]["restartPolicy"] = json!("Never");
        let spec = json!({ "completions": 6, "parallelism": 4, "completionMode": "Indexed", "template": template });
        create(&sandbox, &JOBS, &name, &spec);
        sleep(Duration::from_millis(rng.u64(0..100))).await;

        let leading = until("the standby leads", || holds(&standby));
        tokio::join!(leader.end(end), async {
            leading.await;
            let probe = format!("probe-{round}");
            create(&sandbox, &REPLICA_SETS, &probe, &set_spec(&probe, 1));
            let created = Instant::now();
            until("the successor acts", || {
                oracle.look(&sandbox);
                oracle.pods(&probe) > 0
            })
            .await;
            figures.to_the_first_act.entry(end).or_default().push(created.elapsed());
            sandbox.delete_now(&REPLICA_SETS, &key(&probe)).expect("it exists");
        });
        until("all is as wanted again", || {
            oracle.look(&sandbox);
            let of_job = (0..4).all(|index| oracle.indexes.contains_key(&(name.clone(), index.to_string())));
            of_job && wanted.iter().all(|(set, wanted)| oracle.pods(set) == *wanted)
        })
        .await;
        for pod in sandbox.list(&PODS, None).iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == *name)
        {
            let pod = pod["metadata"]["name"].as_str().expect("pods have names");
            sandbox.set_pod_phase(&key(pod), "Succeeded").expect("the pod exists");
        }
        leader = standby;
    }
    oracle.look(&sandbox);
    (figures.beyond, figures.twice) = (oracle.beyond, oracle.twice);
    figures
}

#[tokio::test(start_paused = true)]
async fn a_hundred_handovers_with_a_late_watch_lead_to_no_pod_too_many_and_no_index_twice() {
    let figures = handovers(100, &[End::Terminated, End::Dropped, End::Expired], 200..2_000, 1).await;
    let pods: usize = figures.beyond.values().sum();
    assert_eq!((pods, figures.twice.len()), (0, 0), "{:?} {:?}", figures.beyond, figures.twice);
}

/// Each controller takes over with the lease that it runs under.
#[tokio::test(start_paused = true)]
async fn handovers_under_leader_migration_lead_to_no_pod_too_many_and_no_index_twice() {
    let ends = [End::Terminated, End::Dropped, End::Expired];
    for migrating in [job::DESCRIPTOR.name, replicaset::DESCRIPTOR.name] {
        let figures = handovers_with(12, &ends, 200..2_000, 3, &[migrating]).await;
        let pods: usize = figures.beyond.values().sum();
        assert_eq!((pods, figures.twice.len()), (0, 0), "{migrating}: {:?} {:?}", figures.beyond, figures.twice);
    }
}

/// The proof adds half a second after an expiry at most, and nothing that can be measured after a release. Before watches
/// were opened ahead of the expiry, it added a second.
#[tokio::test(start_paused = true)]
async fn a_successor_with_a_prompt_watch_acts_at_once_after_a_release_and_within_half_a_second_after_an_expiry() {
    let figures = handovers(21, &[End::Terminated, End::Dropped, End::Expired], 0..1, 2).await;
    assert!(figures.median_to_the_first_act(End::Terminated) < Duration::from_millis(100));
    for end in [End::Dropped, End::Expired] {
        let longest = figures.to_the_first_act[&end].iter().max().expect("there were handovers");
        assert!(*longest < Duration::from_millis(600), "{end:?} {longest:?}");
    }
    assert!(figures.beyond.is_empty() && figures.twice.is_empty());
}

/// A leader whose creation of a pod is under way, and its standby.
async fn while_a_pod_is_created(fault: Fault) -> (Sandbox, Replica, Replica) {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let leader = Replica::start(&sandbox, 1);
    let holder = || sandbox.get(&LEASES, &lease()).map(|lease| lease["spec"]["holderIdentity"].clone());
    until("the first leads", || holder() == Some(json!("replica-1"))).await;
    let standby = Replica::start(&sandbox, 2);
    sleep(Duration::from_secs(30)).await;
    let fault = sandbox.faults().inject(fault);
    create(&sandbox, &REPLICA_SETS, "a", &set_spec("a", 1));
    until("a pod is requested", || fault.hits() > 0).await;
    (sandbox.clone(), leader, standby)
}

fn held_by(sandbox: &Sandbox) -> String {
    record(sandbox)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_released_when_the_last_write_has_its_answer() {
    let slow = Fault::on(Verb::Create).resource(PODS).delay(Duration::from_secs(3));
    let (sandbox, leader, standby) = while_a_pod_is_created(slow).await;
    let since = Instant::now();
    leader.end(End::Terminated).await;
    let took = since.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(5)).contains(&took), "{took:?}");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(held_by(&sandbox), standby.identity);
    assert_eq!(sandbox.list(&PODS, None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_expires_if_a_write_has_no_answer_within_the_shutdown_timeout() {
    let stuck = Fault::on(Verb::Create).resource(PODS).times(1).stall();
    let (sandbox, leader, standby) = while_a_pod_is_created(stuck).await;
    let (identity, since) = (leader.identity.clone(), Instant::now());
    leader.end(End::Terminated).await;
    let took = since.elapsed();
    assert!(took <= Duration::from_secs(10), "the whole stop is bounded by the shutdown timeout: {took:?}");
    assert_eq!(held_by(&sandbox), identity, "the write may still take effect");
    until("the standby leads", || held_by(&sandbox) == standby.identity).await;
    assert!(since.elapsed() > Duration::from_secs(20), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_restore_of_etcd_that_breaks_no_watch_is_noticed_within_two_renewals() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let _leader = Replica::start(&sandbox, 1);
    create(&sandbox, &REPLICA_SETS, "a", &set_spec("a", 1));
    let pods = || sandbox.list(&PODS, None).len();
    until("it leads", || pods() == 1).await;
    let backup = sandbox.version();
    sleep(Duration::from_mins(1)).await;
    for resource in [&PODS, &REPLICA_SETS] {
        sandbox.bookmark(resource);
    }
    sleep(Duration::from_millis(10)).await;
    for resource in [&PODS, &REPLICA_SETS, &JOBS, &LEASES] {
        sandbox.faults().silence_watches(resource);
    }
    sandbox.restore(backup).expect("its events are kept");
    sandbox.patch(&REPLICA_SETS, &key("a"), &json!({ "spec": { "replicas": 3 } })).expect("it is valid");
    let restored = Instant::now();
    until("the change is seen", || pods() == 3).await;
    assert!(restored.elapsed() < Duration::from_secs(5), "{:?}", restored.elapsed());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(pods(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_connection_of_a_lease_shows_in_a_check_of_its_own() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let leader = Replica::start(&sandbox, 1);
    until("it leads", || sandbox.get(&LEASES, &lease()).is_some()).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(leader.health.check_connections(), Ok(()));
    sandbox.faults().stop_api_server();
    sleep(Duration::from_secs(5)).await;
    let problem = leader.health.check_connections().expect_err("it is stopped");
    let expected = format!("the API server has been unreachable for the lease {} for ", lease().name());
    assert!(problem.starts_with(&expected) && problem.ends_with("connection lost"), "{problem}");
    sandbox.faults().end_outage();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(leader.health.check_connections(), Ok(()));
    assert_eq!(held_by(&sandbox), leader.identity);
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_ends_a_leader_at_once() {
    let stuck = Fault::on(Verb::Create).resource(PODS).times(1).stall();
    let (sandbox, leader, _standby) = while_a_pod_is_created(stuck).await;
    // The release hangs as well.
    leader.is_cut.store(true, Ordering::Relaxed);
    let (abort, since) = (leader.stop.abort.clone(), Instant::now());
    tokio::join!(leader.end(End::Terminated), async {
        sleep(Duration::from_secs(1)).await;
        abort.cancel();
    });
    let took = since.elapsed();
    assert!(took < Duration::from_millis(1_100), "{took:?}");
    assert_eq!(held_by(&sandbox), "replica-1");
}

fn migration_lease(sandbox: &Sandbox) -> Value {
    let key = ObjectKey::namespaced("kube-system", "controller-migration");
    sandbox.get(&LEASES, &key).unwrap_or_default()
}

/// The version of pods that a released lease hands over.
fn handed_over(lease: &Value) -> Option<u64> {
    let text = lease["metadata"]["annotations"]["kube-controller-manager/handover"].as_str()?;
    let handover: Value = serde_json::from_str(text).expect("it is JSON");
    handover["cacheVersions"]["pods"].as_str()?.parse().ok()
}

/// A leader under both leases whose controllers have created a pod each, and the last version of these pods.
async fn leader_of_both(sandbox: &Sandbox, election: Election) -> (Replica, u64) {
    let leader = Replica::start_in(sandbox, 1, election);
    until("it holds both leases", || migration_lease(sandbox)["spec"]["holderIdentity"] == "replica-1").await;
    create(sandbox, &REPLICA_SETS, "a", &set_spec("a", 1));
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    create(sandbox, &JOBS, "batch", &json!({ "completions": 1, "parallelism": 1, "template": template }));
    until("both controllers act", || sandbox.list(&PODS, None).len() == 2).await;
    let versions = sandbox.list(&PODS, None);
    let versions = versions.iter().filter_map(|pod| pod["metadata"]["resourceVersion"].as_str()?.parse().ok());
    (leader, versions.max().expect("there are pods"))
}

#[tokio::test(start_paused = true)]
async fn each_lease_that_is_released_carries_the_versions_of_what_was_written() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let (leader, newest) = leader_of_both(&sandbox, election(&[job::DESCRIPTOR.name])).await;
    leader.end(End::Terminated).await;
    let main = sandbox.get(&LEASES, &lease()).expect("it exists");
    for lease in [main, migration_lease(&sandbox)] {
        assert_eq!(lease["spec"]["holderIdentity"], "", "{lease}");
        assert!(handed_over(&lease) >= Some(newest), "{lease}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_loses_its_main_lease_and_goes_on_releases_the_lease_of_migration_with_its_versions() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut election = election(&[job::DESCRIPTOR.name]);
    election.policy.exit_on_lost_lease = false;
    let (_leader, newest) = leader_of_both(&sandbox, election).await;
    let given_away = json!({ "spec": { "holderIdentity": "another", "leaseDurationSeconds": 3600 } });
    sandbox.patch(&LEASES, &lease(), &given_away).expect("it is valid");
    until("the other lease is released", || migration_lease(&sandbox)["spec"]["holderIdentity"] == "").await;
    assert!(handed_over(&migration_lease(&sandbox)) >= Some(newest));
    create(&sandbox, &REPLICA_SETS, "b", &set_spec("b", 1));
    sleep(Duration::from_mins(1)).await;
    assert_eq!(sandbox.list(&PODS, None).len(), 2, "it acts under neither lease");
}
