//! Runs the manager: what a command line without a sub-command does.

use kcm_config::Warning;
use kcm_framework::client::{connect, load_config};
use kcm_framework::{Stop, error_chain};

use crate::logs::UNSTRUCTURED;
use crate::settings::Configured;
use crate::{Exit, Failure};

/// Warns of settings that have no effect or are deprecated.
pub(crate) fn warn(warnings: &[Warning]) {
    for warning in warnings {
        tracing::warn!(target: UNSTRUCTURED, "{warning}");
    }
}

/// Warns that nothing keeps a second replica from acting.
pub(crate) fn warn_of_missing_lease() {
    tracing::warn!("There is no leader election yet: run a single replica; --leader-elect=false silences this");
}

/// Connects to the API server and runs the manager until `stop`.
pub(crate) async fn run(configured: Configured, stop: Stop) -> Result<(), Failure> {
    let Configured { manager, kubeconfig } = configured;
    let refused = |error: &dyn std::error::Error| Failure { exit: Exit::Refused, reasons: vec![error_chain(error)] };
    let cluster = load_config(kubeconfig.as_deref()).await.map_err(|error| refused(&error))?;
    let client = connect(&cluster).map_err(|error| refused(&error))?;
    let ended = manager.build(client, cluster.cluster_url.to_string()).run(stop).await;
    ended.map_err(|error| Failure { exit: Exit::ApiServer, reasons: vec![error_chain(&error)] })
}
