//! The number of workers of a loop, which follows a setting while the loop runs.

use std::sync::Arc;
use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta};
use kcm_config::{Effective, Loaded, Section, Setting, Sources, Table, Workers, generic};
use kcm_framework::{ControllerDescriptor, LoopState, Loops, Reconcile, ReconcileError, Session, Source, async_trait};
use kcm_sandbox_apiserver::Sandbox;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{PARTS, Setup, Started, descriptor, part, sandbox, seconds, settle};

const SECTION: Section = Section::new("Test", "Test");
const SYNCS: Setting<Workers> = SECTION.workers("concurrent-part-syncs", "PartSyncs", "parts", 2);
const UNDECLARED: Setting<Workers> = SECTION.workers("no-setting", "NoSetting", "parts", 2);

const CONTROLLER: ControllerDescriptor = descriptor("a-controller").settings(const { &[SYNCS.row()] });

/// Duration of a reconcile.
const WORK: Duration = seconds(10);

/// The settings of a table with the rows of the controller.
fn settings(arguments: &[&str]) -> Effective {
    let table = Table::new(generic::rows().chain([SYNCS.row()])).unwrap();
    match table.load(&Sources::default().arguments(arguments.iter().copied())) {
        Ok(Loaded::Settings(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Counts {
    working: usize,
    finished: usize,
}

/// Counts the keys that are processing; each takes [`WORK`].
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Counts>>);

#[async_trait]
impl Reconcile for Counter {
    async fn reconcile(&self, _key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        self.0.lock().working += 1;
        tokio::time::sleep(WORK).await;
        let mut counts = self.0.lock();
        counts.working -= 1;
        counts.finished += 1;
        Ok(())
    }
}

struct World {
    manager: Started,
    counter: Counter,
}

impl World {
    /// A loop with the number of workers of `setting`, and many keys.
    async fn start(setting: &'static Setting<Workers>) -> Self {
        let sandbox: Sandbox = sandbox();
        let counter = Counter::default();
        let reconciler = counter.clone();
        let manager = Setup::on(&sandbox)
            .controller(CONTROLLER, move |context| {
                let mut described = context.control_loop("a-loop").workers(setting);
                described.primary_for::<PartialObjectMeta>(Source::of(PARTS));
                let described = described.reconcile(reconciler.clone());
                std::future::ready(Ok(Loops::new().with(described)))
            })
            .start();
        settle().await;
        for number in 0..100 {
            sandbox.create(&PARTS, part(&format!("p-{number}"), "a")).unwrap();
        }
        settle().await;
        Self { manager, counter }
    }

    async fn reload(&self, workers: usize) {
        self.manager.handle.reload(settings(&[&format!("--concurrent-part-syncs={workers}")]));
        settle().await;
    }

    fn working(&self) -> usize {
        self.counter.0.lock().working
    }

    fn finished(&self) -> usize {
        self.counter.0.lock().finished
    }
}

#[tokio::test(start_paused = true)]
async fn more_workers_start_at_once() {
    let world = World::start(&SYNCS).await;
    assert_eq!(world.working(), 2);
    let reloaded = Instant::now();
    world.reload(7).await;
    assert_eq!((world.working(), world.finished()), (7, 0));
    assert!(reloaded.elapsed() < seconds(1));
}

#[tokio::test(start_paused = true)]
async fn surplus_workers_end_after_the_key_that_they_process() {
    let world = World::start(&SYNCS).await;
    world.reload(6).await;
    world.reload(1).await;
    assert_eq!((world.working(), world.finished()), (6, 0), "no key is aborted");
    tokio::time::sleep(WORK).await;
    assert_eq!((world.working(), world.finished()), (1, 6));
    tokio::time::sleep(3 * WORK).await;
    assert_eq!((world.working(), world.finished()), (1, 9));
}

#[tokio::test(start_paused = true)]
async fn a_number_that_returns_before_surplus_workers_end_keeps_it() {
    let world = World::start(&SYNCS).await;
    for number in [6, 1, 6, 2, 6] {
        world.reload(number).await;
        assert_eq!(world.working(), 6, "never more, and busy workers count");
    }
    for _ in 0..5 {
        tokio::time::sleep(WORK).await;
        assert_eq!(world.working(), 6);
    }
    // All keys are processed, by however many.
    for number in [3, 9, 1, 4].into_iter().cycle().take(40) {
        world.reload(number).await;
        tokio::time::sleep(WORK).await;
    }
    assert_eq!((world.working(), world.finished()), (0, 100));
}

#[tokio::test(start_paused = true)]
async fn the_loop_stops_whatever_its_number_of_workers_was() {
    let mut world = World::start(&SYNCS).await;
    world.reload(6).await;
    world.reload(1).await;
    world.manager.stop.drain.cancel();
    let begun = Instant::now();
    world.manager.ended().await.unwrap();
    assert_eq!((world.working(), world.finished()), (0, 6));
    assert!(begun.elapsed() <= WORK);
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_no_descriptor_declares_gives_no_number_of_workers() {
    let world = World::start(&UNDECLARED).await;
    let controller = world.manager.handle.controller("a-controller").unwrap();
    assert_eq!((controller.loops[0].state, world.working()), (LoopState::Restarting, 0));
    let error = controller.loops[0].last_error.clone().unwrap_or_default();
    assert!(error.contains("takes its number of workers from --no-setting"), "{error}");
}
