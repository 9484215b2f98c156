//! What the command line asks for.

use std::ffi::OsString;
use std::io::{self, Write};

use kcm_config::{Effective, Outcome, Row, Sources, Table, gates, generic};
use kcm_framework::Registry;

use crate::{Exit, run};

const PROGRAM: &str = "kube-controller-manager";

/// What is to be done with the settings.
enum Verb {
    /// Run the controllers.
    Run,
    /// Print every setting with its origin.
    ConfigEffective,
}

/// Does what the command line asks for, and says how it ended.
pub(crate) fn execute(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let verb = verb(&mut arguments);
    let (registry, table) = match linked() {
        Ok(linked) => linked,
        Err(reasons) => return refuse(&reasons),
    };
    let settings = match table.load(&Sources::of_process(arguments)) {
        Ok(Outcome::Help) => return print(&table.command(PROGRAM).render_help().to_string()),
        Ok(Outcome::Settings(settings)) => settings,
        Err(errors) => return refuse(&errors.0),
    };
    match verb {
        Verb::ConfigEffective => print(&settings.render()),
        Verb::Run => start(registry, *settings),
    }
}

/// Takes the words of a verb off the front of the arguments.
fn verb(arguments: &mut Vec<OsString>) -> Verb {
    if arguments.len() >= 2 && arguments[0] == "config" && arguments[1] == "effective" {
        arguments.drain(..2);
        Verb::ConfigEffective
    } else {
        Verb::Run
    }
}

/// The controllers that are linked, and the table of their settings and the manager's own.
fn linked() -> Result<(Registry, Table), Vec<String>> {
    let registry = Registry::linked().map_err(|errors| texts(&errors))?;
    let rows = registry.iter().flat_map(|controller| controller.rows().iter().copied());
    let rows: Vec<Row> = generic::ROWS.iter().copied().chain(rows).collect();
    let table = Table::with_gates(rows, gates::KNOWN.iter().copied()).map_err(|errors| texts(&errors.0))?;
    Ok((registry, table))
}

fn start(registry: Registry, settings: Effective) -> Exit {
    match run::Config::check(registry, settings) {
        Ok(config) => run::run(config),
        Err(reasons) => refuse(&reasons),
    }
}

fn texts(reasons: &[impl ToString]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}

/// Prints every reason for not starting.
pub(crate) fn refuse(reasons: &[impl ToString]) -> Exit {
    let mut out = String::new();
    for reason in reasons {
        out.push_str("error: ");
        out.push_str(&reason.to_string());
        out.push('\n');
    }
    // Nobody is left to tell where standard error is closed.
    drop(io::stderr().write_all(out.as_bytes()));
    Exit::Refused
}

fn print(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has seen enough, as `head`, is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => refuse(&[format!("cannot print: {error}")]),
        Ok(()) | Err(_) => Exit::Stopped,
    }
}
