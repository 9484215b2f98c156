//! Ending all processes when the program is interrupted.

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Does `work`, unless SIGINT or SIGTERM comes first: then `work` is dropped, and with it the
/// processes that it started.
///
/// # Errors
///
/// That of `work`, or that a signal came.
pub async fn or<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    tokio::select! {
        result = work => result,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}
