//! What the command line asks for.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use kcm_config::{Effective, Outcome, Row, Sources, Table, gates, generic};
use kcm_framework::{Extensions, Registry};

use crate::{Exit, run};

/// What the help says after the flags.
const SOURCES: &str = "\
Every flag is also a variable, KCM_KUBE_API_QPS for --kube-api-qps, and most are a key of the configuration file.
Flags override variables, and variables the file.";

/// What is to be done with the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verb {
    /// Run the controllers.
    Run,
    /// Print every setting with its origin.
    ConfigEffective,
    /// Run a cluster in this process.
    #[cfg(feature = "sandbox")]
    Sandbox,
    /// Send a command to a sandbox that runs.
    #[cfg(feature = "sandbox")]
    Tell(String),
}

impl Verb {
    /// The settings that only this verb has.
    fn rows(&self) -> &'static [Row] {
        match self {
            Self::Run | Self::ConfigEffective => &[],
            #[cfg(feature = "sandbox")]
            Self::Sandbox | Self::Tell(_) => crate::sandbox::ROWS,
        }
    }
}

/// Does what the command line asks for, and says how it ended.
///
/// The first of `words` is the program's name.
pub(crate) fn execute(words: impl IntoIterator<Item = OsString>, extensions: Extensions) -> Exit {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let (verb, arguments) = match verb(words.collect()) {
        Ok(understood) => understood,
        Err(reason) => return refuse(&[reason]),
    };
    let (registry, table) = match linked(verb.rows()) {
        Ok(linked) => linked,
        Err(reasons) => return refuse(&reasons),
    };
    let settings = match table.load(&Sources::of_process(arguments)) {
        Ok(Outcome::Help) => return print(&help(&table, &program)),
        Ok(Outcome::Settings(settings)) => settings,
        Err(errors) => return refuse(&errors.0),
    };
    match verb {
        Verb::ConfigEffective => print(&settings.render()),
        Verb::Run => start(registry, *settings, extensions),
        #[cfg(feature = "sandbox")]
        Verb::Sandbox => crate::sandbox::start(registry, *settings, extensions),
        #[cfg(feature = "sandbox")]
        Verb::Tell(command) => crate::sandbox::tell(&settings, &command),
    }
}

/// Takes the words of a verb off the front of the arguments.
fn verb(mut arguments: Vec<OsString>) -> Result<(Verb, Vec<OsString>), String> {
    #[cfg(feature = "sandbox")]
    if arguments.first().is_some_and(|first| first == "sandbox") {
        let word = arguments.get(1).map(|second| second.to_string_lossy());
        if let Some(word) = word.filter(|word| !word.starts_with('-') && word != crate::sandbox::TELL) {
            return Err(crate::sandbox::unknown_word(&word));
        }
        if arguments.get(1).is_none_or(|second| second != crate::sandbox::TELL) {
            return Ok((Verb::Sandbox, arguments.split_off(1)));
        }
        let (flags, command) = crate::sandbox::command_of(arguments.split_off(2));
        return Ok((Verb::Tell(command), flags));
    }
    #[cfg(not(feature = "sandbox"))]
    if arguments.first().is_some_and(|first| first == "sandbox") {
        return Err("this binary was built without the sandbox: build it with the cargo feature `sandbox`".to_owned());
    }
    if arguments.first().is_none_or(|first| first != "config") {
        return Ok((Verb::Run, arguments));
    }
    if arguments.get(1).is_none_or(|second| second != "effective") {
        return Err("config: give `config effective` to print every setting and where its value comes from, \
                    or --config=FILE to read settings from a file"
            .to_owned());
    }
    Ok((Verb::ConfigEffective, arguments.split_off(2)))
}

fn help(table: &Table, program: &OsStr) -> String {
    let program = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    let mut usages = vec!["[FLAGS]", "config effective [FLAGS]"];
    if cfg!(feature = "sandbox") {
        usages.extend(["sandbox [FLAGS]", "sandbox tell COMMAND"]);
    }
    let usages: Vec<String> = usages.iter().map(|usage| format!("{program} {usage}")).collect();
    let usage = usages.join("\n       ");
    let mut command = table.command("kube-controller-manager").override_usage(usage).after_help(SOURCES);
    command.render_help().to_string()
}

/// The controllers that are linked, and the table of their settings and the manager's own.
fn linked(more: &[Row]) -> Result<(Registry, Table), Vec<String>> {
    let registry = Registry::linked().map_err(|errors| texts(&errors))?;
    let rows = registry.iter().flat_map(|controller| controller.rows().iter().copied());
    let rows: Vec<Row> = generic::ROWS.iter().copied().chain(rows).chain(more.iter().copied()).collect();
    let table = Table::with_gates(rows, gates::KNOWN.iter().copied()).map_err(|errors| texts(&errors.0))?;
    Ok((registry, table))
}

fn start(registry: Registry, settings: Effective, extensions: Extensions) -> Exit {
    match run::Config::check(registry, settings) {
        Ok(config) => run::run(config, extensions),
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

pub(crate) fn print(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has seen enough, as `head`, is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => refuse(&[format!("cannot print: {error}")]),
        Ok(()) | Err(_) => Exit::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(words: &[&str]) -> Result<(Verb, Vec<OsString>), String> {
        verb(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn a_verb_is_the_first_two_words_and_the_rest_are_flags() {
        assert_eq!(understood(&["--v=2"]), Ok((Verb::Run, vec!["--v=2".into()])));
        assert_eq!(understood(&["config", "effective", "-v2"]), Ok((Verb::ConfigEffective, vec!["-v2".into()])));
        assert!(understood(&["config"]).is_err());
        assert!(understood(&["config", "--v=2"]).is_err());
    }
}
