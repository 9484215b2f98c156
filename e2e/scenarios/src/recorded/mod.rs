//! The same changes by kubectl under the peer and under ours, with a comparison of all that follows from each.

mod objects;
mod rounds;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::wait::PATIENCE;
use tokio::time::{Instant, sleep};

use self::objects::{Names, Objects};
pub(super) use self::rounds::{Script, Stage, play_rounds, prepare};

/// A change has had its effect when nothing else has changed for so long.
const QUIET: Duration = Duration::from_millis(1_500);

/// What there is, in lines without names, times and versions that differ from run to run.
pub(super) type Record = BTreeSet<String>;

/// Makes each change, and returns what there is before the first and after each.
pub(super) async fn play(
    kubectl: &Kubectl<'_>,
    changes: &[String],
    mut read: impl AsyncFnMut() -> Result<Record>,
) -> Result<Vec<Record>> {
    let mut records = vec![at_rest(&mut read).await.context("before the first change")?];
    for change in changes {
        kubectl.run(change).await?;
        records.push(at_rest(&mut read).await.with_context(|| format!("after {change:?}"))?);
    }
    Ok(records)
}

/// What `read` returns once that has been the same for [`QUIET`].
async fn at_rest<T: PartialEq + Debug>(mut read: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let (mut since, mut last) = (start, read().await?);
    while since.elapsed() < QUIET {
        ensure!(start.elapsed() < PATIENCE, "it never comes to rest: {last:?}");
        sleep(Duration::from_millis(100)).await;
        let now = read().await?;
        if now != last {
            (since, last) = (Instant::now(), now);
        }
    }
    Ok(last)
}

/// Fails with each change after which `ours` is other than `theirs`.
pub(super) fn are_equal(changes: &[String], theirs: &[Record], ours: &[Record]) -> Result<()> {
    let mut differences = Vec::new();
    let steps = ["the start"].into_iter().chain(changes.iter().map(String::as_str));
    for (step, (theirs, ours)) in steps.zip(theirs.iter().zip(ours)) {
        if theirs != ours {
            let but = |of: &Record, other: &Record| of.difference(other).cloned().collect::<Vec<_>>();
            differences.push(format!("after {step}: theirs {:#?}, ours {:#?}", but(theirs, ours), but(ours, theirs)));
        }
    }
    ensure!(differences.is_empty(), "they differ:\n{}", differences.join("\n"));
    ensure!(theirs.len() == ours.len() && theirs.len() == changes.len() + 1, "not all changes were made");
    Ok(())
}
