//! The sub-commands of the program, its output and its exit codes; [`Host`](crate::Host) reads the command line.

pub(crate) mod config_command;
pub(crate) mod exit;
pub(crate) mod explain_command;
pub(crate) mod output;
pub(crate) mod subcommand;
