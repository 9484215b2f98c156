//! The `sandbox` subcommand: a simulated cluster in this process, to try things in.
//!
//! ```text
//! kubectl ──HTTPS──▶ listener ──▶ API server ◀── nodes, scheduler
//!                                   ▲    ▲
//!                 controllers ──────┘    └────── demo
//! ```
//!
//! The host binary's controllers run as in any cluster; only their client reaches the API server without a socket. The
//! host passes a [`ManagerBuilder`], so this crate depends on no host. A host uses three names of this crate:
//! [`USAGES`], [`ROWS`] and [`command`].
//!
//! ```text
//! flags ──▶ Plan ──▶ Bound ──▶ running      plan, bound: everything that can be refused is refused before anything runs
//!   rows            kubeconfig  tasks       tasks: the running tasks, and the reason when one of them fails
//!                   socket      banner, console, demo: terminal output and input
//! ```
//!
//! # Guarantees
//!
//! - A refused start leaves nothing behind, and removes nothing that belongs to a running sandbox.
//! - Its kubeconfig and its socket are removed at every end except SIGKILL. Files of another sandbox stay.
//! - A task that fails or panics ends the sandbox with [`RunError::Failed`] and a reason.

mod banner;
mod bound;
mod console;
mod demo;
mod kubeconfig;
mod manager_port;
mod plan;
mod rows;
mod screen;
mod socket;
mod tasks;
mod unreconciled_kinds;

use kcm_config::{Effective, nearest};
use kcm_framework::{ManagerBuilder, Stop};
use kcm_sandbox_conformance as scenarios;

use bound::Bound;
pub use manager_port::{ManagerPort, ServePort};
use plan::Plan;
use rows::Options;
pub use rows::ROWS;

/// Usage lines for the help, without the name of the program.
pub const USAGES: &[&str] = &["sandbox [FLAGS]", "sandbox tell COMMAND"];

/// Operand that sends a command to a running sandbox.
const TELL: &str = "tell";

/// Action that the command line selects.
pub enum Command {
    /// Print this text and exit.
    Print(String),
    /// Run this sandbox until it is stopped.
    Run(Box<Sandbox>),
}

/// A sandbox with validated settings.
pub struct Sandbox(Plan);

/// Reasons why a sandbox did not start or failed; each is a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// It could not start; nothing is left behind.
    Refused(Vec<String>),
    /// A task failed while it ran.
    Failed(Vec<String>),
}

/// Validates the operands and settings of `sandbox`; sends a command if the operands are `tell COMMAND`.
///
/// `manager` builds the manager that runs the controllers, or lists why the host cannot configure it.
///
/// # Errors
/// All reasons against starting, including the reasons of `manager`.
pub fn command(settings: &Effective, manager: Result<ManagerBuilder, Vec<String>>) -> Result<Command, Vec<String>> {
    match settings.operands() {
        [] if settings.get("differences").unwrap_or(false) => {
            Ok(Command::Print(banner::differences(&scenarios::differences())))
        }
        [] => Ok(Command::Run(Box::new(Sandbox(Plan::check(settings, manager)?)))),
        [word, command @ ..] if word == TELL => send_command(settings, &command.join(" ")).map(Command::Print),
        [word, ..] => Err(vec![unknown_operand(word)]),
    }
}

/// Error message for an operand that is not [`TELL`], with the nearest flag or command.
fn unknown_operand(word: &str) -> String {
    let near = nearest(word, ROWS.iter().map(|row| row.name).chain([TELL]));
    let near = near.map(|name| if name == TELL { format!("sandbox {TELL}") } else { format!("--{name}") });
    let near = near.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("sandbox {word}: give `sandbox` to start one, or `sandbox {TELL} COMMAND` to command its nodes{near}")
}

/// Sends a command to a running sandbox and returns the response.
fn send_command(settings: &Effective, command: &str) -> Result<String, Vec<String>> {
    let Some(socket) = Options::read(settings)?.socket else {
        return Err(vec!["--socket is empty: name the socket of the sandbox that the command is for".to_owned()]);
    };
    if command.is_empty() {
        return Err(vec!["sandbox tell: no command is given; `sandbox tell help` lists them".to_owned()]);
    }
    let answer = socket::send(&socket, command).map_err(|reason| vec![reason])?;
    match answer.strip_prefix(console::ERROR) {
        Some(reason) => Err(vec![reason.trim_end().to_owned()]),
        None => Ok(answer),
    }
}

impl Sandbox {
    /// Serves the HTTPS port of the manager.
    #[must_use]
    pub fn port(mut self, port: ManagerPort) -> Self {
        self.0.port = Some(port);
        self
    }

    /// Runs until `stop`, the end of the demo, or the failure of a task.
    ///
    /// # Errors
    /// The reasons why it could not start, or what failed.
    pub async fn run(self, stop: Stop) -> Result<(), RunError> {
        let saves = self.0.options.save.is_some();
        tokio::select! {
            biased;
            () = stop.abort.cancelled() => {
                if saves {
                    let reason = "ended at once, as a second signal asked: not everything was saved";
                    return Err(RunError::Failed(vec![reason.to_owned()]));
                }
                Ok(())
            }
            ended = bind_and_run(self.0, &stop) => ended,
        }
    }
}

async fn bind_and_run(plan: Plan, stop: &Stop) -> Result<(), RunError> {
    let bound = tokio::select! {
        biased;
        // Nothing runs yet, and dropping the future removes what was created.
        () = stop.drain.cancelled() => return Ok(()),
        bound = Bound::bind(plan) => bound.map_err(RunError::Refused)?,
    };
    bound.run(stop).await.map_err(RunError::Failed)
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
