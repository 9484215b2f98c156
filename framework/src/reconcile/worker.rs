//! A reconcile loop and its workers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::ObjectKey;
use kcm_client::{RequestOrigin, error_chain};
use kcm_informers::{Backoff, panic_message};
use kcm_workqueue::{Priority, Queue};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::error::Retry;
use super::gate::{Gate, Inside};
use super::loop_core::LoopCore;
use super::recording::Recording;
use super::undecided::Undecided;
use super::undecodable::UndecodableGuard;
use super::worker_pool::run_workers;
use super::{Class, Reconcile, ReconcileError, Session};
use crate::activity::Activity;
use crate::consistency::{Primary, Tracker};
use crate::control_loop::Loop;
use crate::explain::{Ended, Notes, TriggerCause, Triggers};
use crate::live_settings::WorkerCount;
use crate::queue_key::QueueKey;

/// The back-off of a preparation that fails: 1 s doubling to a minute.
const PREPARE_BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1), Duration::MAX);

/// A [`Reconcile`] over a queue, and what its workers share.
pub(crate) struct Workers<K: QueueKey> {
    pub(super) core: LoopCore,
    pub(super) queue: Queue<K>,
    /// The reconciles that failed in what may be an outage.
    undecided: Undecided<Failure<K>>,
    activity: Activity,
    pub(super) recording: Recording<K>,
    /// Behind a pointer, so that workers are code of a key's type only, and not of each reconciler's.
    reconciler: Box<dyn Reconcile<K>>,
    pub(super) tracker: Arc<Tracker<K>>,
    pub(super) guard: Arc<UndecodableGuard<K>>,
    pub(super) primary: Primary,
    /// Closed while any write of the loop is pending. `None` for a loop without a barrier.
    pub(super) gate: Option<Gate>,
    /// When its preparation began. `None` unless it is being prepared.
    pub(super) preparing: Mutex<Option<Instant>>,
}

impl<K: QueueKey> Workers<K> {
    pub(crate) fn new(
        core: LoopCore,
        queue: Queue<K>,
        triggers: Arc<Triggers<K>>,
        activity: Activity,
        reconciler: Box<dyn Reconcile<K>>,
        primary: Primary,
        has_barrier: bool,
    ) -> Self {
        Self {
            undecided: Undecided::new(core.api.connection().clone()),
            recording: Recording::new(core.name, triggers, &core.context),
            tracker: Tracker::new(queue.clone(), Arc::clone(&core.caches), primary.clone()),
            guard: UndecodableGuard::new(queue.clone(), Arc::clone(&core.caches), primary.clone()),
            gate: has_barrier.then(|| Gate::new(core.name, Arc::clone(&core.caches))),
            preparing: Mutex::default(),
            core,
            queue,
            activity,
            reconciler,
            primary,
        }
    }

    /// The loop that runs `count` workers; a loop with a barrier has one.
    pub(crate) fn into_loop(self, count: WorkerCount) -> Loop {
        let shared = Arc::new(self);
        // With more workers a key would be taken while another writes.
        let workers = if shared.gate.is_some() { WorkerCount::Fixed(1) } else { count };
        let (inspect, progress) = (Arc::clone(&shared), Arc::clone(&shared));
        let described = Loop::new(inspect.core.name, inspect.core.caches.to_vec(), move |cancel| {
            let (shared, workers) = (Arc::clone(&shared), workers.clone());
            Box::pin(async move {
                let triggers = shared.recording.triggers();
                let _running = shared.activity.begin(&shared.queue, triggers, &cancel);
                let was_cancelled = cancel.run_until_cancelled(shared.prepare()).await.is_none();
                if was_cancelled {
                    return Ok(());
                }
                tokio::select! {
                    biased;
                    ended = run_workers(&workers, &cancel, |token| Arc::clone(&shared).work(token)) => ended,
                    () = shared.tracker.check_pending_writes(&shared.core.live) => Ok(()),
                    () = shared.check_gate() => Ok(()),
                    () = shared.decide() => Ok(()),
                }
            })
        });
        described.inspected(inspect).with_progress(progress)
    }

    /// Prepares the reconciler, with back-off until it succeeds, and waits until the caches show what it wrote.
    async fn prepare(&self) {
        *self.preparing.lock() = Some(Instant::now());
        let mut backoff = PREPARE_BACKOFF;
        loop {
            let session = self.session();
            let prepared = self.reconciler.prepare(&session).await;
            let writes = session.take_pending_writes();
            if !writes.is_empty() {
                let gate = Gate::new(self.core.name, Arc::clone(&self.core.caches));
                gate.enter().await.writes = writes;
                tokio::select! {
                    biased;
                    _ = gate.enter() => {}
                    () = gate.check_pending_writes(&self.core.live) => {}
                }
            }
            let Err(error) = prepared else {
                *self.preparing.lock() = None;
                return;
            };
            self.report_preparation(&error);
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    fn report_preparation(&self, error: &ReconcileError) {
        tracing::warn!(
            controller = self.core.controller,
            r#loop = self.core.name,
            error = std::error::Error::source(error),
            "Cannot prepare the loop; retried with back-off"
        );
    }

    fn session(&self) -> Session {
        self.core.session(Notes::new(self.recording.is_enabled()))
    }

    async fn check_gate(&self) {
        match &self.gate {
            Some(gate) => gate.check_pending_writes(&self.core.live).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until no write of the loop is pending, if the loop has a barrier.
    async fn enter_gate(&self) -> Option<Inside<'_>> {
        match &self.gate {
            Some(gate) => Some(gate.enter().await),
            None => None,
        }
    }

    /// Processes keys until `cancel`; the key that is processing is finished. While the API server is unreachable, all
    /// keys wait.
    async fn work(self: Arc<Self>, cancel: CancellationToken) {
        let connection = self.core.api.connection();
        loop {
            let Some(inside) = cancel.run_until_cancelled(self.enter_gate()).await else { return };
            let key = tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                () = connection.lost() => {
                    let was_cancelled = cancel.run_until_cancelled(connection.reachable()).await.is_none();
                    if was_cancelled {
                        return;
                    }
                    continue;
                }
                key = self.queue.get() => key,
            };
            let Some(key) = key else { return };
            self.handle(Processing::new(&self, key, inside)).await;
        }
    }

    async fn handle(&self, mut processing: Processing<'_, K>) {
        if self.guard.holds(&processing.key) {
            processing.is_handled = true;
            return;
        }
        processing.session.act_for(self.tracker.object(&processing.key));
        let attempt = self.queue.failures(&processing.key) + 1;
        processing.session.sent_by(&RequestOrigin::of_key(self.core.name, &processing.key, attempt));
        let Processing { key, session, .. } = &processing;
        let object = key.object();
        let begun = self.recording.begin(key, attempt, session);
        let span = tracing::info_span!(
            "reconcile",
            controller = self.core.controller,
            r#loop = self.core.name,
            namespace = object.and_then(|object| object.namespace()),
            name = object.map(ObjectKey::name),
            attempt,
        );
        let outages = self.core.api.connection().outages();
        let result = AssertUnwindSafe(async { self.reconciler.reconcile(key, session).await })
            .catch_unwind()
            .instrument(span.clone())
            .await;
        let ended = span.in_scope(|| match result {
            Ok(Ok(())) => self.succeeded(key, session.requeue_delay()),
            Ok(Err(error)) => self.failed(key, &error, outages),
            Err(panic) => self.panicked(key, &panic_message(&*panic)),
        });
        self.guard.await_changes(key, &session.take_awaited());
        let has_succeeded = matches!(ended, Ended::Succeeded { .. });
        self.recording.end(key, begun, session, ended);
        // After a failure the key has its back-off, and a time that is past would undo it.
        if let Some(delay) = session.requeue_delay().filter(|delay| has_succeeded || !delay.is_zero()) {
            self.queue.add_after(key.clone(), delay, Priority::Live);
        }
        processing.is_handled = true;
    }

    fn succeeded(&self, key: &K, requeue_after: Option<Duration>) -> Ended {
        self.core.metrics.reconciled(self.core.controller, self.core.name, "success");
        self.queue.forget(key);
        Ended::Succeeded { requeue_after }
    }

    /// Requeues a key whose reconcile began when there had been so many `outages`.
    fn failed(&self, key: &K, error: &ReconcileError, outages: u64) -> Ended {
        let source = std::error::Error::source(error);
        let message: Box<str> = source.map_or_else(|| error.to_string(), error_chain).into();
        let failure =
            Failure { key: key.clone(), class: error.class(), message: message.clone(), span: Span::current() };
        let class = failure.class;
        if class.may_be_outage() && !self.core.api.connection().has_served_since(outages) {
            tracing::debug!(%key, error = source, "Reconcile failed, maybe in an outage; a probe decides");
            self.undecided.add(failure, outages);
            return Ended::Unreachable { error: message };
        }
        self.count_failure(&failure);
        Ended::Failed { class: class.as_str(), error: message }
    }

    /// Counts, logs and requeues a failure that is no outage.
    fn count_failure(&self, failure: &Failure<K>) {
        let Failure { key, class, message, .. } = failure;
        self.core.metrics.reconciled(self.core.controller, self.core.name, class.as_str());
        match class {
            Class::Conflict if !class.is_logged(self.queue.failures(key)) => {
                tracing::debug!(%key, error = %message, "Conflict; requeued");
            }
            Class::Conflict | Class::Transient | Class::Unavailable => {
                tracing::warn!(%key, error = %message, "Reconcile failed; requeued with back-off");
            }
            Class::Terminal => {
                tracing::warn!(%key, error = %message, "Reconcile failed; not requeued until something changes");
            }
            Class::Forbidden => tracing::error!(
                %key, error = %message,
                "Reconcile lacks a permission: grant it to the user that the message names",
            ),
        }
        self.requeue(key, *class);
    }

    fn requeue(&self, key: &K, class: Class) {
        match class.retry(self.queue.failures(key)) {
            Retry::BackOff => self.queue.retry(key.clone()),
            Retry::BackOffWithin(longest) => self.queue.retry_within(key.clone(), longest),
            Retry::After(delay) => self.queue.add_after(key.clone(), delay, Priority::Live),
            Retry::OnChange => self.queue.forget(key),
        }
    }

    /// Requeues the undecided keys: without back-off if they failed in an outage, else as every other failure. Never
    /// returns.
    async fn decide(&self) {
        self.undecided
            .decide(|failure, was_reachable| {
                if was_reachable {
                    failure.span.in_scope(|| self.count_failure(&failure));
                    return;
                }
                let Failure { key, .. } = failure;
                self.core.metrics.reconciled(self.core.controller, self.core.name, "unreachable");
                self.recording.triggers().add(&key, TriggerCause::OutageEnded, None, None);
                self.queue.add(key, Priority::Live);
            })
            .await;
    }

    fn panicked(&self, key: &K, panic: &str) -> Ended {
        self.core.metrics.reconciled(self.core.controller, self.core.name, "panic");
        tracing::error!(%key, panic, "Reconcile panicked; requeued with back-off");
        self.core.context.failures.note(self.core.controller, &format!("the reconcile of {key}"), panic);
        self.queue.retry(key.clone());
        Ended::Panicked(panic.into())
    }
}

/// A reconcile that has failed.
struct Failure<K> {
    key: K,
    class: Class,
    message: Box<str>,
    /// The span of the reconcile, which names the loop and the attempt in logs.
    span: Span,
}

/// A key that a worker processes. When it is dropped, the key returns to the queue and waits for its pending writes.
struct Processing<'a, K: QueueKey> {
    shared: &'a Workers<K>,
    key: K,
    session: Session,
    /// The barrier, if the loop has one. It opens when the caches show the writes of this key.
    inside: Option<Inside<'a>>,
    is_handled: bool,
}

impl<'a, K: QueueKey> Processing<'a, K> {
    fn new(shared: &'a Workers<K>, key: K, inside: Option<Inside<'a>>) -> Self {
        Self { shared, key, session: shared.session(), inside, is_handled: false }
    }
}

impl<K: QueueKey> Drop for Processing<'_, K> {
    fn drop(&mut self) {
        if !self.is_handled {
            self.shared.queue.add(self.key.clone(), Priority::Live);
        }
        let mut writes = self.session.take_pending_writes();
        if let Some(inside) = &mut self.inside {
            inside.writes = std::mem::take(&mut writes);
        }
        self.shared.tracker.finish(&self.key, self.session.acted_for(), &writes);
    }
}
