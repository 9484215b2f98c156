//! Supervision of controllers: each is initialized, run, restarted with back-off if it fails, and stopped.
//!
//! ```text
//!           selected            Ok(loops)           caches synced
//! Disabled ─────────▶ Initializing ────▶ Initialized ────────────▶ Running
//!    ▲                 │  ▲  │  ▲                                    │
//!    │           no loops │ Err back-off                             │ deselected, or a resource
//!    │                 ▼  │  ▼  │                                    │ that it reads disappears
//!    │            Skipped   Restarting                               ▼
//!    └───────────────────────────────────────────────────────────  drained
//! ```
//!
//! # Guarantees
//!
//! - *An `InitFunc` that hangs costs itself only.* The next controller starts after [`INIT_PATIENCE`]; the slow one
//!   continues in the background. It is not started again, because an initialization that always takes longer would
//!   never end.
//! - *A controller whose resources are not served is initialized when they are.* An `InitFunc` that returns no
//!   loops is called again after each change of the served resources.
//! - *A controller stops while a resource that it reads is not served.* Its loops drain, its event handlers and unused
//!   informers go, and its `InitFunc` is called again.
//! - *A controller that is taken away drains and leaves nothing behind*, and an added controller starts as at the start
//!   of the manager.
//! - *Loops stop and start again while informers stay*, all loops or the loops of some controllers.
//! - *A controller that a reload adds reads its own settings of that reload*, and is not started if it reads a setting
//!   of another or a feature gate that has changed since the start.
//! - *A loop that makes no progress while it has work is stalled*: after [`STALLED_AFTER`](crate::STALLED_AFTER), log,
//!   metrics and the handle of the manager show the key and for how long.
//! - *An `InitFunc` that fails is tried again while its siblings run*, with back-off. A panic is a failure.
//! - *A loop that dies is started again with back-off, and its siblings go on.*
//! - *No loop begins before each cache that it reads shows every write of the predecessor* if the manager
//!   [takes over](crate::ManagerHandle::start_loops_after).
//! - *A failure of a controller ends the manager where the host wants that*, instead of being tried again.

mod controls;
mod keep_running;
mod metrics;
mod record;
mod restarts;
mod served;
mod stalls;
mod status;
mod turns;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use kcm_client::BoxError;
use kcm_config::Effective;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use self::controls::Controls;
use self::keep_running::keep_running;
pub(crate) use self::metrics::ControllerMetrics;
pub(crate) use self::record::Record;
pub(crate) use self::restarts::BACKOFF;
pub use self::restarts::GRACE;
use self::restarts::{Panicked, pause, report};
use self::served::disappeared;
pub use self::status::{ControllerState, ControllerStatus, LoopState, LoopStatus};
pub(crate) use self::turns::{Turn, Turns, jittered};
use crate::control_loop::Loop;
use crate::controller::{ControllerContext, ControllerDescriptor, Loops, SharedContext};

/// Time for which the initialization of a controller delays the start of the next controller.
pub const INIT_PATIENCE: Duration = Duration::from_secs(10);

type Initialized = Result<Loops, BoxError>;

/// The end of [`Supervisor::serve`].
enum Served {
    /// The controller must stop.
    Ended,
    /// A reload enabled it, and it reads settings of others that have changed since the start.
    NotStarted { outdated: BTreeSet<String> },
}

/// The supervisor of one controller.
pub(crate) struct Supervisor {
    descriptor: ControllerDescriptor,
    shared: Arc<SharedContext>,
    record: Arc<Record>,
    controls: Arc<Controls>,
    turns: Turns,
    /// The turn of the first start, which the manager takes, so that controllers start in its order.
    first_turn: Mutex<Option<Turn>>,
}

impl Supervisor {
    pub(crate) fn new(
        descriptor: ControllerDescriptor,
        shared: &Arc<SharedContext>,
        record: Arc<Record>,
        controls: Arc<Controls>,
        turns: &Turns,
    ) -> Self {
        let (shared, turns) = (Arc::clone(shared), turns.clone());
        Self { descriptor, shared, record, controls, turns, first_turn: Mutex::new(None) }
    }

    /// Starts the controller in that turn, if it is enabled then.
    pub(crate) fn in_turn(self, turn: Turn) -> Self {
        *self.first_turn.lock() = Some(turn);
        self
    }

    /// Runs the controller while it is enabled, until `cancel`.
    pub(crate) async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let _stopped = StoppedOnDrop(&self.record);
        let controller = self.descriptor.name;
        while !cancel.is_cancelled() {
            // The start of the manager waits until this turn ends, so it ends in every case but a start.
            let turn = self.first_turn.lock().take();
            if !self.controls.enables(&self.descriptor) {
                if self.descriptor.on_by_default {
                    tracing::warn!(controller, "Controller is disabled");
                } else {
                    tracing::info!(controller, "Controller is disabled by default");
                }
                self.record.enter(ControllerState::Disabled("--controllers does not enable it".to_owned()));
                drop(turn);
                cancel.run_until_cancelled(self.controls.enabled(&self.descriptor)).await;
                continue;
            }
            if !self.shared.needs.include(self.descriptor.needs) {
                let reason = "it reads parts of objects that the caches do not keep: restart the manager to enable it";
                tracing::error!(controller, reason, "Controller is not started");
                self.record.enter(ControllerState::Disabled(reason.to_owned()));
                drop(turn);
                cancel.run_until_cancelled(self.controls.disabled(&self.descriptor)).await;
                continue;
            }
            let reloads = self.shared.live_settings.reloads();
            let life = cancel.child_token();
            let mut serving = pin!(self.serve(&life, turn));
            tokio::select! {
                biased;
                () = self.controls.disabled(&self.descriptor) => {
                    tracing::info!(controller, "Stopping controller because it is now disabled");
                    self.record.enter(ControllerState::Stopping);
                    life.cancel();
                    self.drain(self.controls.grace(), serving.map(drop)).await;
                }
                served = &mut serving => match served {
                    Served::Ended => {}
                    Served::NotStarted { outdated } => {
                        cancel.run_until_cancelled(self.not_started(outdated, reloads)).await;
                    }
                },
            }
        }
    }

    /// Initializes the controller and runs its loops, again and again, until `life` is cancelled.
    async fn serve(&self, life: &CancellationToken, first_turn: Option<Turn>) -> Served {
        let controller = self.descriptor.name;
        self.record.enter(ControllerState::Pending);
        let next_turn = async {
            match first_turn {
                Some(turn) => turn,
                None => self.turns.next().await,
            }
        };
        let Some(turn) = life.run_until_cancelled(next_turn).await else { return Served::Ended };
        let mut turn = Some(turn);
        let mut backoff = BACKOFF;
        let mut was_skipped = false;
        while !life.is_cancelled() {
            // From before the call, which may rest on what was served then.
            let mut changes = self.shared.discovery.changes();
            let attempt = Attempt::new(self);
            let initializing = self.initialize(&attempt.context, turn.take());
            let Some(initialized) = life.run_until_cancelled(initializing).await else { return Served::Ended };
            let outdated = attempt.context.outdated_settings(self.descriptor.required_gates);
            if !outdated.is_empty() {
                return Served::NotStarted { outdated };
            }
            match initialized {
                Ok(Loops { none_because: Some(reason), .. }) => {
                    drop(attempt);
                    self.record.enter(ControllerState::Skipped);
                    if !std::mem::replace(&mut was_skipped, true) {
                        tracing::info!(controller, %reason, "Skipping controller");
                    }
                    if let Some(Err(_)) = life.run_until_cancelled(changes.changed()).await {
                        life.cancelled().await;
                    }
                }
                Ok(initialized) => {
                    was_skipped = false;
                    tracing::info!(controller, "Initialized controller");
                    self.record.initialized(&initialized);
                    self.run_loops(&attempt.context, initialized.all, life).await;
                }
                Err(error) => {
                    drop(attempt);
                    self.record.failed(&*error);
                    report(&self.shared.failures, controller, "its initialization", &*error);
                    pause(life, backoff.delay_after(Duration::ZERO)).await;
                }
            }
        }
        Served::Ended
    }

    /// Waits until the controller is disabled, or until the next of `reloads`, whose settings it then has.
    async fn not_started(&self, outdated: BTreeSet<String>, mut reloads: watch::Receiver<Effective>) {
        let controller = self.descriptor.name;
        let outdated = outdated.into_iter().collect::<Vec<_>>().join(" and ");
        let reason = format!("it reads {outdated}, changed since the start: restart the manager to enable it");
        tracing::warn!(controller, reason, "Controller is not started");
        self.record.enter(ControllerState::Disabled(reason));
        tokio::select! {
            biased;
            () = self.controls.disabled(&self.descriptor) => {}
            _ = reloads.changed() => self.shared.live_settings.enable(controller),
        }
    }

    /// Calls the `InitFunc` once. In a turn, after the delay of the turn, which ends with the call or after
    /// [`INIT_PATIENCE`].
    async fn initialize(&self, context: &ControllerContext, turn: Option<Turn>) -> Initialized {
        let controller = self.descriptor.name;
        let mut turn = turn;
        if let Some(turn) = &mut turn {
            turn.delay().await;
            tracing::info!(controller, "Starting controller");
        }
        self.record.enter(ControllerState::Initializing);
        // Called within the future, so that a panic before the first await is caught as well.
        let initialized = AssertUnwindSafe(async { self.descriptor.initialize(context).await }).catch_unwind();
        let mut initialized = pin!(initialized.map(|ended| ended.unwrap_or_else(|panic| Err(Panicked::of(&*panic)))));
        if let Ok(initialized) = timeout(INIT_PATIENCE, &mut initialized).await {
            return initialized;
        }
        let waited = INIT_PATIENCE;
        tracing::warn!(controller, ?waited, "Controller is still initializing; starting other controllers meanwhile");
        drop(turn);
        initialized.await
    }

    /// Runs the loops while the manager's loops run, until `life` is cancelled or a resource that they read disappears.
    async fn run_loops(&self, context: &ControllerContext, loops: Vec<Loop>, life: &CancellationToken) {
        let controller = self.descriptor.name;
        let reads = loops.iter().flat_map(|one| &one.reads).map(|cache| cache.resource().clone());
        let mut gone = pin!(disappeared(context.discovery(), reads.collect()));
        loop {
            self.record.enter(ControllerState::Initialized);
            let may_run = async {
                context.informers_started().await;
                self.controls.loops_may_run(controller).await;
            };
            tokio::select! {
                biased;
                () = life.cancelled() => return,
                resource = &mut gone => return self.report_gone(&resource),
                () = may_run => {}
            }
            let _active = self.controls.active(controller);
            let since = self.controls.since(controller);
            self.record.enter(ControllerState::Running);
            tracing::info!(controller, "Started controller");
            let session = life.child_token();
            let mut running = pin!(async {
                let loops = loops.iter().enumerate();
                let loops =
                    loops.map(|(at, one)| keep_running(context, &self.record, (at, one), since, session.clone()));
                join_all(loops).await;
                // A controller whose tasks have ended keeps its event handlers until it is stopped.
                session.cancelled().await;
            });
            let (grace, gone) = tokio::select! {
                biased;
                grace = self.controls.loops_must_stop(controller) => (grace, None),
                resource = &mut gone => (self.controls.grace(), Some(resource)),
                () = &mut running => return,
            };
            self.record.enter(ControllerState::Stopping);
            if let Some(resource) = &gone {
                self.report_gone(resource);
            }
            session.cancel();
            self.drain(grace, running).await;
            if gone.is_some() {
                return;
            }
        }
    }

    async fn drain(&self, grace: Duration, running: impl Future<Output = ()>) {
        if timeout(grace, running).await.is_err() {
            let controller = self.descriptor.name;
            tracing::warn!(controller, ?grace, "Controller did not finish in time; its loops are aborted");
        }
    }

    fn report_gone(&self, resource: &kcm_api::Resource) {
        let controller = self.descriptor.name;
        tracing::warn!(controller, %resource, "A resource that the controller reads is no longer served; stopping the controller");
    }
}

/// One initialization, and what it has registered; that ends with this value.
struct Attempt<'a> {
    context: ControllerContext,
    record: &'a Record,
}

impl<'a> Attempt<'a> {
    fn new(supervisor: &'a Supervisor) -> Self {
        let context = ControllerContext::new(supervisor.descriptor.parts(), Arc::clone(&supervisor.shared));
        Self { context, record: &supervisor.record }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.record.clear();
        self.context.registrations().remove_all();
    }
}

struct StoppedOnDrop<'a>(&'a Record);

impl Drop for StoppedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.enter(ControllerState::Stopped);
    }
}
