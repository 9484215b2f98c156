//! In which order a manager starts and stops, and that one controller never holds up another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::{ObjectKey, PartialObjectMeta};
use kcm_config::gates::POD_DELETION_COST;
use kcm_framework::client::Unreachable;
use kcm_framework::discovery::Discovery;
use kcm_framework::events::{EventType, ObjectReference};
use kcm_framework::workqueue::Priority;
use kcm_framework::{Loops, ManagerError, StartGroup};
use kcm_informers::{HandlerOptions, ListOptions};
use kcm_sandbox_apiserver::{EVENTS, Fault, PODS, Sandbox, Status, Verb};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{
    Initialized, PARTS, SETS, Setup, World, descriptor, key, part, sandbox, seconds, settle, until,
};

/// Events and their times.
type Log = Arc<Mutex<Vec<(String, Instant)>>>;

fn note(log: &Log, what: &str) {
    log.lock().push((what.to_owned(), Instant::now()));
}

fn names(log: &Log) -> Vec<String> {
    log.lock().iter().map(|(what, _)| what.clone()).collect()
}

/// Number of lists and watches that the API server has seen.
fn reads(sandbox: &Sandbox) -> usize {
    let targets = sandbox.requests().into_iter().filter_map(|request| request.target);
    targets.filter(|target| matches!(target.verb, Verb::List | Verb::Watch)).count()
}

const INTERVAL: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn controllers_are_initialized_one_after_another_the_first_group_first() {
    const WORK: Duration = Duration::from_secs(3);
    let log = Log::default();
    let mut setup = Setup::on(&sandbox()).start_interval(INTERVAL);
    for descriptor in [
        descriptor("a-controller"),
        descriptor("b-controller"),
        descriptor("z-controller").start_group(StartGroup::First),
        descriptor("c-controller"),
    ] {
        let log = Arc::clone(&log);
        setup = setup.controller(descriptor, move |context| {
            let log = Arc::clone(&log);
            async move {
                note(&log, context.controller());
                tokio::time::sleep(WORK).await;
                Ok(Loops::new())
            }
        });
    }
    let manager = setup.start();
    tokio::time::sleep(seconds(200)).await;
    assert_eq!(names(&log), ["z-controller", "a-controller", "b-controller", "c-controller"]);
    let mut ready = manager.since;
    for (name, began) in log.lock().clone() {
        let delay = began - ready;
        assert!((INTERVAL..2 * INTERVAL).contains(&delay), "{name} came {delay:?} after the one before it");
        ready = began + WORK;
    }
}

#[tokio::test(start_paused = true)]
async fn informers_start_after_every_init_func_has_run() {
    let sandbox = sandbox();
    let log = Log::default();
    let mut setup = Setup::on(&sandbox).start_interval(INTERVAL);
    for (name, resource) in [("a-controller", SETS), ("b-controller", PARTS)] {
        let (log, sandbox) = (Arc::clone(&log), sandbox.clone());
        setup = setup.controller(descriptor(name), move |context| {
            let (log, sandbox) = (Arc::clone(&log), sandbox.clone());
            let informer =
                context.informers().informer_for::<PartialObjectMeta>(resource.clone(), ListOptions::default());
            let started = context.informers_started().now_or_never().is_some();
            note(&log, &format!("{name}: {} reads, informers started: {started}", reads(&sandbox)));
            async move {
                let running = Loops::new().task("wait", move |_| {
                    let (context, log, informer) = (context.clone(), Arc::clone(&log), informer.clone());
                    Box::pin(async move {
                        context.informers_started().await;
                        informer.wait_synced().await;
                        note(&log, &format!("{name}: synced"));
                        Ok(())
                    })
                });
                Ok(running)
            }
        });
    }
    let _manager = setup.start();
    until("both have synced", || log.lock().len() == 4).await;
    let mut log = names(&log);
    log[2..].sort();
    let none = "0 reads, informers started: false";
    assert_eq!(
        log,
        [
            format!("a-controller: {none}"),
            format!("b-controller: {none}"),
            "a-controller: synced".to_owned(),
            "b-controller: synced".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_does_not_sync_holds_up_only_the_loops_that_read_it() {
    let sandbox = sandbox();
    let forbidden = Fault::on_any().resource(PARTS).fail(Status::forbidden(&PARTS, "", "User \"kcm\" cannot list"));
    let forbidden = sandbox.faults().inject(forbidden);
    let log = Log::default();
    let mut setup = Setup::on(&sandbox);
    for (name, reads) in [("a-controller", vec![SETS, PARTS]), ("b-controller", vec![SETS]), ("c-controller", vec![])] {
        let log = Arc::clone(&log);
        setup = setup.controller(descriptor(name), move |context| {
            let informers = context.informers();
            let caches: Vec<_> = reads
                .iter()
                .map(|kind| informers.informer_for::<PartialObjectMeta>(kind.clone(), ListOptions::default()).cache())
                .collect();
            let log = Arc::clone(&log);
            let running = Loops::new().task("runs", move |_| {
                note(&log, name);
                Box::pin(async { Ok(()) })
            });
            async move { Ok(running.after_sync_of(caches)) }
        });
    }
    let _manager = setup.start();
    tokio::time::sleep(seconds(600)).await;
    let mut running = names(&log);
    running.sort();
    assert_eq!(running, ["b-controller", "c-controller"]);
    forbidden.remove();
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(names(&log).last().unwrap(), "a-controller");
}

#[tokio::test(start_paused = true)]
async fn no_loop_takes_a_key_before_its_caches_have_synced() {
    let sandbox = sandbox();
    sandbox.create(&SETS, crate::guarantees::support::set("a", 1)).unwrap();
    sandbox.create(&PARTS, crate::guarantees::support::part("p", "a")).unwrap();
    sandbox.faults().hold_watches(&PARTS);
    let release = sandbox.clone();
    let mut timer = tokio::task::JoinSet::new();
    timer.spawn(async move {
        tokio::time::sleep(seconds(20)).await;
        release.faults().release_watches(&PARTS);
    });
    let begun = Instant::now();
    let seen = Arc::new(AtomicUsize::new(0));
    let parts_seen = Arc::clone(&seen);
    let world = World::with(crate::guarantees::support::Options::default(), &sandbox, move |turn| {
        parts_seen.store(turn.parts().len(), Ordering::Relaxed);
        async { Ok(()) }.boxed()
    })
    .await;
    world.visited(1).await;
    assert!(begun.elapsed() >= seconds(20));
    assert_eq!(seen.load(Ordering::Relaxed), 1, "the first look sees everything");
}

/// How an `InitFunc` fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Error,
    Panic,
    PanicBeforeItBegins,
}

#[tokio::test(start_paused = true)]
async fn an_init_func_that_fails_leaves_no_subscriber_behind() {
    let sandbox = sandbox();
    let (tries, changes) = (Log::default(), Log::default());
    let (known, told) = (Arc::clone(&tries), Arc::clone(&changes));
    let manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            note(&tries, "try");
            let (number, changes) = (tries.lock().len(), Arc::clone(&changes));
            let parts = context.informers().informer_for::<PartialObjectMeta>(PARTS, ListOptions::default());
            let queue = context.control_loop::<ObjectKey>("parts").queue();
            parts.add_event_handler(HandlerOptions::named("a-controller"), move |change, _| {
                note(&changes, change.key().name());
                queue.add(change.key().clone(), Priority::Initial);
            });
            async move { if number <= 3 { Err("as the test wants it".into()) } else { Ok(Loops::new()) } }
        })
        .start();
    until("it is initialized", || known.lock().len() == 4).await;
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    settle().await;
    assert_eq!(names(&told), ["p"]);
    assert!(manager.has_metric("workqueue_depth{name=\"parts\"} 1"), "{}", manager.metrics.encode());
}

#[tokio::test(start_paused = true)]
async fn an_init_func_that_fails_is_tried_again_while_its_siblings_run() {
    for failure in [Failure::Error, Failure::Panic, Failure::PanicBeforeItBegins] {
        let (tries, ticks) = (Log::default(), Log::default());
        let (known, ticked) = (Arc::clone(&tries), Arc::clone(&ticks));
        let _manager = Setup::on(&sandbox())
            .controller(descriptor("a-controller"), move |_| {
                note(&tries, "try");
                let number = tries.lock().len();
                assert!(number > 3 || !matches!(failure, Failure::PanicBeforeItBegins), "as the test wants it");
                let tries = Arc::clone(&tries);
                async move {
                    if number <= 3 {
                        assert!(!matches!(failure, Failure::Panic), "as the test wants it");
                        return Err("as the test wants it".into());
                    }
                    Ok(Loops::new().task("runs", move |_| {
                        note(&tries, "runs");
                        Box::pin(async { Ok(()) })
                    }))
                }
            })
            .controller(descriptor("b-controller"), move |_| {
                let ticks = Arc::clone(&ticks);
                async move {
                    Ok(Loops::new().periodic("ticks", seconds(1), move || {
                        note(&ticks, "tick");
                        Box::pin(async { Ok(()) })
                    }))
                }
            })
            .start();
        tokio::time::sleep(Duration::from_millis(99_500)).await;
        assert_eq!(names(&known), ["try", "try", "try", "try", "runs"], "{failure:?}");
        let times: Vec<_> = known.lock().windows(2).map(|pair| (pair[1].1 - pair[0].1).as_secs()).collect();
        assert_eq!(times, [1, 2, 4, 0], "{failure:?}");
        assert_eq!(ticked.lock().len(), 100, "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_selected_and_gated_on_is_initialized_and_what_has_nothing_to_do_is_skipped() {
    let log = Log::default();
    let noting = |log: &Log, running: fn() -> Loops| {
        let log = Arc::clone(log);
        move |context: kcm_framework::ControllerContext| {
            note(&log, context.controller());
            async move { Initialized::Ok(running()) }
        }
    };
    let some = Loops::new;
    let _manager = Setup::on(&sandbox())
        .controller(descriptor("first-controller").start_group(StartGroup::First), noting(&log, some))
        .controller(descriptor("gated-controller").required_gates(&[POD_DELETION_COST]), noting(&log, some))
        .controller(descriptor("off-controller").off_by_default(), noting(&log, some))
        .controller(descriptor("deselected-controller"), noting(&log, some))
        .controller(descriptor("skipped-controller"), noting(&log, || Loops::none("as the test wants it")))
        .controller(descriptor("the-last-controller"), noting(&log, some))
        .select(&["*", "-deselected-controller", "-first-controller"])
        .argument("--feature-gates=PodDeletionCost=false")
        .start();
    tokio::time::sleep(seconds(1000)).await;
    assert_eq!(names(&log), ["first-controller", "skipped-controller", "the-last-controller"], "each of them once");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_within_ten_seconds_ends_the_start() {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, kcm_sandbox_apiserver::ConnectionLost>>()
    });
    let log = Log::default();
    let initialized = Arc::clone(&log);
    let mut manager = Setup::on(&sandbox())
        .client(kube::Client::new(silent, "default"))
        .controller(descriptor("a-controller"), move |_| {
            note(&log, "initialized");
            async { Ok(Loops::none("as the test wants it")) }
        })
        .start();
    let error = manager.ended().await.unwrap_err();
    assert!(matches!(error, ManagerError::ApiServer(Unreachable::Silent { .. })), "{error:?}");
    assert_eq!(manager.since.elapsed(), seconds(10));
    assert!(initialized.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_start_ends_it() {
    let sandbox = sandbox();
    let (log, cancellation) = (Log::default(), Arc::new(Mutex::new(None)));
    let (known, kept) = (Arc::clone(&log), Arc::clone(&cancellation));
    let init = move |context: kcm_framework::ControllerContext| {
        note(&log, context.controller());
        *cancellation.lock() = Some(context.cancellation().clone());
        context.recorder().event(&about("default", "a"), EventType::Normal, "Initialized", "yes");
        async { Initialized::Ok(Loops::new()) }
    };
    let mut manager = Setup::on(&sandbox)
        .start_interval(seconds(100))
        .controller(descriptor("a-controller"), init.clone())
        .controller(descriptor("b-controller"), init)
        .start();
    until("the first is initialized", || known.lock().len() == 1).await;
    let stopped = Instant::now();
    manager.stop.drain.cancel();
    manager.ended().await.unwrap();
    assert!(stopped.elapsed() < seconds(1));
    assert_eq!(names(&known), ["a-controller"]);
    assert_eq!(reads(&sandbox), 0);
    assert!(kept.lock().as_ref().unwrap().is_cancelled(), "the token that announces the end is cancelled");
    assert_eq!(sandbox.list(&EVENTS, None).len(), 1);
}

fn about(namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: "example.com/v1".to_owned(),
        kind: "Set".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: "u".into(),
        resource_version: kcm_api::ResourceVersion::default(),
        field_path: String::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn loops_stop_first_and_what_they_use_outlives_them() {
    let sandbox = sandbox();
    let log = Log::default();
    let known = Arc::clone(&log);
    let mut manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let pods = context.informers().informer_for::<PartialObjectMeta>(PARTS, ListOptions::default());
            let (log, context) = (Arc::clone(&log), context.clone());
            async move {
                Ok(Loops::new().task("drains", move |cancel| {
                    let (log, context, pods) = (Arc::clone(&log), context.clone(), pods.clone());
                    Box::pin(async move {
                        cancel.cancelled().await;
                        assert!(context.cancellation().is_cancelled());
                        // Its caches still move, its recorder still takes events, even a first one.
                        tokio::time::sleep(seconds(5)).await;
                        until("the part is seen", || pods.get(&key("late")).is_some()).await;
                        context.recorder().event(&about("default", "a"), EventType::Normal, "Drained", "yes");
                        note(&log, "drained");
                        Ok(())
                    })
                }))
            }
        })
        .start();
    settle().await;
    manager.stop.drain.cancel();
    tokio::time::sleep(seconds(1)).await;
    sandbox.create(&PARTS, crate::guarantees::support::part("late", "a")).unwrap();
    manager.ended().await.unwrap();
    assert_eq!(names(&known), ["drained"]);
    let events = sandbox.list(&EVENTS, None);
    assert_eq!(events.iter().map(|event| event["reason"].as_str().unwrap()).collect::<Vec<_>>(), ["Drained"]);
    assert_eq!((sandbox.open_watches(&PARTS), sandbox.open_watches(&PODS)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_end_is_given_up_after_the_grace_or_at_the_second_signal() {
    for (first, second, ends) in [
        (true, None, kcm_framework::GRACE),
        (true, Some(seconds(2)), seconds(2)),
        (false, Some(seconds(2)), seconds(2)),
    ] {
        let mut world = World::start(|_| std::future::pending().boxed()).await;
        world.add("a");
        settle().await;
        let begun = Instant::now();
        if first {
            world.manager.stop.drain.cancel();
        }
        if let Some(delay) = second {
            tokio::time::sleep(delay).await;
            world.manager.stop.abort.cancel();
        }
        world.manager.ended().await.unwrap();
        assert_eq!(begun.elapsed(), ends);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fixed_discovery_sends_no_request_and_never_ends() {
    let known = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&known);
    let discovering = Setup::on(&sandbox()).controller(descriptor("a-controller"), move |context| {
        *keep.lock() = Some(context.discovery().resources());
        async { Ok(Loops::new()) }
    });
    let discovering = discovering.start();
    until("it was initialized", || known.lock().is_some()).await;
    drop(discovering);

    let sandbox = sandbox();
    let discovery = Discovery::fixed(known.lock().take().unwrap());
    let has_changed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&has_changed);
    let manager = Setup::on(&sandbox).discovery(discovery).controller(descriptor("a-controller"), move |context| {
        let count = Arc::clone(&count);
        async move {
            let changes = context.discovery().changes();
            assert!(context.discovery().is_available(&SETS));
            Ok(Loops::new().task("waits", move |_| {
                let (mut changes, count) = (changes.clone(), Arc::clone(&count));
                async move {
                    drop(changes.changed().await);
                    count.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                }
                .boxed()
            }))
        }
    });
    let manager = manager.start();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(manager.handle.controller("a-controller").unwrap().loops.len() == 1);
    let asked: Vec<String> = sandbox.requests().into_iter().map(|request| request.path).collect();
    assert!(!asked.iter().any(|path| path == "/api" || path == "/apis"), "{asked:?}");
    assert_eq!(has_changed.load(Ordering::SeqCst), 0, "an end of the changes would end loops");
}
