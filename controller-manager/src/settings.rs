//! The settings of the manager itself, checked together.

use std::path::PathBuf;

use kcm_config::{AccessError, Effective, GoDuration, Origin};
use kcm_framework::client::Limits;
use kcm_framework::{Extensions, Manager, ManagerBuilder, Registry, Selection};
use serde::Deserialize;

use crate::UPSTREAM;

/// The section `Generic` of the configuration file, whole: a row that has no field here is an error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Generic {
    controllers: Vec<String>,
    controller_start_interval: GoDuration,
    min_resync_period: GoDuration,
    client_connection: ClientConnection,
    leader_election: LeaderElection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientConnection {
    kubeconfig: String,
    qps: f32,
    burst: i32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LeaderElection {
    leader_elect: bool,
}

/// What the settings configure.
pub(crate) struct Configured {
    /// A manager that lacks only a connection.
    pub(crate) manager: ManagerBuilder,
    /// The kubeconfig file that names the API server; `None` is the cluster of this pod.
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Whether the settings leave `flag` at its default.
pub(crate) fn is_default(settings: &Effective, flag: &str) -> bool {
    settings.origin(flag).is_none_or(|origin| *origin == Origin::Default)
}

/// Checks what no row can check alone, and configures a manager with the result.
///
/// # Errors
/// Every reason for not starting.
pub(crate) fn configure(
    registry: Registry,
    settings: Effective,
    extensions: Extensions,
) -> Result<Configured, Vec<String>> {
    let generic = settings.section("Generic").map_err(|error: AccessError| vec![kcm_framework::error_chain(&error)])?;
    let Generic { controllers, controller_start_interval, min_resync_period, client_connection, leader_election } =
        generic;
    let ClientConnection { kubeconfig, qps, burst } = client_connection;
    let LeaderElection { leader_elect } = leader_election;

    let origin_of = |flag| settings.origin(flag).unwrap_or(&Origin::Default);
    let mut reasons = Vec::new();
    let selection = Selection::parse(controllers.iter().map(String::as_str), &registry, UPSTREAM);
    for error in selection.as_ref().err().into_iter().flatten() {
        reasons.push(format!("{}: {error}", origin_of("controllers")));
    }
    if leader_elect && !is_default(&settings, "leader-elect") {
        let origin = origin_of("leader-elect");
        reasons.push(format!(
            "{origin}: there is no leader election yet: give --leader-elect=false and run a single replica"
        ));
    }
    // A burst of 0 is client-go's default, and without a rate there is nothing to exceed.
    if burst < 0 && qps >= 0.0 {
        let origin = origin_of("kube-api-burst");
        reasons.push(format!(
            "{origin}: a burst of {burst} lets no request pass: give at least 1, or --kube-api-qps=-1 for no limit"
        ));
    }
    let selection = match selection {
        Ok(selection) if reasons.is_empty() => selection,
        Ok(_) | Err(_) => return Err(reasons),
    };
    let limits = Limits { qps, burst: u32::try_from(burst).unwrap_or(0) };
    let manager = Manager::builder(registry, settings)
        .selection(selection)
        .limits(limits)
        .start_interval(controller_start_interval.unsigned())
        .min_resync(min_resync_period.unsigned())
        .extensions(extensions);
    Ok(Configured { manager, kubeconfig: (!kubeconfig.is_empty()).then(|| kubeconfig.into()) })
}
