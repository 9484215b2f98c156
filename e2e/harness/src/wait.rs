//! Waiting for a condition, never for a time.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

/// The time limit of a condition that has no other: long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

const POLL: Duration = Duration::from_millis(50);

/// Repeats `check` until it succeeds, for at most [`PATIENCE`].
///
/// An error means "not yet": `ensure!` states the condition, and the last error is the reason
/// given when patience ends.
///
/// # Errors
///
/// The last error of `check`, under `what` was waited for.
pub async fn eventually<T>(what: &str, check: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    eventually_within(what, PATIENCE, check).await
}

/// As [`eventually`], with a time limit of its own.
///
/// # Errors
///
/// The last error of `check`, under `what` was waited for.
pub async fn eventually_within<T>(
    what: &str,
    within: Duration,
    mut check: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + within;
    loop {
        let last = match check().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            return Err(last).with_context(|| format!("waited {} s for {what}", within.as_secs()));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Repeats `check` for the whole of `during`; it must succeed every time.
///
/// # Errors
///
/// The first error of `check`, under `what` was to hold.
pub async fn throughout(what: &str, during: Duration, mut check: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    let end = Instant::now() + during;
    while Instant::now() < end {
        check().await.with_context(|| format!("for {} s this was to hold: {what}", during.as_secs()))?;
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::{bail, ensure};

    use super::{eventually, eventually_within, throughout};

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_comes_true_is_returned() {
        let mut tries = 0;
        let answer = eventually("the third time", async || {
            tries += 1;
            ensure!(tries == 3, "tried {tries} times");
            Ok(tries)
        });
        assert_eq!(answer.await.expect("it comes true"), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_never_comes_true_says_what_and_why() {
        let never = eventually_within::<()>("rain", Duration::from_secs(2), async || bail!("the sky is blue"));
        let error = format!("{:#}", never.await.expect_err("it never comes"));
        assert_eq!(error, "waited 2 s for rain: the sky is blue");
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_must_hold_fails_at_once_when_it_breaks() {
        let mut tries = 0;
        let broken = throughout("few questions", Duration::from_mins(1), async || {
            tries += 1;
            ensure!(tries < 5, "tried {tries} times");
            Ok(())
        });
        assert!(broken.await.is_err());
        assert_eq!(tries, 5);
    }
}
