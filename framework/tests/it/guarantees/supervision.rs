//! Loops that stall, failures that end the manager, and how long stopping takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use kcm_framework::{ControllerState, Loops, ManagerError, STALLED_AFTER, Stall};
use kcm_sandbox_apiserver::Sandbox;
use tokio::time::Instant;

use crate::guarantees::support::{
    CONTROLLER, Initialized, Options, Setup, Started, World, descriptor, sandbox, seconds, settle, until,
};

/// The stall of the only loop of the controller of sets.
fn stall(world: &World) -> Option<Stall> {
    world.manager.handle.controller(CONTROLLER).unwrap().loops[0].stall.clone()
}

/// A world whose key `a` is processed for as long as the flag is set.
async fn hanging() -> (World, Arc<AtomicBool>) {
    let hangs = Arc::new(AtomicBool::new(true));
    let while_hanging = Arc::clone(&hangs);
    let world = World::start(move |turn| {
        let hangs = Arc::clone(&while_hanging);
        async move {
            while turn.key.name() == "a" && hangs.load(Ordering::Relaxed) {
                tokio::time::sleep(seconds(1)).await;
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    (world, hangs)
}

fn stalled_seconds(world: &World) -> f64 {
    let metrics = world.manager.metrics.encode();
    let sample = metrics.lines().find(|line| line.starts_with("controller_loop_stalled_seconds{")).unwrap();
    sample.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_makes_no_progress_while_it_has_work_is_stalled() {
    let (world, hangs) = hanging().await;
    world.add("a");
    for _ in 0..11 {
        tokio::time::sleep(seconds(10)).await;
        world.add("b");
        assert_eq!(stall(&world), None);
    }
    tokio::time::sleep(seconds(20)).await;
    let found = stall(&world).expect("one key hangs, although others do not");
    assert_eq!(found.key, "default/a");
    assert!((STALLED_AFTER..STALLED_AFTER + seconds(30)).contains(&found.duration), "{found:?}");
    assert!(stalled_seconds(&world) >= STALLED_AFTER.as_secs_f64());
    let problem = world.manager.handle.controller(CONTROLLER).unwrap().problem().unwrap();
    assert!(problem.contains("has made no progress with default/a for 1"), "{problem}");

    hangs.store(false, Ordering::Relaxed);
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(stall(&world), None);
    assert!(stalled_seconds(&world).abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn a_loop_without_keys_and_one_that_waits_for_the_api_server_are_not_stalled() {
    let (world, _hangs) = hanging().await;
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(stall(&world), None);
    world.sandbox.faults().stop_api_server();
    world.add("a");
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(stall(&world), None);
    world.sandbox.faults().end_outage();
    tokio::time::sleep(STALLED_AFTER.saturating_sub(seconds(15))).await;
    assert_eq!(stall(&world), None, "time in an outage does not count");
    tokio::time::sleep(seconds(45)).await;
    assert!(stall(&world).is_some());
}

/// A manager that ends when a controller fails, with a failing and a working controller.
fn fragile(sandbox: &Sandbox, init: impl Fn() -> Initialized + Send + Sync + 'static) -> Started {
    Setup::on(sandbox)
        .controller(descriptor("a-controller"), |_| async { Ok(Loops::new()) })
        .controller(descriptor("fragile-controller"), move |_| std::future::ready(init()))
        .ends_on_failure()
        .start()
}

async fn failure(mut manager: Started) -> (&'static str, String, String) {
    match manager.ended().await {
        Err(ManagerError::ControllerFailed { controller, what, reason }) => (controller, what, reason),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_controller_ends_the_manager_where_the_host_wants_that() {
    let failed = failure(fragile(&sandbox(), || Err("no token".into()))).await;
    assert_eq!(failed, ("fragile-controller", "its initialization".to_owned(), "no token".to_owned()));

    let ends = || Loops::new().task("ends", |_| Box::pin(async { Err("no lease".into()) }));
    let failed = failure(fragile(&sandbox(), move || Ok(ends()))).await;
    assert_eq!(failed, ("fragile-controller", "ends".to_owned(), "no lease".to_owned()));

    let options = Options { ends_on_failure: true, ..Options::default() };
    let world = World::with(options, &sandbox(), |_| async { panic!("as the test wants it") }.boxed()).await;
    world.add("a");
    let failed = failure(world.manager).await;
    assert_eq!(failed, (CONTROLLER, "the reconcile of default/a".to_owned(), "as the test wants it".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_controller_does_not_end_the_manager_otherwise() {
    let world = World::start(|_| async { panic!("as the test wants it") }.boxed()).await;
    world.add("a");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(world.manager.state(CONTROLLER), ControllerState::Running);
    assert!(world.visits().len() > 3);
}

#[tokio::test(start_paused = true)]
async fn metrics_show_the_state_and_the_failures_of_each_controller() {
    let manager = Setup::on(&sandbox())
        .controller(descriptor("failing-controller"), |_| async { Initialized::Err("as the test wants it".into()) })
        .controller(descriptor("hanging-controller"), |_| std::future::pending::<Initialized>())
        .controller(descriptor("running-controller"), |_| async { Ok(Loops::new()) })
        .start();
    tokio::time::sleep(seconds(20)).await;
    for line in [
        "controller_state{controller=\"failing-controller\",state=\"restarting\"} 1",
        "controller_state{controller=\"hanging-controller\",state=\"initializing\"} 1",
        "controller_state{controller=\"running-controller\",state=\"running\"} 1",
        "controller_failures_total{controller=\"running-controller\"} 0",
    ] {
        assert!(manager.has_metric(line), "{line} is not in {}", manager.metrics.encode());
    }
    let status = manager.handle.controller("failing-controller").unwrap();
    let failures = format!("controller_failures_total{{controller=\"failing-controller\"}} {}", status.failures);
    assert!(manager.has_metric(&failures), "{}", manager.metrics.encode());
    let hanging = manager.handle.controller("hanging-controller").unwrap();
    assert_eq!(hanging.problem().as_deref(), Some("its initialization has not ended for 20 s"));
}

#[tokio::test(start_paused = true)]
async fn loops_of_some_controllers_stop_and_start_again_while_others_run() {
    let task = |_| async {
        let until_stopped = Loops::new().task("waits", |cancel| {
            Box::pin(async move {
                cancel.cancelled().await;
                Ok(())
            })
        });
        Initialized::Ok(until_stopped)
    };
    let manager = Setup::on(&sandbox())
        .controller(descriptor("a-controller"), task)
        .controller(descriptor("b-controller"), task)
        .start();
    settle().await;
    let states = || ["a-controller", "b-controller"].map(|controller| manager.state(controller));
    assert_eq!(states(), [ControllerState::Running, ControllerState::Running]);
    manager.handle.stop_loops_of(|controller| controller == "b-controller", seconds(10)).await;
    assert_eq!(states(), [ControllerState::Running, ControllerState::Initialized]);
    manager.handle.stop_loops(seconds(10)).await;
    manager.handle.start_loops_of(|controller| controller == "b-controller");
    until("b runs", || manager.state("b-controller") == ControllerState::Running).await;
    assert_eq!(states(), [ControllerState::Initialized, ControllerState::Running]);
    manager.handle.start_loops();
    until("a runs", || manager.state("a-controller") == ControllerState::Running).await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_stops_gives_its_loops_the_grace_of_its_host() {
    let hangs = Loops::new;
    let mut manager = Setup::on(&sandbox())
        .controller(descriptor("a-controller"), move |_| async move {
            Initialized::Ok(hangs().task("hangs", |_| Box::pin(std::future::pending())))
        })
        .grace(seconds(3))
        .start();
    until("it runs", || manager.state("a-controller") == ControllerState::Running).await;
    let begun = Instant::now();
    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
    assert_eq!(begun.elapsed(), seconds(3));
}
