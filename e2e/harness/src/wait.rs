//! Waiting for a condition, never for a time.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
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

/// What `read` returns once that has been the same for `quiet`.
///
/// # Errors
///
/// The first error of `read`, or that it never comes to rest.
pub async fn at_rest<T: PartialEq + Debug>(quiet: Duration, read: impl AsyncFn() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let (mut since, mut last) = (start, read().await?);
    while since.elapsed() < quiet {
        ensure!(start.elapsed() < PATIENCE, "it never comes to rest: {last:?}");
        tokio::time::sleep(POLL).await;
        let now = read().await?;
        if now != last {
            (since, last) = (Instant::now(), now);
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::{bail, ensure};

    use super::{at_rest, eventually, eventually_within, throughout};

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
    #[tokio::test(start_paused = true)]
    async fn what_changes_is_not_at_rest() {
        let reads = std::cell::Cell::new(0);
        let read = async || {
            reads.set(reads.get() + 1);
            Ok(reads.get().min(10))
        };
        assert_eq!(at_rest(Duration::from_secs(1), read).await.expect("it comes to rest"), 10);
        let restless = async || {
            reads.set(reads.get() + 1);
            Ok(reads.get())
        };
        let error = at_rest(Duration::from_secs(1), restless).await.expect_err("it never rests");
        assert!(error.to_string().starts_with("it never comes to rest"));
    }
}
