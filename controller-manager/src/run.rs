//! From settings to a running manager.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kcm_config::{AccessError, Effective, Origin};
use kcm_framework::client::{ClientBuilder, Limits, UserAgent, connect, load_config};
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{Extensions, Manager, Metrics, Registry, Selection, Stop};

use crate::moderation::pause_while_busy;
use crate::signals::Signals;
use crate::{Exit, UPSTREAM, command, logs};

/// Checked settings: all that is needed to run.
pub(crate) struct Config {
    registry: Registry,
    selection: Selection,
    settings: Effective,
    kubeconfig: Option<PathBuf>,
    limits: Limits,
    start_interval: Duration,
    min_resync: Duration,
    verbosity: i32,
}

impl Config {
    /// Checks what no row can check alone.
    ///
    /// # Errors
    /// Every reason for not starting.
    pub(crate) fn check(registry: Registry, settings: Effective) -> Result<Self, Vec<String>> {
        let read = |error: AccessError| vec![error.to_string()];
        let given_in = |flag| settings.origin(flag).unwrap_or(&Origin::Default);
        let names: Vec<String> = settings.get("controllers").map_err(read)?;
        let elects: bool = settings.get("leader-elect").map_err(read)?;
        let qps: f32 = settings.get("kube-api-qps").map_err(read)?;
        let burst: i32 = settings.get("kube-api-burst").map_err(read)?;
        let kubeconfig: String = settings.get("kubeconfig").map_err(read)?;

        let mut reasons = Vec::new();
        let selection = Selection::parse(names.iter().map(String::as_str), &registry, UPSTREAM);
        for error in selection.as_ref().err().into_iter().flatten() {
            reasons.push(format!("{}: {error}", given_in("controllers")));
        }
        if elects && given_in("leader-elect") != &Origin::Default {
            let origin = given_in("leader-elect");
            reasons.push(format!(
                "{origin}: there is no leader election yet: give --leader-elect=false and run a single replica"
            ));
        }
        // A burst of 0 is client-go's default, and without a rate there is nothing to exceed.
        if burst < 0 && qps >= 0.0 {
            let origin = given_in("kube-api-burst");
            reasons.push(format!(
                "{origin}: a burst of {burst} lets no request pass: give at least 1, or --kube-api-qps=-1 for no limit"
            ));
        }
        let selection = match selection {
            Ok(selection) if reasons.is_empty() => selection,
            Ok(_) | Err(_) => return Err(reasons),
        };
        Ok(Self {
            kubeconfig: (!kubeconfig.is_empty()).then(|| kubeconfig.into()),
            limits: Limits { qps, burst: u32::try_from(burst).unwrap_or(0) },
            start_interval: settings.get("controller-start-interval").map_err(read)?,
            min_resync: settings.get("min-resync-period").map_err(read)?,
            verbosity: settings.get("v").map_err(read)?,
            registry,
            selection,
            settings,
        })
    }

    /// The same without limits on requests, unless somebody set some: in one process there is no server to spare.
    #[cfg(feature = "sandbox")]
    pub(crate) fn unlimited(mut self) -> Self {
        if self.origin("kube-api-qps") == Some(&Origin::Default) {
            self.limits.qps = -1.0;
        }
        self
    }

    /// Where a setting comes from.
    #[cfg(feature = "sandbox")]
    pub(crate) fn origin(&self, flag: &str) -> Option<&Origin> {
        self.settings.origin(flag)
    }

    #[cfg(feature = "sandbox")]
    pub(crate) fn verbosity(&self) -> i32 {
        self.verbosity
    }

    /// Warns of what was given and means nothing.
    #[cfg(feature = "sandbox")]
    pub(crate) fn warn_of_what_is_ignored(&self) {
        warn_of_notices(&self.settings);
    }

    /// The names of the controllers that shall run.
    #[cfg(feature = "sandbox")]
    pub(crate) fn controllers(&self) -> Vec<String> {
        let chosen = self.registry.iter().filter(|controller| self.selection.enables(controller));
        chosen.map(|controller| controller.name().to_string()).collect()
    }
}

/// Runs the manager until it is told to stop.
pub(crate) fn run(config: Config, extensions: Extensions) -> Exit {
    logs::print(config.verbosity);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "Starting");
    warn_of_notices(&config.settings);
    if config.settings.origin("leader-elect") == Some(&Origin::Default) {
        tracing::warn!("There is no leader election yet: run a single replica; --leader-elect=false silences this");
    }
    on_runtime(one_thread().on_thread_park(pause_while_busy()), manage(config, extensions))
}

fn warn_of_notices(settings: &Effective) {
    for notice in settings.notices() {
        tracing::warn!("{notice}");
    }
}

/// The runtime of everything that the binary does.
pub(crate) fn one_thread() -> tokio::runtime::Builder {
    // A second one costs a sixth more CPU in wake-ups between the two, and one core carries more writes than an API server
    // takes (docs/adr/0004-one-thread.md). The moderation of wake-ups is made for one thread too.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all();
    builder
}

/// Runs the program until it ends.
pub(crate) fn on_runtime(builder: &mut tokio::runtime::Builder, program: impl Future<Output = Exit>) -> Exit {
    match builder.build() {
        Ok(runtime) => {
            let exit = runtime.block_on(program);
            // A thread that waits for a name to be resolved must not hold up the end.
            runtime.shutdown_background();
            exit
        }
        Err(error) => command::refuse(&[format!("cannot start the runtime: {error}")]),
    }
}

async fn manage(config: Config, extensions: Extensions) -> Exit {
    let stop = Stop::default();
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return command::refuse(&[format!("cannot catch signals: {error}")]),
    };
    let connection = match Connection::of_kubeconfig(config.kubeconfig.as_deref()).await {
        Ok(connection) => connection,
        Err(reason) => return command::refuse(&[reason]),
    };
    let manager = manager(config, connection, extensions);
    let ended = tokio::select! {
        ended = manager.run(stop.clone()) => ended,
        never = signals.pass_to(stop) => match never {},
    };
    match ended {
        Ok(()) => Exit::Stopped,
        Err(error) => {
            command::refuse(&[sentence(&error)]);
            Exit::ApiServer
        }
    }
}

/// An error with all its causes.
pub(crate) fn sentence(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The way to an API server.
pub(crate) struct Connection {
    pub(crate) client: kube::Client,
    /// Its address, as people know it.
    pub(crate) server: String,
    /// Its name in metrics.
    pub(crate) host: String,
    pub(crate) metrics: Arc<Metrics>,
}

impl Connection {
    /// As a kubeconfig says, or the cluster that this process runs in.
    async fn of_kubeconfig(path: Option<&Path>) -> Result<Self, String> {
        let cluster = load_config(path).await.map_err(|error| sentence(&error))?;
        Ok(Self {
            client: connect(&cluster).map_err(|error| sentence(&error))?,
            server: cluster.cluster_url.to_string(),
            host: cluster.cluster_url.authority().map(ToString::to_string).unwrap_or_default(),
            metrics: Metrics::new(),
        })
    }
}

#[cfg(feature = "sandbox")]
impl Connection {
    /// To the API server of this process.
    pub(crate) fn in_process(client: kube::Client, server: String, metrics: Arc<Metrics>) -> Self {
        Self { client, server, host: "sandbox".to_owned(), metrics }
    }
}

/// A manager that is ready to run.
pub(crate) fn manager(config: Config, connection: Connection, extensions: Extensions) -> Manager {
    let Connection { client, server, host, metrics } = connection;
    let user_agent = UserAgent::new("kube-controller-manager", concat!("v", env!("CARGO_PKG_VERSION")), "");
    let clients = ClientBuilder::with_metrics(client, user_agent, config.limits, metrics.requests_to(&host));
    let clock = SystemClock;
    Manager {
        registry: config.registry,
        selection: config.selection,
        settings: config.settings,
        clients,
        server,
        // Replicas that start together must not draw the same delays.
        seed: clock.now().as_microsecond().cast_unsigned() ^ u64::from(std::process::id()),
        clock: Arc::new(clock),
        metrics,
        start_interval: config.start_interval,
        min_resync: config.min_resync,
        extensions,
    }
}
