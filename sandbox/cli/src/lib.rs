//! The sub-command `sandbox`: a whole cluster in this process, to try things in.
//!
//! ```text
//! kubectl ──HTTPS──▶ listener ──▶ API server ◀── nodes, scheduler, garbage collector
//!                                   ▲    ▲
//!                 controllers ──────┘    └────── demo
//! ```
//!
//! The controllers are those of the host, run as they run everywhere; only their client reaches the API server without a
//! socket. The host hands over a [`ManagerBuilder`], so this crate knows no host, and a host needs three names of this
//! crate: [`USAGES`], [`ROWS`] and [`command`].
//!
//! ```text
//! flags ──▶ Plan ──▶ Bound ──▶ running      plan, bound: everything that can be refused is refused before anything runs
//!   rows            kubeconfig  parts       parts: the tasks, and the reason when one of them fails
//!                   socket      tour, console, demo: what people read and type
//! ```
//!
//! # Guarantees
//!
//! - A refused start leaves nothing behind, and takes nothing away from a sandbox that runs already.
//! - However it ends, short of SIGKILL, its kubeconfig and its socket are removed; those of another sandbox stay.
//! - A part that fails or panics ends the whole with [`Ended::Failed`] and a reason.

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
mod unreconciled_kinds;

use kcm_config::Effective;
use kcm_framework::{ManagerBuilder, Stop};
use kcm_sandbox_conformance as scenarios;

use bound::Bound;
use plan::Plan;
use rows::Options;
pub use rows::ROWS;

/// What follows the name of the program in the help, a line each.
pub const USAGES: &[&str] = &["sandbox [FLAGS]", "sandbox tell COMMAND"];

/// The operand that sends a command to a running sandbox.
const TELL: &str = "tell";

/// What the command line asks for.
pub enum Command {
    /// Print this text.
    Print(String),
    /// Run a sandbox.
    Run(Box<Sandbox>),
}

/// A sandbox whose settings are accepted.
pub struct Sandbox(Plan);

/// Why a sandbox ended other than by being stopped; every reason is a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It could not start, and nothing is left of it.
    Refused(Vec<String>),
    /// A part of it failed while it ran.
    Failed(Vec<String>),
}

/// Checks the operands and settings of `sandbox`. Sends a command where the operands are `tell COMMAND`.
///
/// `manager` is what starts the controllers, or every reason why the host cannot configure them.
///
/// # Errors
/// Every reason for not starting, those of `manager` included.
pub fn command(settings: &Effective, manager: Result<ManagerBuilder, Vec<String>>) -> Result<Command, Vec<String>> {
    match settings.operands() {
        [] if settings.get("differences").unwrap_or(false) => {
            Ok(Command::Print(tour::differences(&scenarios::differences())))
        }
        [] => Ok(Command::Run(Box::new(Sandbox(Plan::check(settings, manager)?)))),
        [word, command @ ..] if word == TELL => tell(settings, &command.join(" ")).map(Command::Print),
        [word, ..] => Err(vec![unknown_operand(word)]),
    }
}

/// The error for an operand that is not [`TELL`].
fn unknown_operand(word: &str) -> String {
    let flags = ROWS.iter().map(|row| (row.flag, format!("--{}", row.flag)));
    let known = flags.chain([(TELL, format!("sandbox {TELL}"))]);
    let near = known.map(|(name, meant)| (strsim::damerau_levenshtein(word, name), meant)).min();
    let near = near.filter(|(distance, _)| *distance <= 1 + word.len() / 4);
    let near = near.map(|(_, meant)| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("sandbox {word}: give `sandbox` to start one, or `sandbox {TELL} COMMAND` to command its nodes{near}")
}

/// Sends a command to a running sandbox and returns its answer.
fn tell(settings: &Effective, command: &str) -> Result<String, Vec<String>> {
    let Some(socket) = Options::read(settings)?.socket else {
        return Err(vec!["--socket is empty: name the socket of the sandbox that the command is for".to_owned()]);
    };
    if command.is_empty() {
        return Err(vec!["sandbox tell: no command is given; `sandbox tell help` lists them".to_owned()]);
    }
    let answer = socket::ask(&socket, command).map_err(|reason| vec![reason])?;
    match answer.strip_prefix(console::ERROR) {
        Some(reason) => Err(vec![reason.trim_end().to_owned()]),
        None => Ok(answer),
    }
}

impl Sandbox {
    /// Runs until `stop`, the end of the demo, or the failure of a part.
    ///
    /// # Errors
    /// Why it could not start, or what failed.
    pub async fn run(self, stop: Stop) -> Result<(), Ended> {
        let saves = self.0.options.save.is_some();
        tokio::select! {
            () = stop.abort.cancelled() => {
                if saves {
                    let reason = "ended at once, as a second signal asked: not everything was saved";
                    return Err(Ended::Failed(vec![reason.to_owned()]));
                }
                Ok(())
            }
            ended = live(self.0, &stop) => ended,
        }
    }
}

async fn live(plan: Plan, stop: &Stop) -> Result<(), Ended> {
    let bound = tokio::select! {
        bound = Bound::bind(plan) => bound.map_err(Ended::Refused)?,
        // Nothing runs yet, and what was made is dropped with the future.
        () = stop.drain.cancelled() => return Ok(()),
    };
    bound.run(stop).await.map_err(Ended::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_operand_is_refused_with_the_nearest_flag_or_command() {
        for (word, near) in
            [("tel", Some("`sandbox tell`?")), ("dmeo", Some("`--demo`?")), ("start", None), ("kubectl", None)]
        {
            let text = unknown_operand(word);
            assert_eq!(text.split_once("did you mean ").map(|(_, near)| near), near, "{text}");
        }
    }
}
