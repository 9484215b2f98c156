//! Loops without progress, and keys that are held back: what operators see of them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::{ObjectKey, PartialObjectMeta};
use kcm_framework::client::Payload;
use kcm_framework::{
    BoxError, Delete, Loops, Reconcile, ReconcileError, STALLED_AFTER, Session, Source, Stall, Steps, async_trait,
};

use crate::guarantees::support::{
    CONTROLLER, PARTS, SETS, Setup, Started, World, descriptor, key, part, sandbox, seconds, set, settle,
};

const NAME: &str = "a-controller";

/// The stall of the only loop of a controller.
fn stall(manager: &Started, controller: &str) -> Option<Stall> {
    manager.handle.controller(controller).unwrap().loops[0].stall.clone()
}

/// Number of keys that wait for their writes in the only loop of a controller, and seconds of the longest wait.
fn awaiting(manager: &Started, controller: &str) -> (usize, u64) {
    let held = manager.handle.controller(controller).unwrap().loops[0].held;
    (held.awaiting_writes, held.longest_wait.as_secs())
}

/// Checks that the loop of the controller is stalled when its key has made no progress for `least`, and not before.
async fn stalls_with(manager: &Started, key: &str, least: Duration) {
    tokio::time::sleep(least.saturating_sub(seconds(1))).await;
    assert_eq!(stall(manager, NAME), None);
    tokio::time::sleep(seconds(30)).await;
    let found = stall(manager, NAME).unwrap_or_else(|| panic!("{key} is no stall"));
    assert_eq!(found.key, key);
    assert!((least..least + seconds(40)).contains(&found.duration), "{found:?}");
    let problem = manager.handle.controller(NAME).unwrap().problem().unwrap();
    assert!(problem.contains(key), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn keys_that_wait_for_their_own_writes_are_counted_and_are_a_stall_after_two_minutes() {
    let world = World::start(|turn| turn.create_one_missing().boxed()).await;
    settle().await;
    assert_eq!(awaiting(&world.manager, CONTROLLER), (0, 0));
    world.sandbox.faults().hold_watches(&PARTS);
    world.create_set("a", 1);
    tokio::time::sleep(seconds(20)).await;
    world.create_set("b", 1);
    tokio::time::sleep(seconds(80)).await;
    let (count, longest) = awaiting(&world.manager, CONTROLLER);
    assert!(count == 2 && (99..=101).contains(&longest), "{count} keys, {longest} s");
    let labels = format!("controller=\"{CONTROLLER}\",name=\"sets\"");
    let counted = format!("controller_keys_awaiting_writes{{{labels}}} 2.0");
    assert!(world.manager.has_metric(&counted), "{counted} is not in {}", world.manager.metrics.encode());
    assert_eq!(stall(&world.manager, CONTROLLER), None);
    tokio::time::sleep(seconds(35)).await;
    let found = stall(&world.manager, CONTROLLER).expect("the first key waits for two minutes");
    assert_eq!(found.key, "default/a");
    world.sandbox.faults().release_watches(&PARTS);
    tokio::time::sleep(seconds(15)).await;
    assert_eq!((stall(&world.manager, CONTROLLER), awaiting(&world.manager, CONTROLLER)), (None, (0, 0)));
}

/// Deletes a part each time that it sees one.
async fn delete_parts(session: Arc<Session>, parts: Vec<Arc<PartialObjectMeta>>) -> Result<(), BoxError> {
    for part in parts {
        let metadata = &part.metadata;
        session.of(&PARTS).delete(&metadata.key, &metadata.uid, &Delete::default()).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn periodic_work_that_waits_for_its_writes_is_a_stall_after_two_minutes() {
    let sandbox = sandbox();
    let manager = Setup::on(&sandbox)
        .controller(descriptor(NAME), |context| {
            let mut control_loop = context.control_loop::<ObjectKey>("rounds");
            let parts = control_loop.reads_for::<PartialObjectMeta>(Source::of(PARTS));
            let rounds = control_loop.periodic(seconds(10), move |session| delete_parts(session, parts.list()).boxed());
            std::future::ready(Ok(Loops::new().with(rounds)))
        })
        .start();
    settle().await;
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    settle().await;
    sandbox.faults().hold_watches(&PARTS);
    tokio::time::sleep(seconds(10)).await;
    assert!(sandbox.list(&PARTS, None).is_empty(), "it is deleted");
    assert_eq!(awaiting(&manager, NAME), (1, 0), "the loop waits as a whole");
    stalls_with(&manager, "its own writes", STALLED_AFTER).await;
    sandbox.faults().release_watches(&PARTS);
    tokio::time::sleep(seconds(15)).await;
    assert_eq!(stall(&manager, NAME), None);
}

#[tokio::test(start_paused = true)]
async fn periodic_work_that_does_not_end_is_a_stall_after_three_periods_and_two_minutes() {
    let manager = Setup::on(&sandbox())
        .controller(descriptor(NAME), |_| async {
            Ok(Loops::new().periodic("hangs", seconds(60), || std::future::pending().boxed()))
        })
        .start();
    settle().await;
    stalls_with(&manager, "its next run", 3 * seconds(60) + STALLED_AFTER).await;
}

#[tokio::test(start_paused = true)]
async fn periodic_work_that_runs_is_no_stall() {
    let manager = Setup::on(&sandbox())
        .controller(descriptor(NAME), |_| async {
            let runs = Loops::new().periodic("runs", seconds(3600), || std::future::ready(Ok(())).boxed());
            Ok(runs)
        })
        .start();
    for _ in 0..100 {
        tokio::time::sleep(seconds(600)).await;
        assert_eq!(stall(&manager, NAME), None);
    }
}

/// A task with one step for each duration: the time from one step to the next is a minute.
fn in_steps(durations: Vec<Duration>) -> Started {
    Setup::on(&sandbox())
        .controller(descriptor(NAME), move |_| {
            let steps = Steps::default();
            let (of_task, durations) = (steps.clone(), durations.clone());
            let task = Loops::new().task("steps", move |cancel| {
                let (steps, durations) = (of_task.clone(), durations.clone());
                async move {
                    for (number, duration) in durations.into_iter().enumerate() {
                        let step = steps.begin(format!("step {number}"));
                        tokio::time::sleep(duration).await;
                        drop(step);
                        tokio::time::sleep(seconds(60)).await;
                    }
                    cancel.cancelled().await;
                    Ok(())
                }
                .boxed()
            });
            std::future::ready(Ok(task.in_steps(&steps)))
        })
        .start()
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_step_does_not_end_is_a_stall_after_two_minutes() {
    let manager = in_steps(vec![seconds(600)]);
    settle().await;
    stalls_with(&manager, "step 0", STALLED_AFTER).await;
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(stall(&manager, NAME), None, "it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_steps_end_or_that_waits_for_work_is_no_stall() {
    let manager = in_steps(vec![seconds(100); 20]);
    for _ in 0..1_000 {
        tokio::time::sleep(seconds(7)).await;
        assert_eq!(stall(&manager, NAME), None);
    }
}

/// A reconciler whose preparation always fails.
struct Unprepared;

#[async_trait]
impl Reconcile for Unprepared {
    async fn prepare(&self, _session: &Session) -> Result<(), ReconcileError> {
        Err(ReconcileError::terminal("as the test wants it"))
    }

    async fn reconcile(&self, _key: &ObjectKey, _session: &Session) -> Result<(), ReconcileError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_always_fails_is_a_stall_after_two_minutes() {
    let manager = Setup::on(&sandbox())
        .controller(descriptor(NAME), |context| {
            let mut control_loop = context.control_loop("sets");
            control_loop.primary_for::<PartialObjectMeta>(Source::of(SETS));
            std::future::ready(Ok(Loops::new().with(control_loop.reconcile(Unprepared))))
        })
        .start();
    settle().await;
    stalls_with(&manager, "its preparation", STALLED_AFTER).await;
}

/// Creates a part for each set, behind a barrier.
struct Creates;

#[async_trait]
impl Reconcile for Creates {
    async fn reconcile(&self, set: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let name = format!("{}-part", set.name());
        let object = part(&name, set.name());
        let created = session.of(&PARTS).create(&key(&name), Payload::json(&object)).await;
        created.map(drop).or_else(|error| if error.is_already_exists() { Ok(()) } else { Err(error.into()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_barrier_that_stays_closed_counts_as_a_key_and_is_a_stall_after_two_minutes() {
    let sandbox = sandbox();
    let manager = Setup::on(&sandbox)
        .controller(descriptor(NAME), |context| {
            let mut control_loop = context.control_loop("sets").barrier();
            control_loop.primary_for::<PartialObjectMeta>(Source::of(SETS));
            control_loop.reads_for::<PartialObjectMeta>(Source::of(PARTS));
            std::future::ready(Ok(Loops::new().with(control_loop.reconcile(Creates))))
        })
        .start();
    settle().await;
    sandbox.faults().hold_watches(&PARTS);
    sandbox.create(&SETS, set("a", 0)).unwrap();
    sandbox.create(&SETS, set("b", 0)).unwrap();
    settle().await;
    assert_eq!(sandbox.list(&PARTS, None).len(), 1, "the second key waits for the writes of the first");
    assert_eq!(awaiting(&manager, NAME), (1, 0), "the barrier");
    stalls_with(&manager, "its own writes", STALLED_AFTER).await;
    sandbox.faults().release_watches(&PARTS);
    tokio::time::sleep(seconds(15)).await;
    assert_eq!((stall(&manager, NAME), sandbox.list(&PARTS, None).len()), (None, 2));
}
