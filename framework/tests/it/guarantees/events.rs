//! Events never hold a reconcile up, and equal events of all recorders are counted together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kcm_framework::events::{EventType, ObjectReference};
use kcm_framework::{ControllerContext, Loops, Recorder};
use kcm_sandbox_apiserver::{EVENTS, Fault, Verb};
use tokio::time::Instant;

use crate::guarantees::support::{Setup, descriptor, sandbox, seconds, until};

fn report(recorder: &Recorder, name: &str, reason: &'static str) {
    let regarding = ObjectReference {
        api_version: "example.com/v1".to_owned(),
        kind: "Set".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: name.into(),
        resource_version: kcm_api::ResourceVersion::default(),
        field_path: String::new(),
    };
    recorder.event(&regarding, EventType::Normal, reason, "as the test wants it");
}

#[tokio::test(start_paused = true)]
async fn a_recorder_never_waits_for_the_api_server() {
    let sandbox = sandbox();
    let stalled = sandbox.faults().inject(Fault::on(Verb::Create).resource(EVENTS).stall());
    let took = Arc::new(parking_lot::Mutex::new(None));
    let known = Arc::clone(&took);
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context: ControllerContext| {
            let took = Arc::clone(&took);
            let running = Loops::new().task("reports", move |_| {
                let (context, took) = (context.clone(), Arc::clone(&took));
                Box::pin(async move {
                    let recorder = context.recorder();
                    tokio::time::sleep(seconds(1)).await;
                    let begun = Instant::now();
                    for number in 0..500 {
                        report(&recorder, &format!("set-{number}"), "Created");
                        tokio::task::yield_now().await;
                    }
                    *took.lock() = Some((begun.elapsed(), recorder.dropped()));
                    Ok(())
                })
            });
            async move { Ok(running) }
        })
        .start();
    until("all is reported", || known.lock().is_some()).await;
    assert_eq!(*known.lock(), Some((Duration::ZERO, 0)));
    assert_eq!(stalled.hits(), 1, "they were on their way");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_takes_no_events_does_not_keep_the_manager_from_stopping() {
    let sandbox = sandbox();
    sandbox.faults().inject(Fault::on(Verb::Create).resource(EVENTS).stall());
    let mut manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), |context: ControllerContext| async move {
            report(&context.recorder(), "a", "Initialized");
            Ok(Loops::new())
        })
        .start();
    tokio::time::sleep(seconds(1)).await;
    let stopped = Instant::now();
    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
    assert!(stopped.elapsed() <= kcm_framework::GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_initialized_again_has_the_same_recorder() {
    let sandbox = sandbox();
    let tries = Arc::new(AtomicUsize::new(0));
    let known = Arc::clone(&tries);
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context: ControllerContext| {
            let number = tries.fetch_add(1, Ordering::Relaxed);
            async move {
                report(&context.recorder(), "a", "Initialized");
                if number < 2 { Err("as the test wants it".into()) } else { Ok(Loops::new()) }
            }
        })
        .start();
    until("it was initialized", || known.load(Ordering::Relaxed) == 3).await;
    tokio::time::sleep(seconds(1)).await;
    let events = sandbox.list(&EVENTS, None);
    assert_eq!(events.len(), 1, "equal events are counted, not repeated");
    assert_eq!(events[0]["count"], 3);
    assert_eq!(events[0]["source"]["component"], "a-controller");
}

#[tokio::test(start_paused = true)]
async fn events_name_the_component_of_the_descriptor_where_it_is_not_the_controller_s_name() {
    let sandbox = sandbox();
    let _manager = Setup::on(&sandbox)
        .controller(
            descriptor("node-lifecycle-controller").event_component("node-controller"),
            |context: ControllerContext| async move {
                report(&context.recorder(), "a", "Initialized");
                Ok(Loops::new())
            },
        )
        .start();
    until("it was sent", || sandbox.list(&EVENTS, None).len() == 1).await;
    assert_eq!(sandbox.list(&EVENTS, None)[0]["source"]["component"], "node-controller");
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_under_the_identity_of_the_controller() {
    let sandbox = sandbox();
    let _manager = Setup::on(&sandbox)
        .controller(
            descriptor("a-controller").service_account("b-controller"),
            |context: ControllerContext| async move {
                report(&context.recorder(), "a", "Initialized");
                Ok(Loops::new())
            },
        )
        .start();
    until("it was sent", || sandbox.list(&EVENTS, None).len() == 1).await;
    let request = sandbox.requests().into_iter().find(|request| request.method == "POST").unwrap();
    assert!(request.headers["user-agent"].to_str().unwrap().ends_with("/b-controller"));
    assert_eq!(sandbox.list(&EVENTS, None)[0]["source"]["component"], "a-controller");
}

#[tokio::test(start_paused = true)]
async fn metrics_count_the_events_that_are_not_sent_by_reason() {
    let sandbox = sandbox();
    let manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), |context: ControllerContext| async move {
            for _ in 0..27 {
                report(&context.recorder(), "a", "Initialized");
            }
            Ok(Loops::new())
        })
        .controller(descriptor("b-controller"), |context: ControllerContext| async move {
            for number in 0..1003 {
                report(&context.recorder(), &format!("set-{number}"), "Created");
            }
            Ok(Loops::new())
        })
        .start();
    tokio::time::sleep(seconds(60)).await;
    for line in [
        "manager_events_dropped_total{component=\"a-controller\",reason=\"rate_limited\"} 2",
        "manager_events_dropped_total{component=\"b-controller\",reason=\"queue_full\"} 3",
    ] {
        assert!(manager.has_metric(line), "{line} is not in {}", manager.metrics.encode());
    }
}
