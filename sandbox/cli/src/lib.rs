//! `sandbox`: a whole cluster in this process, to try things in.
//!
//! ```text
//! kubectl ──HTTPS──▶ listener ──▶ API server ◀── nodes, scheduler, collectors
//!                                   ▲    ▲
//!                 controllers ──────┘    └────── demo
//! ```
//!
//! The controllers are those of the binary, run as they run everywhere; only their client reaches the API server
//! without a socket.
//!
//! ```text
//! flags ──▶ Plan ──▶ Bound ──▶ running      plan, bound: what can be refused, is, before anything runs
//!   rows            kubeconfig  parts       parts: what runs, and what is told when one of it fails
//!                   socket      tour, console, demo: what people see and type
//! ```
//!
//! # Guarantees
//!
//! - What is refused leaves nothing behind, and takes nothing away from a sandbox that runs already.
//! - However it ends, short of being killed, its kubeconfig and its socket are gone; those of another sandbox stay.
//! - A part that fails or panics ends the whole with code 2 and a sentence.

mod bound;
mod console;
mod demo;
mod kubeconfig;
mod parts;
mod plan;
mod rows;
mod screen;
mod socket;
mod tour;
mod unattended;

use std::ffi::OsString;

use kcm_config::{Effective, Initial, Origin};
use kcm_framework::{Extensions, Registry, Stop};
use kcm_sandbox_conformance as scenarios;

use crate::command::{print, refuse};
use crate::signals::Signals;
use crate::{Exit, logs, run};

use bound::Bound;
use plan::Plan;
use rows::Options;
pub use rows::ROWS;

/// The word that sends a command to a sandbox that runs.
pub(crate) const TELL: &str = "tell";

/// Why `sandbox` with a word behind it means nothing, unless the word is [`TELL`].
pub(crate) fn unknown_word(word: &str) -> String {
    let flags = ROWS.iter().map(|row| (row.flag, format!("--{}", row.flag)));
    let known = flags.chain([(TELL, format!("sandbox {TELL}"))]);
    let near = known.map(|(name, meant)| (strsim::damerau_levenshtein(word, name), meant)).min();
    let near = near.filter(|(distance, _)| *distance <= 1 + word.len() / 4);
    let near = near.map(|(_, meant)| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("sandbox {word}: give `sandbox` to start one, or `sandbox {TELL} COMMAND` to command its nodes{near}")
}

/// Splits the arguments of `sandbox tell` into flags and the command, which begins at the first word.
pub(crate) fn command_of(mut arguments: Vec<OsString>) -> (Vec<OsString>, String) {
    let is_flag = |word: &OsString| word.to_string_lossy().starts_with('-');
    let takes_next = |word: &OsString| {
        ROWS.iter().any(|row| *word == *format!("--{}", row.flag) && !matches!(row.initial, Initial::Bool(_)))
    };
    let mut words = 0;
    while let Some(flag) = arguments.get(words).filter(|word| is_flag(word)) {
        words += if takes_next(flag) { 2 } else { 1 };
    }
    let command = arguments.split_off(words.min(arguments.len()));
    let (late, command): (Vec<OsString>, Vec<OsString>) = command.into_iter().partition(is_flag);
    arguments.extend(late);
    let command: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    (arguments, command.join(" "))
}

/// Sends a command to a sandbox that runs, and prints its answer.
pub(crate) fn tell(settings: &Effective, command: &str) -> Exit {
    let socket = match Options::read(settings) {
        Ok(options) => options.socket,
        Err(reasons) => return refuse(&reasons),
    };
    let Some(socket) = socket else {
        return refuse(&["--socket is empty: name the socket of the sandbox that shall hear this"]);
    };
    if command.is_empty() {
        return refuse(&["sandbox tell: no command is given; `sandbox tell help` lists them"]);
    }
    match socket::ask(&socket, command) {
        Ok(answer) => match answer.strip_prefix(console::ERROR) {
            Some(reason) => refuse(&[reason.trim_end()]),
            None => print(&answer),
        },
        Err(reason) => refuse(&[reason]),
    }
}

/// Runs a sandbox until it is told to stop.
pub(crate) fn start(registry: Registry, settings: Effective, extensions: Extensions) -> Exit {
    if settings.get("differences").unwrap_or(false) {
        return print(&tour::differences(&scenarios::differences()));
    }
    let plan = match Plan::check(registry, settings) {
        Ok(plan) => plan,
        Err(reasons) => return refuse(&reasons),
    };
    // The terminal belongs to the tour: it gets warnings, and more only where somebody asked.
    if plan.config.origin("v") == Some(&Origin::Default) {
        logs::print_warnings();
    } else {
        logs::print(plan.config.verbosity());
    }
    plan.config.warn_of_what_is_ignored();
    run::on_runtime(&mut run::one_thread(), until_signals(plan, extensions))
}

async fn until_signals(plan: Plan, extensions: Extensions) -> Exit {
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return refuse(&[format!("cannot catch signals: {error}")]),
    };
    let stop = Stop::default();
    let saves = plan.options.save.is_some();
    tokio::select! {
        never = signals.pass_to(stop.clone()) => match never {},
        () = stop.abort.cancelled() => {
            if saves {
                return fail(&["ended at once, as a second signal asked: not everything was saved".to_owned()]);
            }
            Exit::Stopped
        }
        exit = live(plan, extensions, &stop) => exit,
    }
}

async fn live(plan: Plan, extensions: Extensions, stop: &Stop) -> Exit {
    let bound = tokio::select! {
        bound = Bound::bind(plan) => bound,
        // Nothing runs yet, and what was made goes with the future.
        () = stop.drain.cancelled() => return Exit::Stopped,
    };
    let bound = match bound {
        Ok(bound) => bound,
        Err(reasons) => return refuse(&reasons),
    };
    match bound.run(extensions, stop).await {
        Ok(()) => Exit::Stopped,
        Err(reasons) => fail(&reasons),
    }
}

/// Prints why a sandbox ended that had started.
fn fail(reasons: &[String]) -> Exit {
    refuse(reasons);
    Exit::ApiServer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> (Vec<OsString>, String) {
        command_of(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn a_command_is_what_is_not_a_flag() {
        for words in [
            &["--socket=/tmp/s", "stop", "node-1"][..],
            &["stop", "--socket=/tmp/s", "node-1"],
            &["stop", "node-1", "--socket=/tmp/s"],
        ] {
            assert_eq!(told(words), (vec!["--socket=/tmp/s".into()], "stop node-1".to_owned()), "{words:?}");
        }
        assert_eq!(told(&["--socket", "/tmp/s", "nodes"]), (vec!["--socket".into(), "/tmp/s".into()], "nodes".into()));
        assert_eq!(told(&["--demo", "nodes"]), (vec!["--demo".into()], "nodes".to_owned()));
        assert_eq!(told(&["--socket"]), (vec!["--socket".into()], String::new()));
    }

    #[test]
    fn a_word_that_nobody_knows_is_told_what_is_near() {
        for (word, near) in
            [("tel", Some("`sandbox tell`?")), ("dmeo", Some("`--demo`?")), ("start", None), ("kubectl", None)]
        {
            let text = unknown_word(word);
            assert_eq!(text.split_once("did you mean ").map(|(_, near)| near), near, "{text}");
        }
    }
}
