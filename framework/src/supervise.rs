//! Supervision of controllers: an `InitFunc` or a loop that fails or panics is started again with back-off.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use kcm_informers::{Backoff, panic_message};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::control_loop::Loop;
use crate::controller::{ControllerContext, ControllerDescriptor, Running};
use crate::error::BoxError;

/// The back-off of an `InitFunc` or a loop that fails: 1 s doubling to a minute, reset by a run of two minutes.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1), Duration::from_mins(2));

/// A controller between its first initialization and the end of its loops.
///
/// Made by [`initialize`](Self::initialize), which never fails: an error is logged, and [`run`](Self::run)
/// initializes again.
#[must_use]
pub(crate) struct Supervised {
    context: ControllerContext,
    loops: Option<Vec<Loop>>,
}

impl Supervised {
    /// Calls the `InitFunc` of the controller once. `None` where the cluster does not serve the resources that it
    /// needs.
    pub(crate) async fn initialize(descriptor: &ControllerDescriptor, context: ControllerContext) -> Option<Self> {
        match try_initialize(descriptor, &context).await {
            Ok(Some(running)) => {
                tracing::info!(controller = descriptor.name(), "Initialized controller");
                Some(Self { context, loops: Some(running.loops) })
            }
            Ok(None) => {
                skipped(descriptor.name());
                None
            }
            Err(error) => {
                report(descriptor.name(), "its initialization", &*error);
                Some(Self { context, loops: None })
            }
        }
    }

    /// Runs the controller's loops until `cancel`; initializes again with back-off where that failed.
    pub(crate) async fn run(self, descriptor: ControllerDescriptor, cancel: CancellationToken) {
        let Self { context, mut loops } = self;
        let mut backoff = BACKOFF;
        let loops = loop {
            if let Some(loops) = loops.take() {
                break loops;
            }
            if !pause(&cancel, backoff.delay_after(Duration::ZERO)).await {
                return;
            }
            match try_initialize(&descriptor, &context).await {
                Ok(Some(running)) => loops = Some(running.loops),
                Ok(None) => return skipped(descriptor.name()),
                Err(error) => report(descriptor.name(), "its initialization", &*error),
            }
        };
        tracing::info!(controller = descriptor.name(), "Started controller");
        join_all(loops.iter().map(|one| keep_running(descriptor.name(), one, &context, cancel.clone()))).await;
        // A controller without loops has its event handlers until it is stopped.
        cancel.cancelled().await;
        context.registrations().remove_all();
    }
}

async fn try_initialize(
    descriptor: &ControllerDescriptor,
    context: &ControllerContext,
) -> Result<Option<Running>, BoxError> {
    // Called within the future, so that a panic before the first await is caught as well.
    let initialized = AssertUnwindSafe(async { descriptor.initialize(context).await })
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Panicked(panic_message(&*panic)).into()));
    match &initialized {
        Ok(Some(_)) => {}
        // Otherwise each attempt would leave event handlers behind, whose queues no worker empties.
        Ok(None) | Err(_) => context.registrations().remove_all(),
    }
    initialized
}

async fn keep_running(controller: &str, one: &Loop, context: &ControllerContext, cancel: CancellationToken) {
    let synced = join_all(one.reads.iter().map(|cache| Arc::clone(cache).wait_synced()));
    let reads_caches = !one.reads.is_empty();
    if reads_caches {
        tracing::info!(controller, what = one.name, "Waiting for caches to sync");
    }
    tokio::select! {
        () = cancel.cancelled() => return,
        _ = synced => {}
    }
    if reads_caches {
        tracing::info!(controller, what = one.name, "Caches are synced");
    }
    let mut backoff = BACKOFF;
    loop {
        let started = Instant::now();
        let ended = AssertUnwindSafe(async { (one.run)(cancel.clone()).await }).catch_unwind().await;
        match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => report(controller, one.name, &*error),
            Err(panic) => report(controller, one.name, &Panicked(panic_message(&*panic))),
        }
        context.metrics().loop_failed(controller, one.name);
        if !pause(&cancel, backoff.delay_after(started.elapsed())).await {
            return;
        }
    }
}

/// Waits for `delay`; returns whether it ended before `cancel`.
async fn pause(cancel: &CancellationToken, delay: Duration) -> bool {
    tokio::select! {
        () = cancel.cancelled() => false,
        () = tokio::time::sleep(delay) => true,
    }
}

fn skipped(controller: &str) {
    tracing::warn!(controller, "Skipping controller: the cluster does not serve what it needs");
}

fn report(controller: &str, what: &str, error: &(dyn std::error::Error + 'static)) {
    tracing::error!(controller, what, error, "Controller failed; restarting it with back-off");
}

/// An error from a panic, with its message.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
pub(crate) struct Panicked(pub(crate) String);
