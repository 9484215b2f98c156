//! Runs the manager: what a command line without a sub-command does.

use kcm_framework::client::{connect, load_config};
use kcm_framework::{Stop, error_chain};

use crate::logs::{Logs, UNSTRUCTURED};
use crate::reload::{Reloader, SettingsSource};
use crate::settings::Configured;
use crate::{Exit, Failure};

/// Warns of settings that have no effect or are deprecated, and of what is missing.
pub(crate) fn warn(warnings: &[impl std::fmt::Display]) {
    for warning in warnings {
        tracing::warn!(target: UNSTRUCTURED, "{warning}");
    }
}

/// Connects to the API server and runs the manager until `stop`, with settings that are reloaded from their `source`.
pub(crate) async fn run(
    configured: Configured,
    source: SettingsSource,
    logs: &Logs,
    stop: Stop,
) -> Result<(), Failure> {
    let Configured { manager, kubeconfig, master, selection: _, limits: _, warnings: _ } = configured;
    let refused = |error: &dyn std::error::Error| Failure { exit: Exit::Refused, reasons: vec![error_chain(error)] };
    let mut cluster = load_config(kubeconfig.as_deref()).await.map_err(|error| refused(&error))?;
    if let Some(master) = master {
        cluster.cluster_url = master.parse().map_err(|_| Failure {
            exit: Exit::Refused,
            reasons: vec![format!(
                "--master is {master:?}, expected the address of the API server, such as https://HOST:6443"
            )],
        })?;
    }
    let client = connect(&cluster).map_err(|error| refused(&error))?;
    let manager = manager.build(client, cluster.cluster_url.to_string());
    let reloader = Reloader::new(source, logs, manager.clients().clone(), manager.handle(), manager.metrics());
    let ended = tokio::select! {
        ended = manager.run(stop) => ended,
        failed = reloader.run() => match failed {
            Ok(never) => match never {},
            Err(error) => return Err(refused(&error)),
        },
    };
    ended.map_err(|error| Failure { exit: Exit::ApiServer, reasons: vec![error_chain(&error)] })
}
