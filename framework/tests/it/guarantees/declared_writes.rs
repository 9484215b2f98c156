//! The declarations of a loop about its writes: the allowed writes, the waits, and the work before the first key.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kcm_api::{ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiError, Payload, Written};
use kcm_framework::{
    Class, ControlLoopBuilder, ControllerContext, Loop, Loops, Reconcile, ReconcileError, Session, Source, async_trait,
};
use kcm_informers::Informer;
use kcm_sandbox_apiserver::{Fault, Sandbox, Status, Verb};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use crate::guarantees::support::{PARTS, SETS, Setup, Started, descriptor, key, part, sandbox, seconds, set, settle};

const OTHERS: Resource = Resource::namespaced("example.com", "v1", "others", "Other");

/// Events and their times.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, Instant)>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().push((what.into(), Instant::now()));
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().iter().map(|(what, _)| what.clone()).collect()
    }

    /// The seconds after the first note.
    fn seconds(&self) -> Vec<u64> {
        let log = self.0.lock();
        log.iter().map(|(_, at)| (*at - log[0].1).as_secs()).collect()
    }
}

type Prepare = for<'a> fn(&'a Worker, &'a Session) -> BoxFuture<'a, Result<(), ReconcileError>>;

/// Creates an object of `resource` for each set, named as the set.
struct Worker {
    log: Log,
    resource: Resource,
    parts: Option<Informer<PartialObjectMeta>>,
    prepare: Prepare,
}

impl Worker {
    fn new(log: &Log, resource: Resource) -> Self {
        Self { log: log.clone(), resource, parts: None, prepare: |_, _| async { Ok(()) }.boxed() }
    }
}

async fn create(session: &Session, resource: &Resource, name: &str) -> Result<Written, ApiError> {
    let mut object = part(name, "a");
    object["kind"] = json!(resource.kind);
    session.of(resource).create(&key(name), Payload::json(&object)).await
}

#[async_trait]
impl Reconcile for Worker {
    async fn prepare(&self, session: &Session) -> Result<(), ReconcileError> {
        (self.prepare)(self, session).await
    }

    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let parts = self.parts.as_ref().map_or(0, Informer::len);
        match create(session, &self.resource, key.name()).await {
            Ok(_) => self.log.note(format!("{} beside {parts}", key.name())),
            Err(error) if error.is_already_exists() => {}
            Err(error) => {
                let class = ReconcileError::from(error).class();
                self.log.note(format!("{class:?}"));
                return Err(ReconcileError::new(class, "as the test wants it"));
            }
        }
        Ok(())
    }
}

fn world() -> Sandbox {
    let sandbox = sandbox();
    sandbox.register(OTHERS);
    for name in ["a", "b", "c"] {
        sandbox.create(&SETS, set(name, 0)).unwrap();
    }
    sandbox
}

/// A manager with one controller, whose loop is keyed by sets.
fn start(
    sandbox: &Sandbox,
    describe: impl Fn(&ControllerContext, ControlLoopBuilder) -> Loop + Send + Sync + 'static,
) -> Started {
    Setup::on(sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let mut described = context.control_loop("a-loop");
            described.primary_for::<PartialObjectMeta>(Source::of(SETS));
            let running = Loops::new().with(describe(&context, described));
            async move { Ok(running) }
        })
        .start()
}

/// A controller without loops whose cache holds parts.
async fn holds_parts(context: ControllerContext) -> Result<Loops, kcm_framework::BoxError> {
    let mut reads = context.control_loop("reads");
    let parts = reads.reads_for::<PartialObjectMeta>(Source::of(PARTS));
    let forever = reads.task(move |cancel, _| {
        let parts = parts.clone();
        Box::pin(async move {
            cancel.cancelled().await;
            drop(parts);
            Ok(())
        })
    });
    Ok(Loops::new().with(forever))
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_resource_that_the_loop_does_not_declare_is_not_sent_and_is_terminal() {
    let (sandbox, log) = (world(), Log::default());
    let worker = log.clone();
    let _manager = start(&sandbox, move |_, described| described.reconcile(Worker::new(&worker, OTHERS)));
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(log.all(), ["Terminal"; 3]);
    assert!(sandbox.requests().iter().all(|request| request.method != "POST"));
}

#[tokio::test(start_paused = true)]
async fn a_loop_writes_what_it_reads_what_it_declares_and_anything_if_it_says_so() {
    for how in ["reads", "writes", "writes_anything"] {
        let (sandbox, log) = (world(), Log::default());
        let worker = log.clone();
        let _manager = start(&sandbox, move |_, mut described| {
            let described = match how {
                "reads" => {
                    described.reads_for::<PartialObjectMeta>(Source::of(OTHERS));
                    described
                }
                "writes" => described.writes(OTHERS),
                _anything => described.writes_anything(),
            };
            described.reconcile(Worker::new(&worker, OTHERS))
        });
        settle().await;
        assert_eq!(log.all().len(), 3, "{how}");
        assert_eq!(sandbox.list(&OTHERS, None).len(), 3, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_writes_a_cached_resource_without_reading_it_does_not_start() {
    for (reads_too, created) in [(false, 0), (true, 3)] {
        let (sandbox, log) = (world(), Log::default());
        let worker = log.clone();
        let setup = Setup::on(&sandbox).controller(descriptor("another-controller"), holds_parts);
        let manager = setup
            .controller(descriptor("a-controller"), move |context| {
                let mut described = context.control_loop("a-loop").writes(PARTS);
                described.primary_for::<PartialObjectMeta>(Source::of(SETS));
                if reads_too {
                    described.reads_for::<PartialObjectMeta>(Source::of(PARTS));
                }
                let running = Loops::new().with(described.reconcile(Worker::new(&worker, PARTS)));
                async move { Ok(running) }
            })
            .start();
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert_eq!(log.all().len(), created);
        let failed = "controller_loop_failures_total{controller=\"a-controller\",name=\"a-loop\"} 2";
        assert_eq!(manager.has_metric(failed), !reads_too, "{}", manager.metrics.encode());
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_barrier_no_key_is_taken_while_any_write_of_the_loop_is_pending() {
    for (has_barrier, beside) in [(true, ["0", "1", "2"]), (false, ["0", "0", "0"])] {
        let (sandbox, log) = (world(), Log::default());
        sandbox.faults().delay_events(&PARTS, seconds(5));
        let worker = log.clone();
        let _manager = start(&sandbox, move |_, described| {
            let mut described = described.workers(3);
            let parts = described.reads_for(Source::of(PARTS));
            let described = if has_barrier { described.barrier() } else { described };
            described.reconcile(Worker { parts: Some(parts), ..Worker::new(&worker, PARTS) })
        });
        tokio::time::sleep(seconds(60)).await;
        let expected = ["a", "b", "c"].iter().zip(beside).map(|(name, parts)| format!("{name} beside {parts}"));
        assert_eq!(log.all(), expected.collect::<Vec<_>>());
        assert_eq!(log.seconds(), if has_barrier { [0, 5, 10] } else { [0, 0, 0] });
    }
}

#[tokio::test(start_paused = true)]
async fn a_barrier_opens_after_a_lost_answer_as_soon_as_the_outcome_is_known() {
    let (sandbox, log) = (world(), Log::default());
    sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(1).stall());
    let worker = log.clone();
    let _manager = start(&sandbox, move |_, mut described| {
        let parts = described.reads_for(Source::of(PARTS));
        described.barrier().reconcile(Worker { parts: Some(parts), ..Worker::new(&worker, PARTS) })
    });
    tokio::time::sleep(seconds(200)).await;
    assert_eq!(sandbox.list(&PARTS, None).len(), 3);
    let created = log.all().into_iter().filter(|note| note.contains("beside")).count();
    assert_eq!(created, 3, "{:?}", log.all());
}

#[tokio::test(start_paused = true)]
async fn prepare_runs_after_the_sync_and_before_the_first_key_with_back_off_and_keys_wait_for_its_writes() {
    let (sandbox, log) = (world(), Log::default());
    sandbox.create(&PARTS, part("p", "a")).unwrap();
    sandbox.faults().delay_events(&PARTS, seconds(5));
    sandbox.faults().inject(Fault::on(Verb::Create).resource(PARTS).times(2).fail(Status::new(403, "Forbidden", "no")));
    let worker = log.clone();
    let _manager = start(&sandbox, move |_, mut described| {
        let parts = described.reads_for(Source::of(PARTS));
        described.reconcile(Worker {
            parts: Some(parts),
            prepare: |worker, session| {
                let parts = worker.parts.as_ref().map_or(0, Informer::len);
                async move {
                    worker.log.note(format!("prepare beside {parts}"));
                    create(session, &PARTS, "prepared").await?;
                    Ok(())
                }
                .boxed()
            },
            ..Worker::new(&worker, PARTS)
        })
    });
    tokio::time::sleep(seconds(60)).await;
    let prepare = "prepare beside 1";
    assert_eq!(log.all()[..4], [prepare, prepare, prepare, "a beside 2"]);
    assert_eq!(log.seconds()[..4], [0, 1, 3, 8]);
}

#[tokio::test(start_paused = true)]
async fn periodic_work_has_a_session_and_waits_for_its_own_writes() {
    let (sandbox, log) = (world(), Log::default());
    sandbox.faults().delay_events(&PARTS, seconds(25));
    let known = log.clone();
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let mut described = context.control_loop("periodic");
            let parts = described.reads_for::<PartialObjectMeta>(Source::of(PARTS));
            let log = known.clone();
            let periodic = described.periodic(seconds(10), move |session| {
                let (log, parts) = (log.clone(), parts.clone());
                Box::pin(async move {
                    log.note(format!("{} parts at {}", parts.len(), session.now().strftime("%S")));
                    if parts.is_empty() {
                        create(&session, &PARTS, "p").await?;
                        return Err("as the test wants it".into());
                    }
                    Ok(())
                })
            });
            async move { Ok(Loops::new().with(periodic)) }
        })
        .start();
    tokio::time::sleep(seconds(50)).await;
    // The second run is due after ten seconds, and waits for the write of the first.
    assert_eq!(log.seconds(), [0, 25, 35, 45]);
    assert!(log.all()[0].starts_with("0 parts") && log.all()[1..].iter().all(|note| note.starts_with("1 parts")));
    assert_eq!(sandbox.list(&PARTS, None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_asks_for_it_is_followed_sooner_and_never_later_than_the_period() {
    let (sandbox, log) = (world(), Log::default());
    let known = log.clone();
    let mut manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let log = known.clone();
            let periodic = context.control_loop("periodic").writes_anything().periodic(seconds(10), move |session| {
                let log = log.clone();
                Box::pin(async move {
                    log.note(session.now().strftime("%S").to_string());
                    let run = log.all().len();
                    session.requeue_after(seconds([3, 60, 9, 9][run - 1]));
                    // Also a run that fails.
                    if run == 1 { Err("as the test wants it".into()) } else { Ok(()) }
                })
            });
            async move { Ok(Loops::new().with(periodic)) }
        })
        .start();
    tokio::time::sleep(seconds(24)).await;
    assert_eq!(log.seconds(), [0, 3, 13, 22]);
    let began = tokio::time::Instant::now();
    manager.stop.drain.cancel();
    manager.ended().await.expect("the manager must end");
    assert!(began.elapsed() < seconds(1), "the wait for the next run ends with the manager");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_a_session_with_the_declared_writes() {
    let (sandbox, log) = (world(), Log::default());
    let known = log.clone();
    let _manager = Setup::on(&sandbox)
        .controller(descriptor("a-controller"), move |context| {
            let log = known.clone();
            let task = context.control_loop("task").writes(PARTS).task(move |_, session| {
                let log = log.clone();
                Box::pin(async move {
                    create(&session, &PARTS, "p").await?;
                    let refused = create(&session, &OTHERS, "p").await.map(drop).map_err(ReconcileError::from);
                    log.note(format!("{:?}", refused.map_err(|error| error.class())));
                    Ok(())
                })
            });
            async move { Ok(Loops::new().with(task)) }
        })
        .start();
    settle().await;
    assert_eq!(log.all(), [format!("{:?}", Err::<(), _>(Class::Terminal))]);
    assert_eq!(sandbox.list(&PARTS, None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_enqueues_keys_without_a_reconciler_does_not_start() {
    let (sandbox, log) = (world(), Log::default());
    let known = log.clone();
    let manager = start(&sandbox, move |_, described| {
        let log = known.clone();
        described.periodic(seconds(1), move |_| {
            log.note("ran");
            Box::pin(async { Ok(()) })
        })
    });
    tokio::time::sleep(seconds(2)).await;
    assert!(log.all().is_empty());
    let failed = "controller_loop_failures_total{controller=\"a-controller\",name=\"a-loop\"} 2";
    assert!(manager.has_metric(failed), "{}", manager.metrics.encode());
}
