//! Controllers that are added and taken away while the manager runs.

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_api::views::PodVolumes;
use kcm_api::{Need, ObjectKey, PartialObjectMeta};
use kcm_config::gates::POD_DELETION_COST;
use kcm_config::{Effective, Loaded, Section, Setting, Sources, Table, generic};
use kcm_framework::{
    ControllerContext, ControllerDescriptor, ControllerState, GRACE, Loops, Reconcile, ReconcileError, Registry,
    Selection, Session, Source, Stage, async_trait,
};
use kcm_sandbox_apiserver::Sandbox;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{PARTS, SETS, Setup, Started, descriptor, part, sandbox, seconds, settle, until};

type Log = Arc<Mutex<Vec<String>>>;

const A: ControllerDescriptor = descriptor("a-controller");
const B: ControllerDescriptor = descriptor("b-controller");

/// Takes so long for each part.
struct Slow(Log);

#[async_trait]
impl Reconcile for Slow {
    async fn reconcile(&self, key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.0.lock().push(format!("begins {}", key.name()));
        tokio::time::sleep(seconds(2)).await;
        self.0.lock().push(format!("ends {}", key.name()));
        Ok(())
    }
}

/// A controller that reconciles parts, and reads sets too if `reads_sets`.
fn parts_controller(context: &ControllerContext, log: &Log, reads_sets: bool) -> Loops {
    let mut one = context.control_loop(context.controller());
    one.primary_for::<PartialObjectMeta>(Source::of(PARTS));
    if reads_sets {
        one.reads_for::<PartialObjectMeta>(Source::of(SETS));
    }
    Loops::new().with(one.reconcile(Slow(Arc::clone(log))))
}

struct World {
    manager: Started,
    sandbox: Sandbox,
    of_a: Log,
    of_b: Log,
}

impl World {
    /// Two controllers of parts, of which the first reads sets too.
    fn start(selected: &[&'static str]) -> Self {
        let sandbox = sandbox();
        let (of_a, of_b) = (Log::default(), Log::default());
        let (in_a, in_b) = (Arc::clone(&of_a), Arc::clone(&of_b));
        let manager = Setup::on(&sandbox)
            .controller(A, move |context| std::future::ready(Ok(parts_controller(&context, &in_a, true))))
            .controller(B, move |context| std::future::ready(Ok(parts_controller(&context, &in_b, false))))
            .select(selected)
            .start_interval(seconds(10))
            .start();
        Self { manager, sandbox, of_a, of_b }
    }

    fn select(&self, items: &[&str]) {
        let registry = Registry::of([A, B]).unwrap();
        self.manager.handle.select(Selection::parse(items.iter().copied(), &registry, &[]).unwrap());
    }

    fn states(&self) -> [ControllerState; 2] {
        ["a-controller", "b-controller"].map(|name| self.manager.state(name))
    }

    async fn runs(&self, controller: &str) {
        until("it runs", || self.manager.state(controller) == ControllerState::Running).await;
    }

    fn create_part(&self, name: &str) {
        self.sandbox.create(&PARTS, part(name, "a")).unwrap();
    }
}

fn disabled() -> ControllerState {
    ControllerState::Disabled("--controllers does not enable it".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_taken_away_drains_and_leaves_nothing_behind() {
    let world = World::start(&["*"]);
    world.runs("b-controller").await;
    world.create_part("p");
    settle().await;
    world.create_part("q");
    settle().await;
    let begun = Instant::now();
    world.select(&["*", "-a-controller"]);
    settle().await;
    assert_eq!(world.manager.state("a-controller"), ControllerState::Stopping);
    until("it is disabled", || world.manager.state("a-controller") == disabled()).await;
    assert!(begun.elapsed() < seconds(2), "the running reconcile ends, and no other begins");
    assert_eq!(*world.of_a.lock(), ["begins p", "ends p"]);

    let reads: Vec<_> = world.manager.handle.informers().into_iter().map(|informer| informer.resource).collect();
    assert_eq!(reads, [PARTS], "what the other controller uses");
    assert_eq!((world.sandbox.open_watches(&PARTS), world.sandbox.open_watches(&SETS)), (1, 0));
    world.create_part("r");
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(world.of_a.lock().len(), 2);
    assert_eq!(world.of_b.lock().len(), 6, "the other controller goes on");
    assert!(world.manager.has_metric("workqueue_depth{name=\"a-controller\"} 0"), "{}", world.manager.metrics.encode());
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_added_starts_as_at_the_start_of_the_manager() {
    let world = World::start(&["b-controller"]);
    world.create_part("p");
    world.runs("b-controller").await;
    assert_eq!(world.states(), [disabled(), ControllerState::Running]);
    assert_eq!(world.sandbox.open_watches(&SETS), 0);

    let added = Instant::now();
    world.select(&["*"]);
    settle().await;
    assert_eq!(world.states(), [ControllerState::Pending, ControllerState::Running]);
    world.runs("a-controller").await;
    let delay = added.elapsed();
    assert!((seconds(10)..seconds(21)).contains(&delay), "after the start interval, jittered: {delay:?}");
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(*world.of_a.lock(), ["begins p", "ends p"]);
    assert_eq!(*world.of_b.lock(), ["begins p", "ends p"]);
    assert_eq!((world.sandbox.open_watches(&PARTS), world.sandbox.open_watches(&SETS)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_taken_away_and_added_again_many_times_is_there_once() {
    let world = World::start(&["*"]);
    world.create_part("p");
    for _ in 0..20 {
        world.select(&["b-controller"]);
        until("it is disabled", || world.manager.state("a-controller") == disabled()).await;
        world.select(&["*"]);
        world.runs("a-controller").await;
    }
    tokio::time::sleep(seconds(10)).await;
    world.of_a.lock().clear();
    world.create_part("q");
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(*world.of_a.lock(), ["begins q", "ends q"]);
    assert_eq!((world.sandbox.open_watches(&PARTS), world.sandbox.open_watches(&SETS)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_does_not_drain_is_aborted_after_the_grace() {
    let sandbox = sandbox();
    let manager = Setup::on(&sandbox)
        .controller(A, |_| {
            let running = Loops::new().task("hangs", |_| std::future::pending().boxed());
            std::future::ready(Ok(running))
        })
        .start();
    settle().await;
    let begun = Instant::now();
    let registry = Registry::of([A]).unwrap();
    manager.handle.select(Selection::parse(["-a-controller"], &registry, &[]).unwrap());
    until("it is disabled", || manager.state("a-controller") == disabled()).await;
    assert!((GRACE..GRACE + seconds(1)).contains(&begun.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_needs_more_of_objects_than_the_caches_keep_is_not_started() {
    const VOLUMES: ControllerDescriptor = A.needs(&[Need::part::<PodVolumes>()]);
    let of_a = Log::default();
    let known = Arc::clone(&of_a);
    let manager = Setup::on(&sandbox())
        .controller(VOLUMES, move |_| {
            known.lock().push("initialized".to_owned());
            std::future::ready(Ok(Loops::new()))
        })
        .select(&["-a-controller"])
        .start();
    settle().await;
    assert_eq!(manager.state("a-controller"), disabled());
    let registry = Registry::of([VOLUMES]).unwrap();
    manager.handle.select(Selection::parse(["*"], &registry, &[]).unwrap());
    tokio::time::sleep(seconds(100)).await;
    let reason = "it reads parts of objects that the caches do not keep: restart the manager to enable it";
    assert_eq!(manager.state("a-controller"), ControllerState::Disabled(reason.to_owned()));
    assert!(of_a.lock().is_empty(), "it would see empty parts");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_added_during_the_start_and_cannot_be_started_does_not_block_the_start() {
    const LATE: ControllerDescriptor = descriptor("c-controller").needs(&[Need::part::<PodVolumes>()]);
    let slow = |_| async {
        tokio::time::sleep(seconds(5)).await;
        Ok(Loops::new())
    };
    let manager = Setup::on(&sandbox())
        .controller(A, slow)
        .controller(B, |_| std::future::ready(Ok(Loops::new())))
        .controller(LATE, |_| std::future::ready(Ok(Loops::new())))
        .select(&["*", "-c-controller"])
        .start();
    until("the first controller initializes", || manager.state("a-controller") == ControllerState::Initializing).await;
    // Each controller is asked for when its place in the order comes, so before the third.
    let registry = Registry::of([A, B, LATE]).unwrap();
    manager.handle.select(Selection::parse(["*"], &registry, &[]).unwrap());
    let started = tokio::time::timeout(seconds(6), manager.handle.reaches(Stage::Loops)).await;
    assert!(started.is_ok(), "the start waits for a controller that is not started");
    until("the others run", || manager.state("b-controller") == ControllerState::Running).await;
    let reason = "it reads parts of objects that the caches do not keep: restart the manager to enable it";
    assert_eq!(manager.state("c-controller"), ControllerState::Disabled(reason.to_owned()));
}

const SECTION: Section = Section::new("Test", "TestController");
const LIMIT_OF_A: Setting<i32> = SECTION.int32("limit-of-a", "LimitOfA", 1).help("Limit of the controller a.");
const LIMIT_OF_B: Setting<i32> = SECTION.int32("limit-of-b", "LimitOfB", 1).help("Limit of the controller b.");
const WITH_LIMIT: [ControllerDescriptor; 2] =
    [A.settings(const { &[LIMIT_OF_A.row()] }), B.settings(const { &[LIMIT_OF_B.row()] })];

/// A manager of which the first controller reads its own limit, and the second controller both.
struct Limits {
    manager: Started,
    read: Log,
}

impl Limits {
    fn start(selected: &[&'static str]) -> Self {
        let read = Log::default();
        let (in_a, in_b) = (Arc::clone(&read), Arc::clone(&read));
        let [a, b] = WITH_LIMIT;
        let of_a = move |context: ControllerContext| {
            let read = context.get(&LIMIT_OF_A).map(|limit| in_a.lock().push(format!("a: {limit}")));
            std::future::ready(read.map(|()| Loops::new()))
        };
        let of_b = move |context: ControllerContext| {
            let read = context.get(&LIMIT_OF_A).and_then(|of_a| {
                in_b.lock().push(format!("b: {of_a} and {}", context.get(&LIMIT_OF_B)?));
                Ok(Loops::new())
            });
            std::future::ready(read)
        };
        let manager = Setup::on(&sandbox()).controller(a, of_a).controller(b, of_b).select(selected).start();
        Self { manager, read }
    }

    fn reload(&self, selected: &[&str], arguments: &[&str]) {
        self.manager.handle.reload(limits(arguments));
        let registry = Registry::of(WITH_LIMIT).unwrap();
        self.manager.handle.select(Selection::parse(selected.iter().copied(), &registry, &[]).unwrap());
    }

    fn read(&self) -> Vec<String> {
        std::mem::take(&mut self.read.lock())
    }
}

fn limits(arguments: &[&str]) -> Effective {
    let rows = WITH_LIMIT.iter().flat_map(|descriptor| descriptor.settings.iter().copied());
    let table = Table::new(generic::rows().chain(rows)).unwrap();
    match table.load(&Sources::default().arguments(arguments.iter().copied())) {
        Ok(Loaded::Settings(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_a_reload_adds_reads_its_own_settings_of_that_reload() {
    let world = Limits::start(&["-a-controller", "-b-controller"]);
    settle().await;
    world.reload(&["a-controller"], &["--limit-of-a=2"]);
    until("it runs", || world.manager.state("a-controller") == ControllerState::Running).await;
    assert_eq!(world.read(), ["a: 2"]);
    let needs_restart = |setting, limit: &str| world.manager.handle.needs_restart(setting, &limits(&[limit]));
    assert!(!needs_restart("limit-of-a", "--limit-of-a=2"), "this value is in use");
    assert!(needs_restart("limit-of-a", "--limit-of-a=1"), "the value of the start is no longer in use");
    assert!(needs_restart("min-resync-period", "--min-resync-period=1h"), "the manager has the value of the start");

    // A controller keeps its settings for as long as it is enabled.
    world.reload(&["a-controller"], &["--limit-of-a=3"]);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(world.read(), Vec::<String>::new());
    world.reload(&["-a-controller"], &["--limit-of-a=3"]);
    until("it is disabled", || world.manager.state("a-controller") == disabled()).await;
    world.reload(&["a-controller"], &["--limit-of-a=3"]);
    until("it runs", || world.manager.state("a-controller") == ControllerState::Running).await;
    assert_eq!(world.read(), ["a: 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_a_reload_adds_is_not_started_if_it_reads_a_changed_setting_of_another() {
    let world = Limits::start(&["a-controller"]);
    until("it runs", || world.manager.state("a-controller") == ControllerState::Running).await;
    assert_eq!(world.read(), ["a: 1"]);
    world.reload(&["*"], &["--limit-of-a=2", "--limit-of-b=2"]);
    tokio::time::sleep(seconds(60)).await;
    let reason = "it reads --limit-of-a, changed since the start: restart the manager to enable it";
    assert_eq!(world.manager.state("b-controller"), ControllerState::Disabled(reason.to_owned()));
    assert_eq!(world.read(), Vec::<String>::new(), "neither value is used");

    world.reload(&["*"], &["--limit-of-b=3"]);
    until("it runs", || world.manager.state("b-controller") == ControllerState::Running).await;
    assert_eq!(world.read(), ["b: 1 and 3"], "the other setting is as at the start again");
    let needs_restart = world.manager.handle.needs_restart("limit-of-a", &limits(&["--limit-of-a=2"]));
    assert!(needs_restart, "both controllers have the value of the start");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_a_reload_adds_is_not_started_if_it_depends_on_a_changed_feature_gate() {
    const REQUIRES: ControllerDescriptor = B.required_gates(&[POD_DELETION_COST]);
    let manager = Setup::on(&sandbox())
        .controller(A, |context| {
            let is_on = context.gate(&POD_DELETION_COST);
            std::future::ready(if is_on { Ok(Loops::new()) } else { Err("the gate is off".into()) })
        })
        .controller(REQUIRES, |_| std::future::ready(Ok(Loops::new())))
        .select(&["-a-controller", "-b-controller"])
        .start();
    settle().await;
    let registry = Registry::of([A, REQUIRES]).unwrap();
    let select = |items: [&str; 2]| {
        manager.handle.select(Selection::parse(items, &registry, &[]).unwrap());
    };
    manager.handle.reload(limits(&["--feature-gates=PodDeletionCost=false"]));
    select(["a-controller", "b-controller"]);
    tokio::time::sleep(seconds(60)).await;
    let reason = "it reads the feature gate PodDeletionCost, changed since the start: restart the manager to enable it";
    let states = || ["a-controller", "b-controller"].map(|name| manager.state(name));
    assert_eq!(states(), [(); 2].map(|()| ControllerState::Disabled(reason.to_owned())));
    manager.handle.reload(limits(&[]));
    until("both run", || states() == [ControllerState::Running, ControllerState::Running]).await;
}
