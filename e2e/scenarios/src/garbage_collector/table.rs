//! The rows of the table of API scenarios that controllers act in: the same on a control plane and in a sandbox.

use anyhow::{Result, bail};
use futures::{StreamExt, stream};
use kcm_e2e_harness::scenario::Case;
use kcm_sandbox_conformance::{self as scenarios, Side};

use super::super::alone::Alone;

/// Every row holds, all at the same time.
pub(super) async fn holds(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    // Only a sandbox has no account of a manager.
    let side = if alone.plane.manager_kubeconfig().is_some() { Side::Upstream } else { Side::Sandbox };
    let rows = scenarios::collected();
    let client = alone.plane.client();
    let plays = rows.iter().enumerate().map(async |(index, row)| {
        let played = scenarios::run(row, &client, &format!("row-{index}"), side).await;
        played.err().map(|failure| failure.to_string())
    });
    let failures: Vec<String> =
        stream::iter(plays).buffer_unordered(rows.len()).filter_map(async |it| it).collect().await;
    if failures.is_empty() {
        return Ok(());
    }
    bail!("{} of {} rows do not hold:\n\n{}\n", failures.len(), rows.len(), failures.join("\n\n"))
}
