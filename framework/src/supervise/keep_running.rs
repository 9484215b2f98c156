//! One loop of a controller: it waits for its caches, runs, and is started again if it fails.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::join_all;
use kcm_informers::Moment;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::record::Record;
use super::restarts::{BACKOFF, Panicked, pause, report};
use super::stalls;
use super::status::LoopState;
use crate::control_loop::Loop;
use crate::controller::ControllerContext;

/// Runs the loop until `cancel`, or until it has nothing more to do. `at` is its place in the record. After a takeover,
/// its caches must be current `since` then.
pub(super) async fn keep_running(
    context: &ControllerContext,
    record: &Record,
    (at, one): (usize, &Loop),
    since: Option<Moment>,
    cancel: CancellationToken,
) {
    let controller = context.controller();
    let _stopped = StoppedOnDrop { record, at };
    if !one.reads.is_empty() {
        record.loop_waits(at, since);
        tracing::info!(controller, r#loop = one.name, "Waiting for caches to sync");
        let ready = join_all(one.reads.iter().map(|cache| async move {
            Arc::clone(cache).wait_synced().await;
            if let Some(since) = since {
                cache.wait_current(since).await;
            }
        }));
        if cancel.run_until_cancelled(ready).await.is_none() {
            return;
        }
        tracing::info!(controller, r#loop = one.name, "Caches are synced");
    }
    let mut backoff = BACKOFF;
    loop {
        record.loop_enters(at, LoopState::Running);
        let started = Instant::now();
        let run = AssertUnwindSafe(async { (one.run)(cancel.clone()).await }).catch_unwind();
        let ended = tokio::select! {
            biased;
            ended = run => ended,
            never = stalls::watch(context, record, at, one) => match never {},
        };
        record.loop_stalls(at, None);
        let error = match ended {
            Ok(Ok(())) if cancel.is_cancelled() => return,
            Ok(Ok(())) => {
                record.loop_enters(at, LoopState::Ended);
                return cancel.cancelled().await;
            }
            Ok(Err(error)) => error,
            Err(panic) => Panicked::of(&*panic),
        };
        record.loop_failed(at, &*error);
        report(context.failures(), controller, one.name, &*error);
        context.metrics().loop_failed(controller, one.name);
        if !pause(&cancel, backoff.delay_after(started.elapsed())).await {
            return;
        }
    }
}

struct StoppedOnDrop<'a> {
    record: &'a Record,
    at: usize,
}

impl Drop for StoppedOnDrop<'_> {
    fn drop(&mut self) {
        self.record.loop_enters(self.at, LoopState::Stopped);
    }
}
