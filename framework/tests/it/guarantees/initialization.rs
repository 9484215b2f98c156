//! The time at which controllers are initialized, and the effect of a controller that cannot be initialized on others.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use kcm_api::PartialObjectMeta;
use kcm_framework::{ControllerContext, ControllerState, INIT_PATIENCE, LoopState, Loops};
use kcm_informers::{HandlerOptions, ListOptions};
use kcm_sandbox_apiserver::Sandbox;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{Initialized, PARTS, SETS, Setup, descriptor, part, sandbox, seconds, settle, until};

/// Events and their times.
type Log = Arc<Mutex<Vec<(String, Instant)>>>;

fn note(log: &Log, what: impl Into<String>) {
    log.lock().push((what.into(), Instant::now()));
}

fn names(log: &Log) -> Vec<String> {
    log.lock().iter().map(|(what, _)| what.clone()).collect()
}

/// A loop that notes when it begins and ends.
fn noting(log: &Log) -> Loops {
    let log = Arc::clone(log);
    Loops::new().task("notes", move |cancel| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            note(&log, "runs");
            cancel.cancelled().await;
            note(&log, "drained");
            Ok(())
        })
    })
}

#[tokio::test(start_paused = true)]
async fn an_init_func_that_hangs_costs_itself_only() {
    let log = Log::default();
    let (of_a, of_b) = (Arc::clone(&log), Arc::clone(&log));
    let manager = Setup::on(&sandbox())
        .controller(descriptor("a-controller"), move |_| {
            let log = Arc::clone(&of_a);
            async move {
                note(&log, "a begins");
                tokio::time::sleep(seconds(60)).await;
                Ok(noting(&log))
            }
        })
        .controller(descriptor("b-controller"), move |_| {
            let log = Arc::clone(&of_b);
            async move {
                note(&log, "b begins");
                let running = Loops::new().task("b", move |_| {
                    note(&log, "b runs");
                    Box::pin(async { Ok(()) })
                });
                Ok(running)
            }
        })
        .start();
    tokio::time::sleep(seconds(59)).await;
    assert_eq!(manager.state("a-controller"), ControllerState::Initializing);
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(manager.state("a-controller"), ControllerState::Running);
    let times: Vec<_> = log.lock().iter().map(|(what, at)| (what.clone(), *at - manager.since)).collect();
    let expected =
        [("a begins", seconds(0)), ("b begins", INIT_PATIENCE), ("b runs", INIT_PATIENCE), ("runs", seconds(60))];
    assert_eq!(times, expected.map(|(what, at)| (what.to_owned(), at)), "it goes on in the background, once");
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_resources_are_not_served_is_initialized_when_they_are() {
    let sandbox = sandbox();
    sandbox.unregister(&PARTS);
    let log = Log::default();
    let known = Arc::clone(&log);
    let manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let log = Arc::clone(&log);
            async move {
                note(&log, "asked");
                let is_served = context.discovery().is_available(&PARTS);
                Ok(if is_served { noting(&log) } else { Loops::none("no parts") })
            }
        })
        .start();
    tokio::time::sleep(seconds(300)).await;
    assert_eq!(names(&known), ["asked"], "it is asked again when something changes");
    assert_eq!(manager.state("a-controller"), ControllerState::Skipped);
    sandbox.register(PARTS);
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(names(&known), ["asked", "asked", "runs"]);
}

/// A controller that logs its changes of parts, and reads sets if `reads_sets`.
fn parts_controller(context: &ControllerContext, log: &Log, reads_sets: bool) -> Loops {
    let informers = context.informers();
    let parts = informers.informer_for::<PartialObjectMeta>(PARTS, ListOptions::default());
    let of_handler = Arc::clone(log);
    parts.add_event_handler(HandlerOptions::named("parts"), move |change, _| {
        note(&of_handler, format!("sees {}", change.key().name()));
    });
    let mut caches = vec![parts.cache()];
    if reads_sets {
        caches.push(informers.informer_for::<PartialObjectMeta>(SETS, ListOptions::default()).cache());
    }
    noting(log).after_sync_of(caches)
}

#[tokio::test(start_paused = true)]
async fn a_controller_stops_while_a_resource_that_it_reads_is_not_served() {
    let sandbox = sandbox();
    let (log, other) = (Log::default(), Log::default());
    let (of_a, of_b) = (Arc::clone(&log), Arc::clone(&other));
    let manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let log = Arc::clone(&of_a);
            async move {
                let is_served = context.discovery().is_available(&SETS);
                Ok(if is_served { parts_controller(&context, &log, true) } else { Loops::none("no sets") })
            }
        })
        .controller(descriptor("b-controller"), move |context| {
            let log = Arc::clone(&of_b);
            async move { Ok(parts_controller(&context, &log, false)) }
        })
        .start();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(names(&log), ["runs"]);

    sandbox.unregister(&SETS);
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(names(&log), ["runs", "drained"]);
    assert_eq!(manager.state("a-controller"), ControllerState::Skipped);
    assert_eq!(manager.handle.informers().len(), 1, "only what the other controller uses");
    assert_eq!((sandbox.open_watches(&SETS), sandbox.open_watches(&PARTS)), (0, 1));
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    settle().await;
    assert_eq!(names(&log), ["runs", "drained"], "its event handlers have ended");
    assert_eq!(names(&other), ["runs", "sees p"]);

    sandbox.register(SETS);
    tokio::time::sleep(seconds(31)).await;
    assert_eq!(names(&log), ["runs", "drained", "sees p", "runs"]);
    assert_eq!(manager.state("b-controller"), ControllerState::Running);
    assert_eq!((sandbox.open_watches(&SETS), sandbox.open_watches(&PARTS)), (1, 1));
}

/// A client that gets these bodies instead of the sandbox's discovery, by path.
fn client_with_discovery(sandbox: &Sandbox, bodies: &Arc<Mutex<BTreeMap<&'static str, &'static str>>>) -> kube::Client {
    let (inner, bodies) = (sandbox.client(), Arc::clone(bodies));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, body) = (inner.clone(), bodies.lock().get(request.uri().path()).copied());
        async move {
            match body {
                Some(body) => Ok(Response::new(Body::from(body.as_bytes().to_vec()))),
                None => inner.send(request).await,
            }
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn discovery_that_lacks_resources_for_a_moment_stops_no_controller() {
    const EMPTY: &str = r#"{"kind":"APIGroupDiscoveryList","items":[]}"#;
    const NO_GROUPS: &str = r#"{"kind":"APIGroupList","groups":[]}"#;
    let sandbox = sandbox();
    let (bodies, log) = (Arc::default(), Log::default());
    let known = Arc::clone(&log);
    let manager = Setup::on(&sandbox)
        .client(client_with_discovery(&sandbox, &bodies))
        .controller(descriptor("a-controller"), move |context| {
            let log = Arc::clone(&log);
            async move {
                let is_served = context.discovery().is_available(&SETS);
                Ok(if is_served { parts_controller(&context, &log, true) } else { Loops::none("no sets") })
            }
        })
        .start();
    tokio::time::sleep(seconds(1)).await;
    // One snapshot lacks all groups, or is empty as a whole; the next is complete.
    for body in [("/apis", EMPTY), ("/apis", NO_GROUPS), ("/api", EMPTY), ("/apis", EMPTY)] {
        bodies.lock().extend([body]);
        tokio::time::sleep(seconds(30)).await;
        bodies.lock().clear();
        tokio::time::sleep(seconds(30)).await;
    }
    // Discovery of the core group is empty for long.
    bodies.lock().extend([("/api", EMPTY), ("/apis", EMPTY)]);
    tokio::time::sleep(seconds(300)).await;
    assert_eq!(names(&known), ["runs"]);
    assert_eq!(manager.state("a-controller"), ControllerState::Running);
    assert_eq!((sandbox.open_watches(&SETS), sandbox.open_watches(&PARTS)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_does_not_ask_what_is_served_waits_for_its_caches() {
    let sandbox = sandbox();
    let log = Log::default();
    let known = Arc::clone(&log);
    let manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let log = Arc::clone(&log);
            async move { Initialized::Ok(parts_controller(&context, &log, true)) }
        })
        .start();
    tokio::time::sleep(seconds(1)).await;
    for _ in 0..3 {
        sandbox.unregister(&SETS);
        tokio::time::sleep(seconds(31)).await;
        assert_eq!(manager.state("a-controller"), ControllerState::WaitingForCaches);
        let status = manager.handle.controller("a-controller").unwrap();
        assert_eq!((status.loops[0].state, &status.loops[0].unsynced), (LoopState::WaitingForCaches, &vec![SETS]));
        sandbox.register(SETS);
        until("it runs again", || manager.state("a-controller") == ControllerState::Running).await;
        // Its informer may be faster than discovery.
        tokio::time::sleep(seconds(31)).await;
        assert_eq!(sandbox.open_watches(&SETS), 1);
    }
    assert_eq!(names(&known), ["runs", "drained", "runs", "drained", "runs", "drained", "runs"]);
}
