//! Settings that change while the manager runs: on SIGHUP, and when the configuration file changes.
//!
//! A file that cannot be used changes nothing: the log says why, as do [`ReloadState`] and the
//! metrics.

mod changes;
mod file_changes;
mod state;
#[cfg(all(test, feature = "builtin"))]
mod tests;

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kcm_config::{Effective, Sources, generic};
use kcm_framework::client::ClientBuilder;
use kcm_framework::clock::Clock;
use kcm_framework::{Extensions, ManagerHandle, Registry};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::logs::{LogOptions, Logs};
use crate::settings::{self, Configured};

use changes::{Action, actions, need_restart};
use file_changes::{FileChanges, Fingerprint, fingerprint};

pub(crate) use state::{LastReload, ReloadState};

/// The sources of settings, and the settings of the start.
pub(crate) struct SettingsSource {
    pub(crate) sources: Sources,
    pub(crate) registry: Registry,
    pub(crate) extensions: Extensions,
    pub(crate) start: Effective,
}

/// Settings that have been loaded and checked.
struct Loaded {
    settings: Effective,
    configured: Configured,
    logs: LogOptions,
}

impl SettingsSource {
    /// # Errors
    /// Every reason why the settings cannot be used.
    fn load(&self) -> Result<Loaded, Vec<String>> {
        let settings = match self.start.load_again(&self.sources) {
            Ok(kcm_config::Loaded::Settings(settings)) => *settings,
            // The command line has not changed since the start, and asks for neither.
            Ok(kcm_config::Loaded::Help | kcm_config::Loaded::Version(_)) => self.start.clone(),
            Err(errors) => return Err(errors.0.iter().map(ToString::to_string).collect()),
        };
        let logs = LogOptions::of(&settings);
        let configured = settings::configure(self.registry.clone(), settings.clone(), self.extensions.clone());
        match (configured, logs) {
            (Ok(configured), Ok(logs)) => Ok(Loaded { settings, configured, logs }),
            (configured, logs) => Err([configured.err(), logs.err()].into_iter().flatten().flatten().collect()),
        }
    }

    /// The configuration file; it is named by a flag or a variable, which do not change.
    fn file(&self) -> Option<PathBuf> {
        let path: String = self.start.get(generic::CONFIG).unwrap_or_default();
        (!path.is_empty()).then(|| path.into())
    }
}

/// Reloads settings and applies them.
pub(crate) struct Reloader<'a> {
    source: SettingsSource,
    in_use: Effective,
    logs: &'a Logs,
    clients: ClientBuilder,
    manager: ManagerHandle,
    state: ReloadState,
    clock: Arc<dyn Clock>,
}

impl<'a> Reloader<'a> {
    pub(crate) fn new(
        source: SettingsSource,
        logs: &'a Logs,
        clients: ClientBuilder,
        manager: ManagerHandle,
        state: ReloadState,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { in_use: source.start.clone(), source, logs, clients, manager, state, clock }
    }

    /// Reloads on SIGHUP and when the configuration file changes, for ever.
    ///
    /// # Errors
    /// If the signal cannot be caught.
    pub(crate) async fn run(mut self) -> io::Result<Infallible> {
        let hangup = signal(SignalKind::hangup())?;
        let file = self.source.file();
        let look = || file.as_deref().and_then(fingerprint);
        self.reload_on(hangup, FileChanges::new(look)).await
    }

    async fn reload_on<F>(&mut self, mut hangup: Signal, mut file: FileChanges<F>) -> io::Result<Infallible>
    where
        F: Fn() -> Fingerprint,
    {
        loop {
            tokio::select! {
                biased;
                _ = hangup.recv() => {}
                () = file.next() => {}
            }
            self.reload();
        }
    }

    fn reload(&mut self) {
        let loaded = self.source.load();
        let result = loaded.as_ref().map(|_| ()).map_err(Clone::clone);
        self.state.set(LastReload { at: self.clock.now(), result });
        let Loaded { settings, configured, logs } = match loaded {
            Ok(loaded) => loaded,
            Err(reasons) => {
                let error = reasons.join("\n");
                tracing::error!(error, "Cannot reload the configuration; keeping the current settings");
                return;
            }
        };
        // First, because a controller that is enabled now reads its settings from them.
        self.manager.reload(settings.clone());
        let actions = actions(&self.in_use, &settings);
        for action in &actions {
            match action {
                Action::Logs => self.logs.set_filter(logs.filter.clone()),
                Action::Limits => self.clients.set_limits(configured.limits),
                Action::Controllers => self.manager.select(configured.selection.clone()),
                // Loops follow the settings.
                Action::Workers => {}
            }
        }
        let applied = actions.iter().map(|action| format!("{action:?}")).collect::<Vec<_>>().join(",");
        tracing::info!(applied, "Reloaded the configuration");
        let need_restart = need_restart(&settings, |row| self.manager.needs_restart(row.name, &settings));
        if !need_restart.is_empty() {
            let settings = need_restart.join(",");
            tracing::warn!(settings, "These settings have changed and take effect at the next start only");
        }
        self.in_use = settings;
    }
}
