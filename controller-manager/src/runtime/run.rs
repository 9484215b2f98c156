//! Runs the manager: the command line without a sub-command.

use std::sync::Arc;

use kcm_framework::client::{BootClock, connect_seeded, load_config};
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{ControllerStatus, Manager, ManagerError, ManagerHandle, Metrics, Stop, error_chain};
use kcm_serving::{Bound, Check, Serving, ServingError, ServingState};
use serde_json::json;
use tokio::task::JoinSet;

use super::client_certificate::ClientCertificate;
use super::process_metrics;
use super::profiler::profiler;
use crate::command_line::exit::Exit;
use crate::command_line::subcommand::Failure;
use crate::heartbeat::{Heartbeat, MainThreadLimits};
use crate::identities::{self, TokenHealth};
use crate::leader_election::{self, Candidate, Election, Ended, LeaderHealth, LeaseMetrics, Watchdog};
use crate::logs::{Logs, UNSTRUCTURED};
use crate::reload::{ReloadState, Reloader, SettingsSource};
use crate::settings::Configured;

/// Logs warnings about settings that have no effect or are deprecated, and about missing controllers.
pub(crate) fn warn(warnings: &[impl std::fmt::Display]) {
    for warning in warnings {
        tracing::warn!(target: UNSTRUCTURED, "{warning}");
    }
}

/// Connects to the API server and runs the manager until `stop`, with settings that are reloaded from their `source`.
pub(crate) async fn run(
    configured: Configured,
    source: SettingsSource,
    limits: MainThreadLimits,
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
    let refused = |error: &dyn std::error::Error| failure(Exit::Refused, error);
    let bound = serving.map(|options| Bound::bind(options, Arc::new(SystemClock))).transpose();
    let bound = bound.map_err(|error| refused(&error))?;
    let master = master.map(|master| {
        master.parse().map_err(|_| Failure {
            exit: Exit::Refused,
            reasons: vec![format!(
                "--master is {master:?}, expected the address of the API server, such as https://HOST:6443"
            )],
        })
    });
    let cluster = load_config(kubeconfig.as_deref(), master.transpose()?).await.map_err(|error| refused(&error))?;
    let metrics = Metrics::new();
    let client =
        connect_seeded(&cluster, metrics.exec_plugins(), fastrand::u64(..)).map_err(|error| refused(&error))?;
    let manager = manager.metrics(Arc::clone(&metrics));
    let url = cluster.cluster_url.to_string();
    let (manager, tokens) = if service_accounts {
        let accounts =
            identities::clients(&manager, client, &cluster, fastrand::u64(..)).map_err(|error| refused(&error))?;
        let tokens = accounts.health();
        (manager.build(accounts, url), Some(tokens))
    } else {
        (manager.build(client, url), None)
    };
    let heartbeat = Heartbeat::new();
    // Of its own, so that its beats wake nothing else.
    let mut beating = JoinSet::new();
    beating.spawn(heartbeat.clone().run());
    process_metrics::register(manager.metrics(), tokio::runtime::Handle::current(), heartbeat.clone());
    let (beats, limit) = (heartbeat.clone(), limits.unhealthy_after);
    let thread_check = Check::new(Heartbeat::CHECK, move || beats.check(limit));
    let watchdog = Watchdog::new(heartbeat, limits.exits_after, || Exit::LeaseLost.now());
    let certificate = ClientCertificate::of(&cluster.auth_info, Arc::new(SystemClock));
    if let Some(certificate) = &certificate {
        certificate.register(manager.metrics());
    }
    let certificate = certificate.map(|certificate| Check::new(ClientCertificate::NAME, move || certificate.check()));
    let candidate = candidate(election, manager.metrics(), watchdog)?;
    let leases = candidate.as_ref().map(Candidate::health);
    let leader_check = leases.clone().map(|health| Check::new(LeaderHealth::NAME, move || health.check()));
    let lease_connection =
        leases.clone().map(|health| Check::new(LeaderHealth::CONNECTION, move || health.check_connections()));
    let tokens = tokens.map(|tokens| Check::new(TokenHealth::NAME, move || tokens.check()));
    let reloads = ReloadState::new(manager.metrics());
    let readiness = reloads.clone();
    let state = ServingState {
        settings: source.start.clone(),
        metrics: Arc::clone(manager.metrics()),
        manager: manager.handle(),
        live: leader_check.into_iter().chain([thread_check]).collect(),
        ready: [controllers_check(manager.handle()), Check::new("configuration", move || readiness.check())]
            .into_iter()
            .chain(tokens)
            .chain(certificate)
            .chain(lease_connection)
            .collect(),
        leases: Box::new(move || leases.as_ref().map_or_else(|| json!([]), |leases| json!(leases.leases()))),
        profiler: profiler(&source.start),
        started: SystemClock.now(),
        set_verbosity: Box::new(logs.verbosity()),
    };
    let (clients, handle) = (manager.clients().clone(), manager.handle());
    let reloader = Reloader::new(source, logs, clients, handle, reloads, Arc::new(SystemClock));
    let mut serving = match bound {
        Some(bound) => Some(bound.serve(state, fastrand::u64(..)).await.map_err(|error| refused(&error))?),
        None => None,
    };
    let mut running = Box::pin(run_elected(manager, cluster, candidate, stop.clone()));
    let ended = tokio::select! {
        biased;
        ended = &mut running => Ok(ended),
        failed = reloader.run() => match failed {
            Ok(never) => match never {},
            Err(error) => Err(refused(&error)),
        },
        error = failed(&mut serving) => Err(not_served(&error)),
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(failure) => Err(drain(running, failure, &stop).await),
    };
    if let Some(serving) = serving {
        serving.stop().await;
    }
    ended
}

/// Stops the manager as a signal does, because something else has failed: its writes end and its lease is released. Returns
/// all reasons.
async fn drain(running: impl Future<Output = Result<(), Failure>>, mut failure: Failure, stop: &Stop) -> Failure {
    tracing::error!(reason = failure.reasons.join("; "), "Stopping the controllers, because another part has failed");
    stop.drain.cancel();
    if let Err(other) = running.await {
        failure.reasons.extend(other.reasons);
    }
    failure
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
    failure(exit, error)
}

/// Returns the check for problems that keep controllers from their work. It is for readiness, because a restart may not
/// help.
fn controllers_check(manager: ManagerHandle) -> Check {
    Check::new("controllers", move || {
        let problem = |one: &ControllerStatus| Some(format!("{}: {}", one.name, one.problem()?));
        let problems: Vec<String> = manager.controllers().iter().filter_map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    })
}

/// Returns the participant in leader election, if it is enabled.
fn candidate(election: Option<Election>, metrics: &Metrics, watchdog: Watchdog) -> Result<Option<Candidate>, Failure> {
    let candidate = |election| {
        let lease = metrics.register(LeaseMetrics::register);
        leader_election::identity().map(|identity| {
            Candidate::new(identity, election, lease, metrics.exec_plugins().clone(), watchdog, Arc::new(BootClock))
        })
    };
    election.map(candidate).transpose().map_err(|error| failure(Exit::Refused, &error))
}

/// Runs the manager until `stop`: all of the time, or while this process leads.
async fn run_elected(
    manager: Manager,
    cluster: kube::Config,
    candidate: Option<Candidate>,
    stop: Stop,
) -> Result<(), Failure> {
    let of_manager = |error: &ManagerError| {
        if error.is_controller_failure() { Exit::ControllerFailed } else { Exit::ApiServer }
    };
    let Some(candidate) = candidate else {
        return manager.run(stop).await.map_err(|error| failure(of_manager(&error), &error));
    };
    Box::pin(candidate.run(manager, cluster, stop)).await.map_err(|error| {
        let exit = match &error {
            Ended::Manager(error) => of_manager(error),
            Ended::Thread(_) => Exit::Refused,
            Ended::LeaseLost => Exit::LeaseLost,
        };
        failure(exit, &error)
    })
}

fn failure(exit: Exit, error: &dyn std::error::Error) -> Failure {
    Failure { exit, reasons: vec![error_chain(error)] }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_of_the_port_waits_until_the_manager_has_stopped() {
        let stop = Stop::default();
        let asked = stop.drain.clone();
        let begun = tokio::time::Instant::now();
        let running = async move {
            asked.cancelled().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            Err(Failure { exit: Exit::LeaseLost, reasons: vec!["lost".to_owned()] })
        };
        let failure = Failure { exit: Exit::ApiServer, reasons: vec!["not served".to_owned()] };
        let failure = drain(running, failure, &stop).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        assert_eq!(
            (failure.exit, &failure.reasons[..]),
            (Exit::ApiServer, &["not served".to_owned(), "lost".to_owned()][..])
        );
        assert!(!stop.abort.is_cancelled());
    }
}
