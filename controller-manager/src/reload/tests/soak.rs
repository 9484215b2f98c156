//! Hundreds of reloads while controllers are busy.

use std::alloc::System;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kcm_config::Sources;
use kcm_controllers::apps::{deployment, replicaset};
use kcm_framework::api::ObjectKey;
use kcm_framework::clock::{Clock, SimulatedClock};
use kcm_framework::{ControllerState, Extensions, ManagerHandle, Registry, Stop};
use kcm_sandbox_apiserver::{DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, Sandbox, SandboxOptions};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::task::JoinSet;

use super::configured;
use crate::logs::{LogOptions, tests::logs_to};
use crate::reload::{ReloadState, Reloader, SettingsSource};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Set for the process that runs the soak alone.
const ALONE: &str = "RELOAD_SOAK_ALONE";

/// Set for a process whose reloads leak.
const LEAKS: &str = "RELOAD_SOAK_LEAKS";

/// Reloads until tables and buffers have the sizes that they keep.
const WARM_UP: usize = 100;
const RELOADS: usize = 200;

/// The most that a reload may leak: settings take tens of kilobytes, a task or a loop thousands of bytes.
const MOST_BYTES_OF_A_RELOAD: usize = 256;

/// The smallest leak of a reload that is found. Tables may shrink by some kilobytes in all reloads together.
const FOUND_BYTES_OF_A_RELOAD: usize = 2 * MOST_BYTES_OF_A_RELOAD;

const NAMESPACE: &str = "default";
const DEPLOYED: [&str; 3] = ["a", "b", "c"];
const LONE: &str = "lone";

/// The errors that are logged; other lines are only rendered.
#[derive(Debug, Clone, Default)]
struct Errors(Arc<Mutex<String>>);

impl io::Write for Errors {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.starts_with(b"E") {
            self.0.lock().expect("no writer panics").push_str(&String::from_utf8_lossy(line));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The values of one configuration file.
#[derive(Debug, Clone, Copy)]
struct Configuration {
    controllers: &'static [&'static str],
    workers: (usize, usize),
    verbosity: usize,
    qps: usize,
}

/// The configuration at the beginning and at the end.
const BASE: Configuration = Configuration { controllers: &["*"], workers: (5, 5), verbosity: 0, qps: 200 };

impl Configuration {
    fn of_round(round: usize) -> Self {
        let controllers: [&[&str]; 5] = [
            &["*"],
            &["*", "-deployment"],
            &["*", "-replicaset"],
            &["-deployment", "-replicaset"],
            &["replicaset", "deployment"],
        ];
        Self {
            controllers: controllers[round % controllers.len()],
            workers: (1 + round % 7, 1 + round % 4),
            verbosity: [0, 4, 2, 6][round % 4],
            qps: 20 + 37 * (round % 6),
        }
    }

    fn write(&self, path: &Path) {
        let mut text =
            "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"
                .to_owned();
        let Self { controllers, workers: (deployments, replica_sets), verbosity, qps } = self;
        let controllers = json!(controllers);
        writeln!(text, "generic: {{controllers: {controllers}, clientConnection: {{qps: {qps}, burst: {qps}}}}}")
            .and_then(|()| writeln!(text, "deploymentController: {{concurrentDeploymentSyncs: {deployments}}}"))
            .and_then(|()| writeln!(text, "replicaSetController: {{concurrentRSSyncs: {replica_sets}}}"))
            .and_then(|()| writeln!(text, "logging: {{verbosity: {verbosity}}}"))
            .expect("a string takes everything");
        std::fs::write(path, text).expect("there must be room for a file");
    }
}

/// A replica set or the template of a deployment.
fn spec(app: &str, replicas: usize, image: usize) -> Value {
    json!({
        "replicas": replicas,
        "selector": { "matchLabels": { "app": app } },
        "template": {
            "metadata": { "labels": { "app": app } },
            "spec": { "containers": [{ "name": "main", "image": format!("main:{image}") }] },
        },
    })
}

/// Replicas and image of each deployment, as the load asks for them in a round.
fn wanted(round: usize) -> [(usize, usize); DEPLOYED.len()] {
    std::array::from_fn(|number| (3 + (round + number) % 4, (round / 3 + number) % 3))
}

const LONE_REPLICAS: usize = 2;

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

fn create_all(sandbox: &Sandbox) {
    for (name, (replicas, image)) in DEPLOYED.iter().zip(wanted(0)) {
        let mut spec = spec(name, replicas, image);
        // Without kubelets no pod becomes available: a rollout must not wait for that.
        spec["strategy"] = json!({ "rollingUpdate": { "maxUnavailable": "100%", "maxSurge": 0 } });
        let object = json!({ "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec });
        sandbox.create(&DEPLOYMENTS, object).expect("the deployment is valid");
    }
    let object = json!({ "metadata": { "name": LONE, "namespace": NAMESPACE }, "spec": spec(LONE, LONE_REPLICAS, 0) });
    sandbox.create(&REPLICA_SETS, object).expect("the replica set is valid");
}

fn ask_for(sandbox: &Sandbox, wanted: [(usize, usize); DEPLOYED.len()], lone: usize) {
    for (name, (replicas, image)) in DEPLOYED.iter().zip(wanted) {
        let template = spec(name, replicas, image)["template"].take();
        let patch = json!({ "spec": { "replicas": replicas, "template": template } });
        sandbox.patch(&DEPLOYMENTS, &key(name), &patch).expect("the deployment is there");
    }
    sandbox.patch(&REPLICA_SETS, &key(LONE), &json!({ "spec": { "replicas": lone } })).expect("it is there");
}

/// Returns `true` if every object is as the round asks for it.
fn is_as_wanted(sandbox: &Sandbox, wanted: [(usize, usize); DEPLOYED.len()], lone: usize) -> bool {
    let pods = sandbox.list(&PODS, None);
    let pods_of = |app: &str, image: usize| {
        let runs = |pod: &&Value| pod["spec"]["containers"][0]["image"] == format!("main:{image}");
        let of_app = |pod: &&Value| pod["metadata"]["labels"]["app"] == app;
        pods.iter().filter(of_app).filter(runs).count()
    };
    let confirmed = |object: Value, replicas: usize| {
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && object["status"]["replicas"].as_u64().unwrap_or(0) == replicas as u64
    };
    let deployed = DEPLOYED.iter().zip(wanted).all(|(name, (replicas, image))| {
        let deployment = sandbox.get(&DEPLOYMENTS, &key(name)).expect("it is not deleted");
        pods_of(name, image) == replicas && confirmed(deployment, replicas)
    });
    let total: usize = wanted.iter().map(|(replicas, _)| replicas).sum();
    let set = sandbox.get(&REPLICA_SETS, &key(LONE)).expect("it is not deleted");
    deployed && confirmed(set, lone) && pods.len() == total + lone
}

/// Waits until `holds`, for less than any time-out of the test.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_mins(10), waiting).await.is_ok(), "it never came true that {what}");
}

/// Figures that must be the same before and after.
#[derive(Debug, PartialEq, Eq)]
struct Footprint {
    tasks: usize,
    informers: usize,
    watches: [usize; 3],
    states: Vec<ControllerState>,
}

struct Soak<'a> {
    path: PathBuf,
    sandbox: Sandbox,
    handle: ManagerHandle,
    reloader: Reloader<'a>,
    reloads: ReloadState,
    /// How much each round leaks.
    leak: usize,
}

impl Soak<'_> {
    /// Reloads the configuration of a round while the manager works on the changes of the round.
    async fn round(&mut self, round: usize) {
        ask_for(&self.sandbox, wanted(round), 1 + round % 5);
        std::mem::forget(vec![0_u8; self.leak]);
        let configuration = Configuration::of_round(round);
        if round % 10 == 9 {
            std::fs::write(&self.path, "generic: [").expect("there must be room for a file");
            self.reloader.reload();
            assert!(self.reloads.check().is_err(), "a broken file is refused");
        }
        configuration.write(&self.path);
        self.reloader.reload();
        assert_eq!(self.reloads.check(), Ok(()), "{configuration:?}");
        assert_eq!(tracing::enabled!(tracing::Level::DEBUG), configuration.verbosity >= 4, "{configuration:?}");
        // From the middle of a reconcile to its end.
        tokio::time::sleep(Duration::from_millis((61 * round as u64) % 700)).await;
    }

    /// Restores the settings and the objects of the beginning, and waits until the manager has finished.
    async fn settle(&mut self) -> Footprint {
        BASE.write(&self.path);
        self.reloader.reload();
        ask_for(&self.sandbox, wanted(0), LONE_REPLICAS);
        until("every object is as it should be", || is_as_wanted(&self.sandbox, wanted(0), LONE_REPLICAS)).await;
        // Longer than reconciles, back-offs and time-outs of late responses.
        tokio::time::sleep(Duration::from_mins(3)).await;
        // Memory of the API server is not the manager's: events, and the history of objects.
        for event in self.sandbox.list(&EVENTS, None) {
            let name = event["metadata"]["name"].as_str().expect("an event has a name");
            self.sandbox.delete_now(&EVENTS, &key(name)).expect("the event is there");
        }
        self.sandbox.compact();
        assert!(is_as_wanted(&self.sandbox, wanted(0), LONE_REPLICAS), "it stays as it is");
        Footprint {
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            informers: self.handle.informers().len(),
            watches: [&DEPLOYMENTS, &REPLICA_SETS, &PODS].map(|resource| self.sandbox.open_watches(resource)),
            states: self.handle.controllers().into_iter().map(|controller| controller.state).collect(),
        }
    }
}

#[test]
fn two_hundred_reloads_under_load_lose_no_key_and_no_memory() {
    // The allocator counts for the whole process, in which other tests run at the same time.
    if std::env::var_os(ALONE).is_none() {
        let (succeeded, printed) = alone(&[(ALONE, "1")]);
        assert!(succeeded && printed.contains("1 passed"), "{printed}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime can be made").block_on(soak());
}

/// The purpose of the soak: the smallest leak that it promises to find.
#[test]
fn a_leak_of_each_reload_fails_the_soak() {
    let (succeeded, printed) = alone(&[(ALONE, "1"), (LEAKS, "1")]);
    assert!(!succeeded && printed.contains(&format!("bytes in {RELOADS} reloads")), "{printed}");
}

/// Runs the soak in a process of its own. Returns its success and its output.
fn alone(variables: &[(&str, &str)]) -> (bool, String) {
    let own = std::env::current_exe().expect("the path of this test is known");
    let name = "reload::tests::soak::two_hundred_reloads_under_load_lose_no_key_and_no_memory";
    let mut soak = Command::new(own);
    soak.args(["--exact", name, "--nocapture"]).envs(variables.iter().copied());
    let ended = soak.output().expect("the test can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.success(), format!("{}\n{}", text(&ended.stdout), text(&ended.stderr)))
}

async fn soak() {
    let folder = tempfile::tempdir().expect("there must be room for a folder");
    let path = folder.path().join("kcm.yaml");
    BASE.write(&path);
    let sandbox = Sandbox::new(SandboxOptions { watch_window: 50, request_log: 0, ..SandboxOptions::default() });
    create_all(&sandbox);
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(sandbox.now()));

    let registry = Registry::of([deployment::DESCRIPTOR, replicaset::DESCRIPTOR]).expect("the descriptors go together");
    // Explanations of keys fill their memory limit, which has a test of its own.
    let flags = ["--leader-elect=false", "--explain-memory=0", &format!("--config={}", path.display())];
    let flags = flags.map(str::to_owned);
    let sources = Sources::default().arguments(flags).reader(|path| std::fs::read(path));
    let (start, manager) = configured(&registry, &sources, &sandbox);
    let options = LogOptions::of(&start).expect("the settings go together");

    let errors = Errors::default();
    let (logs, subscriber) = logs_to(errors.clone(), options, Arc::clone(&clock));
    let _logged = tracing::subscriber::set_default(subscriber);
    let (clients, handle) = (manager.clients().clone(), manager.handle());
    let reloads = ReloadState::new(manager.metrics());
    let source = SettingsSource { sources, registry, extensions: Extensions::default(), start };
    let reloader = Reloader::new(source, &logs, clients, handle.clone(), reloads.clone(), clock);
    let leak = if std::env::var_os(LEAKS).is_some() { FOUND_BYTES_OF_A_RELOAD } else { 0 };
    let mut soak = Soak { path, sandbox, handle, reloader, reloads, leak };
    let (stop, mut running) = (Stop::default(), JoinSet::new());
    running.spawn(manager.run(stop.clone()));

    for round in 0..WARM_UP {
        soak.round(round).await;
    }
    let before = soak.settle().await;
    assert_eq!((before.informers, before.watches), (3, [1, 1, 1]));
    assert!(before.states.iter().all(|state| *state == ControllerState::Running), "{before:?}");
    let region = Region::new(ALLOCATOR);
    for round in WARM_UP..WARM_UP + RELOADS {
        soak.round(round).await;
    }
    let after = soak.settle().await;
    let held = region.change();
    assert_eq!(before, after);
    let grown = held.bytes_allocated.saturating_sub(held.bytes_deallocated);
    assert!(grown < MOST_BYTES_OF_A_RELOAD * RELOADS, "{grown} bytes in {RELOADS} reloads");

    stop.drain.cancel();
    let ended = running.join_next().await.expect("it runs").expect("it does not panic");
    ended.expect("it stops cleanly");
    let errors = errors.0.lock().expect("no writer panics");
    let unexpected: Vec<&str> =
        errors.lines().filter(|line| !line.contains("Cannot reload the configuration")).collect();
    assert!(unexpected.iter().all(|line| !line.starts_with('E')), "{unexpected:#?}");
}
