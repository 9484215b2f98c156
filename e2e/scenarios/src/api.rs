//! The table of API scenarios on the real API server, which the sandbox must serve alike.

use anyhow::{Result, bail};
use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt, stream};
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_sandbox_conformance::{self as scenarios, Side};

/// How many rows are played at a time.
const AT_ONCE: usize = 8;

// About no manager: the subject stands for both.
kcm_e2e_harness::scenarios! {
    Setup::of("").ours().with_own_managers() => {
        "api/table": table,
    }
}

/// Every row holds on a control plane of its own, on which nothing moves by itself.
async fn table(_: Case) -> Result<()> {
    let mut plane = ControlPlane::start(Options::default()).await?;
    let client = plane.client();
    let rows = scenarios::all();
    let plays = rows.iter().enumerate().map(|(index, row)| play(&client, index, row));
    let failures: Vec<String> = stream::iter(plays).buffer_unordered(AT_ONCE).filter_map(async |it| it).collect().await;
    plane.must_run()?;
    if failures.is_empty() {
        return Ok(());
    }
    plane.keep_logs();
    bail!("{} of {} rows do not hold:\n\n{}\n", failures.len(), rows.len(), failures.join("\n\n"))
}

fn play<'a>(
    client: &'a kube::Client,
    index: usize,
    row: &'a scenarios::Scenario,
) -> LocalBoxFuture<'a, Option<String>> {
    async move {
        let namespace = format!("row-{index}");
        let failure = scenarios::run(row, client, &namespace, Side::Upstream).await.err()?;
        Some(failure.to_string())
    }
    .boxed_local()
}
