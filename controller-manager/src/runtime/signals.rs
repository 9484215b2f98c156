//! Signals: the first drains, the second ends the process at once.

use std::convert::Infallible;
use std::io;

use kcm_framework::Stop;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The two signals that end a process, once they are caught.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches SIGTERM and SIGINT from now on.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Passes signals on to `stop`, for ever.
    pub(crate) async fn pass_to(mut self, stop: Stop) -> Infallible {
        self.next().await;
        tracing::info!("Waiting for running reconciles to finish; a second signal ends the process at once");
        stop.drain.cancel();
        self.next().await;
        tracing::warn!("Aborting running reconciles");
        stop.abort.cancel();
        std::future::pending().await
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
