//! Parses the command line and runs it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use kcm_config::{Effective, Loaded, Row, Sources, Table, VersionRequest, generic, wrap};
use kcm_framework::client::ClientAuthority;
use kcm_framework::{Extensions, Registry};

use crate::command_line::config_command::CONFIG;
use crate::command_line::exit::Exit;
use crate::command_line::explain_command::EXPLAIN;
use crate::command_line::output::{print, refuse};
use crate::command_line::subcommand::{Action, Invocation, Subcommand};
use crate::heartbeat::MainThreadLimits;
use crate::logs::{LogOptions, Logs, log_flags};
#[cfg(feature = "pprof")]
use crate::pprof::HELPER;
use crate::reload::SettingsSource;
use crate::runtime::main_thread::{self, WakeUps};
use crate::runtime::run;
use crate::settings::{self, is_default};

/// Text of the help after the flags.
const SOURCES: &str = "\
Every flag is also a variable, KCM_KUBE_API_QPS for --kube-api-qps, and most are a key of the configuration file.
Flags override variables, and variables the file.";

/// A controller manager as a program: the linked controllers, the sub-commands, and values for the controllers.
#[derive(Debug, Clone)]
#[must_use = "a host does nothing until `main`"]
pub struct Host {
    subcommands: Vec<Subcommand>,
    extensions: Extensions,
    limits: MainThreadLimits,
}

impl Default for Host {
    /// A host with the sub-commands `config` and `explain`.
    fn default() -> Self {
        let subcommands = vec![
            CONFIG,
            EXPLAIN,
            #[cfg(feature = "pprof")]
            HELPER,
        ];
        Self { subcommands, extensions: Extensions::default(), limits: MainThreadLimits::default() }
    }
}

impl Host {
    /// Adds a sub-command to the host.
    pub fn subcommand(mut self, subcommand: Subcommand) -> Self {
        self.subcommands.push(subcommand);
        self
    }

    /// Hands `extensions` to the controllers that look for them.
    ///
    /// A controller finds a value by its type:
    /// [`ControllerContext::extension`](kcm_framework::ControllerContext::extension).
    pub fn extensions(self, extensions: Extensions) -> Self {
        Self { extensions, ..self }
    }

    /// Sets the time for which the thread of the controllers may be blocked by one piece of work until the health check
    /// `main-thread` fails (30 s by default), and until a process with leader election gives its lease up and ends with
    /// code 3 (60 s by default).
    ///
    /// For a host whose controllers need the thread for longer without a pause.
    pub fn main_thread_limits(self, unhealthy_after: Duration, exits_after: Duration) -> Self {
        Self { limits: MainThreadLimits { unhealthy_after, exits_after }, ..self }
    }

    /// Runs the command line of this process until it is done or a signal ends it.
    #[must_use]
    pub fn main(self) -> ExitCode {
        self.execute(std::env::args_os()).into()
    }

    /// The first of `words` is the name of the program.
    fn execute(self, words: impl IntoIterator<Item = OsString>) -> Exit {
        let mut words = words.into_iter();
        let program = words.next().unwrap_or_default();
        let mut arguments: Vec<OsString> = words.collect();
        let subcommand = self.named_by(&arguments);
        if let Some(subcommand) = subcommand {
            arguments.remove(0);
            arguments.extend(config_flag(&subcommand, &arguments));
        }
        let (registry, table) = match linked(subcommand.map_or(&[], |subcommand| subcommand.rows)) {
            Ok(linked) => linked,
            Err(reasons) => return refuse(&reasons),
        };
        let mut sources = Sources::of_process(arguments);
        if subcommand.is_some() {
            sources = sources.with_operands();
        }
        let settings = match table.load(&sources) {
            Ok(Loaded::Help) => return print(&self.help(&table, &program)),
            Ok(Loaded::Version(request)) => return print(&version(request)),
            Ok(Loaded::Settings(settings)) => *settings,
            Err(errors) => return refuse(&errors.0),
        };
        match subcommand {
            None => start(registry, settings, sources, self.extensions, self.limits),
            Some(subcommand) => start_subcommand(&subcommand, registry, settings, self.extensions),
        }
    }

    fn named_by(&self, arguments: &[OsString]) -> Option<Subcommand> {
        let first = arguments.first()?;
        self.subcommands.iter().find(|subcommand| first == subcommand.name).copied()
    }

    fn help(&self, table: &Table, program: &OsStr) -> String {
        let program = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
        let usages = self.subcommands.iter().flat_map(|subcommand| subcommand.usages.iter().copied());
        let usages: Vec<String> =
            std::iter::once("[FLAGS]").chain(usages).map(|usage| format!("{program} {usage}")).collect();
        let usage = usages.join("\n       ");
        let columns = columns();
        let (flags, sources) = (table.help(columns), wrap(SOURCES, columns));
        format!("Usage: {usage}\n\n{flags}\n{sources}\n")
    }
}

/// Returns the width of the terminal that output goes to, if any: `COLUMNS`, or the terminal's own width.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.or(Some(usize::from(size.ws_col))).filter(|columns| *columns > 0)
}

/// The flag that names the configuration file which an operand of the sub-command names.
fn config_flag(subcommand: &Subcommand, arguments: &[OsString]) -> Option<OsString> {
    let [before, file, ..] = arguments else { return None };
    let is_file =
        subcommand.file_after.is_some_and(|word| before == word) && !file.as_encoded_bytes().starts_with(b"-");
    is_file.then(|| {
        let mut flag = OsString::from(format!("--{}=", generic::CONFIG));
        flag.push(file);
        flag
    })
}

/// The controllers that are linked, and the table of all settings.
fn linked(rows: &[Row]) -> Result<(Registry, Table), Vec<String>> {
    let registry = Registry::linked().map_err(|errors| messages(&errors))?;
    let table = settings::table(&registry, rows).map_err(|errors| messages(&errors.0))?;
    Ok((registry, table))
}

fn start(
    registry: Registry,
    settings: Effective,
    sources: Sources,
    extensions: Extensions,
    limits: MainThreadLimits,
) -> Exit {
    let options = LogOptions::of(&settings);
    let configured = settings::configure(registry.clone(), settings, extensions.clone());
    let (configured, options) = match both(configured, options) {
        Ok(both) => both,
        Err(reasons) => return refuse(&reasons),
    };
    let settings = configured.manager.settings();
    let logs = Logs::set_up(options);
    log_flags(settings);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "Starting");
    log_content_type(settings);
    run::warn(settings.warnings());
    run::warn(&configured.warnings);
    if let Some(authority) = configured.kubeconfig.as_deref().and_then(ClientAuthority::of_kubeconfig) {
        extensions.insert(authority);
    }
    let source = SettingsSource { sources, registry, extensions, start: settings.clone() };
    main_thread::run(WakeUps::Moderated, &logs, |stop| run::run(configured, source, limits, &logs, stop))
}

/// Says that requests are sent as JSON, if the settings ask for something else, as the default does.
fn log_content_type(settings: &Effective) {
    let asked: String = settings.get("kube-api-content-type").unwrap_or_default();
    if !["", "application/json"].contains(&asked.as_str()) {
        tracing::info!(
            v = 2,
            content_type = asked,
            "Sending requests as JSON; requesting protobuf responses for supported kinds"
        );
    }
}

/// Returns both results, or the reasons of both errors.
fn both<A, B>(one: Result<A, Vec<String>>, other: Result<B, Vec<String>>) -> Result<(A, B), Vec<String>> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(reasons), Ok(_)) | (Ok(_), Err(reasons)) => Err(reasons),
        (Err(reasons), Err(more)) => Err([reasons, more].concat()),
    }
}

fn start_subcommand(subcommand: &Subcommand, registry: Registry, settings: Effective, extensions: Extensions) -> Exit {
    let options = LogOptions::of(&settings);
    let manager = settings::configure(registry, settings.clone(), extensions).map(|configured| configured.manager);
    let is_quiet = subcommand.quiet && is_default(&settings, "v") && is_default(&settings, "vmodule");
    let warnings = settings.warnings().to_vec();
    let manager = both(manager, options.clone()).map(|(manager, _)| manager);
    match (subcommand.run)(Invocation { settings, manager }) {
        Err(reasons) => refuse(&reasons),
        Ok(Action::Print(text)) => print(&text),
        Ok(Action::Run(program)) => {
            let options = match options {
                Ok(options) => options,
                Err(reasons) => return refuse(&reasons),
            };
            let options = if is_quiet { options.only_warnings() } else { options };
            let logs = Logs::set_up(options);
            run::warn(&warnings);
            main_thread::run(WakeUps::Immediate, &logs, program)
        }
    }
}

/// Returns the emulated version of Kubernetes, and the version of the program.
fn version(request: VersionRequest) -> String {
    let (kubernetes, own) = (kcm_config::KUBERNETES_VERSION, env!("CARGO_PKG_VERSION"));
    match request {
        VersionRequest::Short => format!("Kubernetes v{kubernetes}\nkcm {own}\n"),
        VersionRequest::Raw => {
            let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
            format!("{{\"kubernetes\":\"v{kubernetes}\",\"kcm\":\"{own}\",\"platform\":\"{system}/{machine}\"}}\n")
        }
    }
}

fn messages(reasons: &[impl ToString]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}
