//! How a loop hands its keys out, and what becomes of those that fail.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::{ObjectKey, PartialObjectMeta};
use kcm_framework::client::Payload;
use kcm_framework::{BoxError, Class, Loops, QueueKey, Reconcile, ReconcileError, Session, Source, async_trait};
use kcm_sandbox_apiserver::{Fault, Verb};
use kcm_workqueue::Priority;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::guarantees::support::{
    CONTROLLER, Options, PARTS, Setup, World, descriptor, key, part, sandbox, seconds, settle, until,
};

const MILLISECOND: Duration = Duration::from_millis(1);

fn failure(class: Class) -> ReconcileError {
    ReconcileError::new(class, "as the test wants it")
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_processed_twice_at_once() {
    let options = Options { workers: 8, ..Options::default() };
    let world = World::with(options, &sandbox(), |_| {
        async {
            tokio::time::sleep(10 * MILLISECOND).await;
            Ok(())
        }
        .boxed()
    })
    .await;
    for name in ["a", "b", "c"].repeat(100) {
        world.add(name);
        tokio::time::sleep(MILLISECOND).await;
    }
    tokio::time::sleep(seconds(1)).await;
    // A reconcile panics if its key is processed already.
    assert!(!world.manager.metrics.encode().contains("panic\""));
    assert_eq!(world.most_processing(), 3, "different keys are handled at once");
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_processing_is_processed_again() {
    let world = World::start(|_| {
        async {
            tokio::time::sleep(10 * MILLISECOND).await;
            Ok(())
        }
        .boxed()
    })
    .await;
    world.add("a");
    tokio::time::sleep(5 * MILLISECOND).await;
    world.add("a");
    world.add("a");
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(world.visited(2).await, [Duration::ZERO, 10 * MILLISECOND]);
}

#[tokio::test(start_paused = true)]
async fn the_class_of_an_error_decides_when_its_key_is_tried_again() {
    for (class, tries) in [
        (Class::Transient, vec![0, 5, 15, 35]),
        (Class::Unavailable, vec![0, 5, 15, 35]),
        (Class::Conflict, vec![0, 5, 15, 35]),
        (Class::Forbidden, vec![0, 60_000, 120_000, 180_000]),
        (Class::Terminal, vec![0]),
    ] {
        let world =
            World::start(move |turn| async move { if turn.number < 3 { Err(failure(class)) } else { Ok(()) } }.boxed())
                .await;
        world.add("a");
        tokio::time::sleep(seconds(1000)).await;
        let tries: Vec<_> = tries.into_iter().map(Duration::from_millis).collect();
        assert_eq!(world.visited(tries.len()).await, tries, "{class:?}");
        let counted = format!(
            "controller_reconciles_total{{controller=\"{CONTROLLER}\",name=\"sets\",result=\"{}\"}} {}",
            class.as_str(),
            tries.len().min(3)
        );
        assert!(world.manager.has_metric(&counted), "{counted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_wakes_a_key_that_waits_for_one() {
    let world = World::start(|turn| {
        async move { if turn.number == 0 { Err(failure(Class::Terminal)) } else { Ok(()) } }.boxed()
    })
    .await;
    world.create_set("a", 0);
    tokio::time::sleep(seconds(500)).await;
    world.touch("a");
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(500)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_looked_at_again_when_its_reconcile_asked_for_it() {
    let world = World::start(|turn| {
        async move {
            if turn.number < 2 {
                turn.session.requeue_after(seconds(300));
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.add("a");
    tokio::time::sleep(seconds(2000)).await;
    assert_eq!(world.visited(3).await, [Duration::ZERO, seconds(300), seconds(600)]);
    assert_eq!(world.visits().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_holds_whatever_the_reconcile_returns() {
    for failure in ["none", "terminal", "forbidden", "panic"] {
        let world = World::start(move |turn| {
            async move {
                if turn.number > 0 {
                    return Ok(());
                }
                turn.session.requeue_after(seconds(40));
                turn.session.requeue_after(seconds(30));
                turn.session.requeue_after(seconds(50));
                match failure {
                    "terminal" => Err(self::failure(Class::Terminal)),
                    "forbidden" => Err(self::failure(Class::Forbidden)),
                    "panic" => panic!("as the test wants it"),
                    _ => Ok(()),
                }
            }
            .boxed()
        })
        .await;
        world.add("a");
        tokio::time::sleep(seconds(2000)).await;
        // A panic has its back-off as well, which is earlier.
        let second = if failure == "panic" { Duration::from_millis(5) } else { seconds(30) };
        assert_eq!(world.visited(2).await[1], second, "{failure}: the earliest of three");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_past_does_not_undo_the_back_off_of_a_failure() {
    let world = World::start(|turn| {
        async move {
            turn.session.requeue_after(Duration::ZERO);
            if turn.number < 8 { Err(failure(Class::Transient)) } else { panic!("as the test wants it") }
        }
        .boxed()
    })
    .await;
    world.add("a");
    let visits = world.visited(8).await;
    assert!(visits[7] >= visits[6] + Duration::from_millis(300), "{visits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_stays_beside_the_retries_of_a_failure() {
    // The back-off of the eleventh failure is above five seconds, and the deadline of the first comes before it.
    let world = World::start(|turn| {
        async move {
            if turn.number == 10 {
                turn.session.requeue_after(seconds(1));
            }
            if turn.number < 11 { Err(failure(Class::Transient)) } else { Ok(()) }
        }
        .boxed()
    })
    .await;
    world.add("a");
    let visits = world.visited(12).await;
    assert_eq!(visits[11], visits[10] + seconds(1));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_for_ever_is_never_dropped() {
    let world = World::start(|_| async { Err(failure(Class::Transient)) }.boxed()).await;
    world.add("a");
    let visits = world.visited(40).await;
    assert_eq!(visits[39], visits[38] + seconds(1000), "it stays at its longest back-off");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_its_key_is_tried_again_while_others_go_on() {
    let world = World::start(|turn| {
        async move {
            assert!(turn.key.name() != "a" || turn.number >= 3, "as the test wants it");
            Ok(())
        }
        .boxed()
    })
    .await;
    world.add("a");
    world.add("b");
    tokio::time::sleep(seconds(10)).await;
    let visits = world.visits();
    let (a, b): (Vec<_>, Vec<_>) = visits.iter().partition(|visit| visit.name == "a");
    let tries: Vec<_> = a.iter().map(|visit| visit.began - a[0].began).collect();
    assert_eq!(tries, [0, 5, 15, 35].map(Duration::from_millis));
    assert_eq!(b.len(), 1);
    for (result, count) in [("panic", 3), ("success", 2)] {
        let counted = format!(
            "controller_reconciles_total{{controller=\"{CONTROLLER}\",name=\"sets\",result=\"{result}\"}} {count}"
        );
        assert!(world.manager.has_metric(&counted), "{counted}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_panicking_reconcile_wrote_is_waited_for() {
    let world = World::start(|turn| {
        async move {
            if turn.parts().len() < turn.wanted() {
                turn.create_part().await?;
                panic!("as the test wants it");
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.sandbox.faults().delay_events(&PARTS, seconds(5));
    world.create_set("a", 1);
    assert_eq!(world.visited(2).await, [Duration::ZERO, seconds(5)]);
    assert_eq!(world.parts().len(), 1);
}

/// How a loop comes to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Error,
    Panic,
    PanicBeforeItBegins,
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_dies_is_started_again_with_back_off_and_its_siblings_go_on() {
    for end in [End::Error, End::Panic, End::PanicBeforeItBegins] {
        let starts = Arc::new(Mutex::new(Vec::new()));
        let ticks = Arc::new(AtomicUsize::new(0));
        let (started, ticked) = (Arc::clone(&starts), Arc::clone(&ticks));
        let manager = Setup::on(&sandbox())
            .controller(descriptor("mortal-controller"), move |_| {
                let (starts, ticks) = (Arc::clone(&starts), Arc::clone(&ticks));
                let running = Loops::new()
                    .task("mortal", move |_| {
                        starts.lock().push(Instant::now());
                        assert!(!matches!(end, End::PanicBeforeItBegins), "as the test wants it");
                        Box::pin(async move {
                            match end {
                                End::Error => Err(BoxError::from("as the test wants it")),
                                End::Panic | End::PanicBeforeItBegins => panic!("as the test wants it"),
                            }
                        })
                    })
                    .periodic("ticks", seconds(1), move || {
                        ticks.fetch_add(1, Ordering::Relaxed);
                        Box::pin(async { Ok(()) })
                    });
                async move { Ok(running) }
            })
            .start();
        tokio::time::sleep(Duration::from_millis(999_999)).await;
        let starts = started.lock().clone();
        let pauses: Vec<_> = starts.windows(2).take(7).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60], "{end:?}");
        assert_eq!(ticked.load(Ordering::Relaxed), 1000, "{end:?}");
        let counted = format!(
            "controller_loop_failures_total{{controller=\"mortal-controller\",name=\"mortal\"}} {}",
            starts.len()
        );
        assert!(manager.has_metric(&counted), "{counted}");
    }
}

#[tokio::test(start_paused = true)]
async fn periodic_work_that_fails_is_done_again_at_the_next_period() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let known = Arc::clone(&times);
    let _manager = Setup::on(&sandbox())
        .controller(descriptor("periodic-controller"), move |_| {
            let times = Arc::clone(&times);
            let running = Loops::new().periodic("work", seconds(10), move || {
                times.lock().push(Instant::now());
                Box::pin(async { Err("as the test wants it".into()) })
            });
            async move { Ok(running) }
        })
        .start();
    until("it was done four times", || known.lock().len() == 4).await;
    let times = known.lock().clone();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == seconds(10)));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_in_hand_is_finished_and_nothing_else_begins() {
    let options = Options { workers: 2, ..Options::default() };
    let mut world = World::with(options, &sandbox(), |turn| {
        async move {
            tokio::time::sleep(seconds(3)).await;
            turn.create_part().await?;
            Ok(())
        }
        .boxed()
    })
    .await;
    for name in ["a", "b", "c", "d"] {
        world.add(name);
    }
    settle().await;
    let began = Instant::now();
    world.manager.stop.drain.cancel();
    world.manager.ended().await.unwrap();
    assert!(began.elapsed() < seconds(3), "it ends when they have");
    assert_eq!(world.visits().len(), 2);
    assert_eq!(world.parts().len(), 2, "a running reconcile can still write");
}

/// A key that once cannot say what it names, which no plugin should do, and which ends its loop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fragile(ObjectKey, bool);

static BROKE: AtomicBool = AtomicBool::new(false);

impl fmt::Display for Fragile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl QueueKey for Fragile {
    fn object(&self) -> Option<&ObjectKey> {
        assert!(!self.1 || BROKE.swap(true, Ordering::Relaxed), "as the test wants it");
        Some(&self.0)
    }
}

struct CreatesAPart(Arc<Mutex<Vec<(Fragile, Instant)>>>);

#[async_trait]
impl Reconcile<Fragile> for CreatesAPart {
    async fn reconcile(&self, key: &Fragile, session: &Session) -> Result<(), ReconcileError> {
        self.0.lock().push((key.clone(), Instant::now()));
        if !key.1 {
            session.of(&PARTS).create(&key.0, Payload::json(&part(key.0.name(), "a"))).await?;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_dies_loses_neither_its_keys_nor_what_they_wait_for() {
    let sandbox = sandbox();
    sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(1).stall());
    let log = Arc::new(Mutex::new(Vec::new()));
    let known = Arc::clone(&log);
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("fragile-controller"), move |context| {
            let mut described = context.control_loop("fragile").workers(2);
            described.primary_with(Source::<PartialObjectMeta>::of(PARTS), |_| std::iter::empty::<Fragile>());
            let queue = described.queue();
            queue.add(Fragile(key("p"), false), Priority::Live);
            queue.add_after(Fragile(key("broken"), true), seconds(1), Priority::Live);
            let fragile = described.reconcile(CreatesAPart(Arc::clone(&log)));
            async move { Ok(Loops::new().with(fragile)) }
        })
        .start();
    tokio::time::sleep(seconds(100)).await;
    let visits = known.lock().clone();
    let after: Vec<_> = visits.iter().map(|(key, at)| (key.1, (*at - visits[0].1).as_secs())).collect();
    // The loop dies after one second, in the middle of a creation, and begins again one second later.
    assert_eq!(after, [(false, 0), (true, 2), (false, 61)]);
    assert_eq!(sandbox.list(&PARTS, None).len(), 1);
}
