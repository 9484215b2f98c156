//! The settings of the manager itself, checked together.

mod metrics_settings;
mod missing;
pub(crate) mod upstream;
mod validation;
mod without_effect;

use std::path::PathBuf;

use kcm_config::{AccessError, Effective, Gate, GoDuration, Origin, Row, Table, TableErrors, gates, generic};
use kcm_framework::api::Quantity;
use kcm_framework::client::Limits;
use kcm_framework::{
    ControllerDescriptor, Extensions, GRACE, Manager, ManagerBuilder, Registry, Selection, StartGroup,
};
use kcm_serving::ServingOptions;
use serde::Deserialize;

use crate::leader_election::{Election, LeaderElection, MigrationConfig, MigrationSettings, Owner, Policy};
use metrics_settings::exposition_options;
use upstream::{OF_CLOUDS, UPSTREAM, UpstreamController};

/// The parts of the section `Generic` of the configuration file that the program acts on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Generic {
    controllers: Vec<String>,
    controller_start_interval: GoDuration,
    min_resync_period: GoDuration,
    client_connection: ClientConnection,
    leader_election: LeaderElection,
}

#[derive(Debug, Deserialize)]
struct ClientConnection {
    kubeconfig: String,
    qps: f32,
    burst: i32,
}

/// Returns the table of all settings: of the manager, of the linked controllers, and `rows`.
///
/// # Errors
/// Every violation in the set of rows.
pub fn table(registry: &Registry, rows: &[Row]) -> Result<Table, TableErrors> {
    let rows = generic::rows().chain(registry.rows()).chain(rows.iter().copied());
    let required = registry.iter().flat_map(|controller| controller.required_gates.iter().copied());
    let mut gates: Vec<Gate> = gates::KNOWN.iter().copied().chain(registry.feature_gates()).chain(required).collect();
    gates.sort_by_key(|gate| gate.name);
    gates.dedup();
    Table::with_gates(rows, gates)
}

/// The program as the settings configure it.
pub(crate) struct Configured {
    /// A manager that lacks only a connection.
    pub(crate) manager: ManagerBuilder,
    /// The kubeconfig file that names the API server; `None` is the cluster of this pod.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The address of the API server, in place of that in the kubeconfig file.
    pub(crate) master: Option<String>,
    /// The controllers to run.
    pub(crate) selection: Selection,
    /// The rate limits of requests.
    pub(crate) limits: Limits,
    /// Whether each controller acts as its service account.
    pub(crate) service_accounts: bool,
    /// Leader election, if it is enabled.
    pub(crate) election: Option<Election>,
    /// The HTTPS port, if it is served.
    pub(crate) serving: Option<ServingOptions>,
    /// Warnings for the operator before it runs.
    pub(crate) warnings: Vec<String>,
}

/// Returns `true` if the settings leave `flag` at its default.
pub(crate) fn is_default(settings: &Effective, flag: &str) -> bool {
    settings.origin(flag).is_none_or(|origin| *origin == Origin::Default)
}

/// Returns the items of `--controllers` that choose among the controllers of this program, and a warning for each other
/// controller that they enable.
fn selected<'a>(controllers: &'a [String], registry: &Registry, settings: &Effective) -> (Vec<&'a str>, Vec<String>) {
    let origin = settings.origin("controllers").unwrap_or(&Origin::Default);
    let may_miss = settings.get(generic::ALLOW_MISSING_CONTROLLERS).unwrap_or(false);
    let is_missing = |item: &&str| missing::named_by(item, registry).is_some();
    let (of_clouds, items): (Vec<&str>, Vec<&str>) =
        controllers.iter().map(String::as_str).partition(|item| missing::of_clouds(item, registry).is_some());
    let of_clouds = of_clouds.into_iter().filter_map(|item| missing::of_clouds(item, registry));
    let mut warnings: Vec<String> = of_clouds
        .map(|name| format!("{origin}: {name} is a controller of clouds, which Kubernetes 1.37 removed: leave it out"))
        .collect();
    let (lacking, items): (Vec<&str>, Vec<&str>) = items.into_iter().partition(|item| may_miss && is_missing(item));
    let lacking = lacking.into_iter().filter_map(|item| missing::named_by(item, registry));
    warnings.extend(lacking.map(|UpstreamController { name, .. }| {
        format!("{origin}: the controller {name} is not part of this program: let another controller manager run it")
    }));
    let left_out = missing::left_out(controllers, registry, |gate| settings.gates().is_on(gate));
    if !left_out.is_empty() {
        warnings.push(format!(
            "These controllers of Kubernetes are not part of this program, and * leaves them out: \
             let another controller manager run them: {}",
            left_out.join(", ")
        ));
    }
    (items, warnings)
}

/// Checks combinations of settings, and configures a manager with the result.
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

    let origin_of = |flag| settings.origin(flag).unwrap_or(&Origin::Default);
    let mut reasons = Vec::new();
    let mut warnings = without_effect::warnings(&settings);
    let (items, left_out) = selected(&controllers, &registry, &settings);
    warnings.extend(left_out);
    let known: Vec<_> = UPSTREAM.iter().map(UpstreamController::names).chain(OF_CLOUDS.iter().copied()).collect();
    let selection = Selection::parse(items, &registry, &known);
    for error in selection.as_ref().err().into_iter().flatten() {
        reasons.push(format!("{}: {error}", origin_of("controllers")));
    }
    // A burst of 0 is client-go's default, and without a rate there is nothing to exceed.
    if burst < 0 && qps >= 0.0 {
        let origin = origin_of("kube-api-burst");
        reasons.push(format!(
            "{origin}: a burst of {burst} lets no request pass: give at least 1, or --kube-api-qps=-1 for no limit"
        ));
    }
    reasons.extend(validation::violations(&settings, |name| missing::is_enabled(name, &controllers)));
    let migration = MigrationConfig::of(&settings).unwrap_or_else(|violations| {
        reasons.extend(violations);
        None
    });
    let master: String = settings.get("master").unwrap_or_default();
    let master = (!master.is_empty()).then_some(master);
    if master.is_some() && kubeconfig.is_empty() {
        let origin = origin_of("master");
        reasons.push(format!("{origin}: an address without credentials cannot be used: give --kubeconfig as well"));
    }
    let serving = ServingOptions::of(&settings).unwrap_or_else(|unsupported| {
        reasons.extend(unsupported);
        None
    });
    let selection = match selection {
        Ok(selection) if reasons.is_empty() => selection,
        Ok(_) | Err(_) => return Err(reasons),
    };
    let exposition = exposition_options(&settings).map_err(|reason| vec![reason])?;
    let explain_memory: Option<Quantity> = settings.get("explain-memory").ok();
    let explain_memory = explain_memory.and_then(|memory| usize::try_from(memory.value()).ok()).unwrap_or(0);
    let service_accounts = settings.get("use-service-account-credentials").unwrap_or(false);
    let grace = settings.get::<GoDuration>("controller-shutdown-timeout").map_or(GRACE, GoDuration::unsigned);
    let policy = Policy {
        warm_standby: settings.get("leader-elect-warm-standby").unwrap_or(true),
        exit_on_lost_lease: settings.get("exit-on-lost-lease").unwrap_or(true),
        grace,
    };
    let limits = Limits { qps, burst: u32::try_from(burst).unwrap_or(0) };
    let (selection, migration) = match migration {
        None => (selection, None),
        Some(config) => {
            warnings.extend(aliases_in(&config, &registry));
            let (selection, migration) = divide(&config, &registry, selection);
            (selection, Some(migration))
        }
    };
    let releases = !settings.gates().is_turned_off(&gates::RELEASE_LEASE_ON_EXIT);
    let election = Election { settings: leader_election, policy, limits, releases, migration };
    let election = election.settings.leader_elect.then_some(election);
    let ends_on_failure = settings.get("exit-on-controller-failure").unwrap_or(false);
    let manager = Manager::builder(registry, settings)
        .selection(selection.clone())
        .limits(limits)
        .start_interval(controller_start_interval.unsigned())
        .min_resync(min_resync_period.unsigned())
        .grace(grace)
        .end_on_controller_failure(ends_on_failure)
        .exposition(exposition)
        .explain_memory(explain_memory)
        .extensions(extensions);
    Ok(Configured {
        manager,
        kubeconfig: (!kubeconfig.is_empty()).then(|| kubeconfig.into()),
        master,
        selection,
        limits,
        service_accounts,
        election,
        serving,
        warnings,
    })
}

/// Divides the controllers between the two leases. Those that another component runs are not selected.
fn divide(config: &MigrationConfig, registry: &Registry, selection: Selection) -> (Selection, MigrationSettings) {
    // The token controller is never migrated: everything that acts as a service account needs it.
    let migrate = |controller: &&ControllerDescriptor| controller.start_group != StartGroup::First;
    let owned_by = |owner: Owner| {
        let owned = registry.iter().filter(migrate).filter(move |controller| config.owner(controller.name) == owner);
        owned.map(|controller| controller.name)
    };
    let controllers = owned_by(Owner::Migration).map(str::to_owned).collect();
    (selection.without(owned_by(Owner::Other)), MigrationSettings { lease: config.lease().to_owned(), controllers })
}

/// A warning for each alias in the configuration of leader migration, which names no controller there.
fn aliases_in(config: &MigrationConfig, registry: &Registry) -> Vec<String> {
    let alias = |name: &str| registry.find(name).filter(|controller| controller.name != name);
    let found = config.names().filter_map(|name| Some((name, alias(name)?.name)));
    let warning = |(name, canonical)| {
        format!("leader migration names the alias {name:?}, which moves no controller: write {canonical:?}")
    };
    found.map(warning).collect()
}
