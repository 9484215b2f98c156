//! The states of controllers and tasks in the handle of a manager.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kcm_api::PartialObjectMeta;
use kcm_config::gates::POD_DELETION_COST;
use kcm_framework::{ControllerContext, ControllerState, LoopState, Loops};
use kcm_informers::ListOptions;
use kcm_sandbox_apiserver::{Fault, Status};
use kube::client::Body;

use crate::guarantees::support::{
    Initialized, PARTS, SETS, Setup, Started, World, descriptor, sandbox, seconds, settle, until,
};

/// A controller with one task that runs until it is stopped, and reads the parts.
fn reading_parts(context: &ControllerContext) -> Loops {
    let parts = context.informers().informer_for::<PartialObjectMeta>(PARTS, ListOptions::default());
    let running = Loops::new().task("reads", |cancel| {
        Box::pin(async move {
            cancel.cancelled().await;
            Ok(())
        })
    });
    running.after_sync_of([parts.cache()])
}

fn state_of_loop(manager: &Started, controller: &str) -> LoopState {
    manager.handle.controller(controller).unwrap().loops[0].state
}

#[tokio::test(start_paused = true)]
async fn the_handle_shows_the_state_of_each_controller() {
    let sandbox = sandbox();
    let forbidden = Fault::on_any().resource(PARTS).fail(Status::forbidden(&PARTS, "", "User \"kcm\" cannot list"));
    let forbidden = sandbox.faults().inject(forbidden);
    let mut manager = Setup::on(&sandbox)
        .controller(descriptor("deselected-controller"), |_| async { Initialized::Ok(Loops::new()) })
        .controller(descriptor("failing-controller"), |_| async { Initialized::Err("as the test wants it".into()) })
        .controller(descriptor("gated-controller").required_gates(&[POD_DELETION_COST]), |_| async {
            Ok(Loops::none("as the test wants it"))
        })
        .controller(descriptor("hanging-controller"), |_| std::future::pending::<Initialized>())
        .controller(descriptor("running-controller"), |_| async { Ok(Loops::new()) })
        .controller(descriptor("skipped-controller"), |_| async { Ok(Loops::none("as the test wants it")) })
        .controller(descriptor("waiting-controller"), |context| async move { Ok(reading_parts(&context)) })
        .select(&["*", "-deselected-controller"])
        .argument("--feature-gates=PodDeletionCost=false")
        .start();
    assert!(manager.handle.controllers().iter().all(|controller| controller.state == ControllerState::Stopped));
    tokio::time::sleep(seconds(20)).await;

    let states: Vec<_> = manager.handle.controllers().into_iter().map(|one| (one.name, one.state)).collect();
    assert_eq!(
        states,
        [
            ("deselected-controller", ControllerState::Disabled("--controllers does not enable it".to_owned())),
            ("failing-controller", ControllerState::Restarting),
            ("gated-controller", ControllerState::Disabled("the feature gate PodDeletionCost is off".to_owned())),
            ("hanging-controller", ControllerState::Initializing),
            ("running-controller", ControllerState::Running),
            ("skipped-controller", ControllerState::Skipped),
            ("waiting-controller", ControllerState::WaitingForCaches),
        ]
    );
    let failing = manager.handle.controller("failing-controller").unwrap();
    assert_eq!((failing.failures, failing.last_error.as_deref()), (5, Some("as the test wants it")));
    assert_eq!(manager.handle.controller("hanging-controller").unwrap().state_for, seconds(20));
    let waiting = manager.handle.controller("waiting-controller").unwrap();
    assert_eq!((waiting.loops[0].name, waiting.loops[0].state), ("reads", LoopState::WaitingForCaches));
    assert_eq!(waiting.loops[0].unsynced, [PARTS]);
    assert_eq!(manager.handle.informers().len(), 1);
    assert!(manager.handle.controller("no-controller").is_none());

    forbidden.remove();
    until("it runs", || manager.state("waiting-controller") == ControllerState::Running).await;
    assert_eq!(state_of_loop(&manager, "waiting-controller"), LoopState::Running);

    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
    let gated = "gated-controller";
    let stopped = manager.handle.controllers().into_iter().filter(|controller| controller.name != gated);
    assert!(stopped.into_iter().all(|controller| controller.state == ControllerState::Stopped));
    assert!(manager.handle.informers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_handle_shows_how_often_each_loop_has_failed_and_why() {
    let runs = Arc::new(AtomicUsize::new(0));
    let manager = Setup::on(&sandbox())
        .controller(descriptor("a-controller"), move |_| {
            let runs = Arc::clone(&runs);
            let running = Loops::new().task("ends", |_| Box::pin(async { Ok(()) })).task("fails", move |cancel| {
                let number = runs.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move {
                    assert!(number != 0, "as the test wants it");
                    if number == 1 {
                        return Err("that too".into());
                    }
                    cancel.cancelled().await;
                    Ok(())
                })
            });
            async move { Initialized::Ok(running) }
        })
        .start();
    settle().await;
    assert_eq!(manager.state("a-controller"), ControllerState::Restarting);
    let status = manager.handle.controller("a-controller").unwrap();
    assert_eq!(status.last_error.as_deref(), Some("panicked: as the test wants it"));
    tokio::time::sleep(seconds(10)).await;

    let status = manager.handle.controller("a-controller").unwrap();
    assert_eq!((status.state, status.failures), (ControllerState::Running, 2));
    let loops: Vec<_> =
        status.loops.into_iter().map(|one| (one.name, one.state, one.failures, one.last_error)).collect();
    assert_eq!(
        loops,
        [("ends", LoopState::Ended, 0, None), ("fails", LoopState::Running, 2, Some("that too".to_owned())),]
    );
}

#[tokio::test(start_paused = true)]
async fn the_health_check_and_the_debug_page_of_a_controller_are_behind_the_handle() {
    let mut manager = Setup::on(&sandbox())
        .controller(descriptor("plain-controller"), |_| async { Ok(Loops::new()) })
        .controller(descriptor("sick-controller"), |_| async {
            let running = Loops::new().health(|| Err("it has no graph".to_owned()));
            Ok(running.debug(|request| http::Response::new(format!("the page {}", request.uri().path()))))
        })
        .start();
    settle().await;
    let request = http::Request::get("/graph").body(()).unwrap();
    assert_eq!(manager.handle.health("sick-controller"), Some(Err("it has no graph".to_owned())));
    assert_eq!(manager.handle.debug("sick-controller", &request).unwrap().body(), "the page /graph");
    assert_eq!(manager.handle.health("plain-controller"), Some(Ok(())));
    assert!(manager.handle.debug("plain-controller", &request).is_none());
    assert_eq!(manager.handle.health("no-controller"), None);

    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
    assert!(manager.handle.debug("sick-controller", &request).is_none(), "they end with what made them");
    assert_eq!(manager.handle.health("sick-controller"), Some(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_task_of_the_manager_is_counted_and_the_task_goes_on() {
    let sandbox = sandbox();
    let (client, asked) = (sandbox.client(), Arc::new(AtomicUsize::new(0)));
    let fragile = tower::service_fn(move |request: http::Request<Body>| {
        let is_discovery = request.uri().path() == "/apis";
        let panics = is_discovery && asked.fetch_add(1, Ordering::Relaxed) == 1;
        let client = client.clone();
        async move {
            assert!(!panics, "as the test wants it");
            Ok::<_, Infallible>(client.send(request).await.unwrap())
        }
    });
    let later = kcm_api::Resource::namespaced("example.com", "v1", "laters", "Later");
    let kind = later.clone();
    let mut manager = Setup::on(&sandbox)
        .client(kube::Client::new(fragile, "default"))
        .controller(descriptor("a-controller"), move |context| {
            let is_served = context.discovery().is_available(&kind);
            async move { Initialized::Ok(if is_served { Loops::new() } else { Loops::none("not served") }) }
        })
        .start();
    tokio::time::sleep(seconds(40)).await;
    let [discovery] = &manager.handle.task_panics()[..] else { panic!("one task has panicked") };
    assert_eq!((discovery.task, discovery.count, &*discovery.last), ("discovery", 1, "as the test wants it"));
    assert!(manager.has_metric("manager_task_panics_total{task=\"discovery\"} 1"), "{}", manager.metrics.encode());

    sandbox.register(later);
    until("it is discovered", || manager.state("a-controller") == ControllerState::Running).await;
    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_drains_is_shown_as_stopping() {
    let mut world = World::start(|_| Box::pin(std::future::pending())).await;
    world.add("a");
    settle().await;
    let begun = tokio::time::Instant::now();
    let (handle, mut stopping) = (world.manager.handle.clone(), tokio::task::JoinSet::new());
    stopping.spawn(async move { handle.stop_loops(seconds(3)).await });
    settle().await;
    assert_eq!(world.manager.state(crate::guarantees::support::CONTROLLER), ControllerState::Stopping);
    assert_eq!(world.sandbox.open_watches(&SETS), 1);
    stopping.join_next().await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), seconds(3));
    assert_eq!(world.manager.state(crate::guarantees::support::CONTROLLER), ControllerState::Initialized);
    world.manager.stop.drain.cancel();
    world.manager.ended().await.unwrap();
}
