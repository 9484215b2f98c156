//! Runs the manager: what a command line without a sub-command does.

use std::sync::Arc;

use kcm_framework::client::{connect, load_config};
use kcm_framework::clock::SystemClock;
use kcm_framework::{Manager, Stop, error_chain};

use crate::identities;
use crate::leader_election::{self, Ended, Options};
use crate::logs::{Logs, UNSTRUCTURED};
use crate::reload::{Reloader, SettingsSource};
use crate::serving::{Bound, Serving, ServingError, ServingState};
use crate::settings::{Configured, Election};
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
    let Configured {
        manager,
        kubeconfig,
        master,
        service_accounts,
        election,
        serving,
        selection: _,
        limits: _,
        warnings: _,
    } = configured;
    let refused = |error: &dyn std::error::Error| Failure { exit: Exit::Refused, reasons: vec![error_chain(error)] };
    let bound = serving.map(|options| Bound::bind(options, Arc::new(SystemClock))).transpose();
    let bound = bound.map_err(|error| refused(&error))?;
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
    let url = cluster.cluster_url.to_string();
    let manager = if service_accounts {
        let accounts = identities::clients(&manager, client, &cluster).map_err(|error| refused(&error))?;
        manager.build(accounts, url)
    } else {
        manager.build(client, url)
    };
    let state = ServingState {
        settings: source.start.clone(),
        metrics: Arc::clone(manager.metrics()),
        manager: manager.handle(),
        live: Vec::new(),
        ready: Vec::new(),
    };
    let reloader = Reloader::new(source, logs, manager.clients().clone(), manager.handle(), manager.metrics());
    let mut serving = match bound {
        Some(bound) => Some(bound.serve(state, fastrand::u64(..)).await.map_err(|error| refused(&error))?),
        None => None,
    };
    let ended = tokio::select! {
        ended = run_elected(manager, cluster, election, stop) => ended,
        failed = reloader.run() => match failed {
            Ok(never) => match never {},
            Err(error) => Err(refused(&error)),
        },
        error = failed(&mut serving) => Err(not_served(&error)),
    };
    if let Some(serving) = serving {
        serving.stop().await;
    }
    ended
}

/// Waits until the HTTPS port cannot be served any more; for ever without one.
async fn failed(serving: &mut Option<Serving>) -> ServingError {
    match serving {
        Some(serving) => serving.failed().await,
        None => std::future::pending().await,
    }
}

fn not_served(error: &ServingError) -> Failure {
    let exit = if matches!(error, ServingError::Lookup(_)) { Exit::ApiServer } else { Exit::Refused };
    Failure { exit, reasons: vec![error_chain(error)] }
}

/// Runs the manager until `stop`: all of the time, or while this process leads.
async fn run_elected(
    manager: Manager,
    cluster: kube::Config,
    election: Option<Election>,
    stop: Stop,
) -> Result<(), Failure> {
    let failure = |exit: Exit, error: &dyn std::error::Error| Failure { exit, reasons: vec![error_chain(error)] };
    let Some(Election { settings, policy, limits }) = election else {
        return manager.run(stop).await.map_err(|error| failure(Exit::ApiServer, &error));
    };
    let identity = leader_election::identity().map_err(|error| failure(Exit::Refused, &error))?;
    let options = Options { lease: settings.lease(), identity, timing: settings.timing(), limits, releases: true };
    leader_election::run(manager, cluster, options, policy, stop).await.map_err(|error| {
        let exit = match &error {
            Ended::Manager(_) => Exit::ApiServer,
            Ended::Thread(_) => Exit::Refused,
            Ended::LeaseLost => Exit::LeaseLost,
        };
        failure(exit, &error)
    })
}
