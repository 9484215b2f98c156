//! Sub-commands as data: the commands of a host in addition to running the manager.

use kcm_config::{Effective, Row};
use kcm_framework::{BoxFuture, ManagerBuilder, Stop};

use crate::command_line::exit::Exit;

/// A sub-command of the host: the first word of a command line that selects it, its settings, and what it does.
///
/// Its command line takes the flags of the manager and of [`rows`](Self::rows), and operands, which `run` checks.
#[derive(Debug, Clone, Copy)]
pub struct Subcommand {
    /// The first word of the command line.
    pub name: &'static str,
    /// Lines of the help, without the name of the program.
    pub usages: &'static [&'static str],
    /// The settings that only this sub-command has.
    pub rows: &'static [Row],
    /// An operand before the name of a configuration file, which is read as if `--config` named it.
    pub file_after: Option<&'static str>,
    /// Logs only warnings and errors unless `--v` is given, because the terminal shows other output.
    pub quiet: bool,
    /// Checks the command line and returns what to do.
    ///
    /// # Errors
    /// Every reason for not starting; the process ends with [`Exit::Refused`].
    pub run: fn(Invocation) -> Result<Action, Vec<String>>,
}

/// The command line of a sub-command, read and merged with the other sources.
pub struct Invocation {
    /// The settings, including the settings of the sub-command. [`Effective::operands`] are the words after its name.
    pub settings: Effective,
    /// A manager with these settings that lacks only a connection, or every reason why it cannot be built.
    pub manager: Result<ManagerBuilder, Vec<String>>,
}

/// Action of a sub-command after its command line is accepted.
pub enum Action {
    /// Prints this text on standard output.
    Print(String),
    /// Runs until it ends by itself or is stopped by a signal.
    Run(Box<dyn FnOnce(Stop) -> BoxFuture<'static, Result<(), Failure>>>),
}

/// Failure of a running sub-command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Exit code of the process.
    pub exit: Exit,
    /// The reasons to print, a line each.
    pub reasons: Vec<String>,
}
