//! The controller manager as a program: command line and configuration file in, running controllers out.
//!
//! A host is a `main` that names the crates of its controllers and calls [`main`]:
//!
//! ```no_run
//! // use my_controller as _;
//!
//! fn main() -> std::process::ExitCode {
//!     kcm_controller_manager::main()
//! }
//! ```
//!
//! The binary `kube-controller-manager` is such a host, with the built-in controllers and the sub-command `sandbox`; its
//! `main.rs` joins them. A host with sub-commands or values for its controllers builds a [`Host`].
//!
//! ```text
//! words ──▶ host ──▶ settings ──▶ ManagerBuilder ──▶ run          without a sub-command
//!             │                          │
//!             └──▶ Subcommand ◀──────────┘           ──▶ Action   its rows, its operands, a manager to start
//! ```
//!
//! # Guarantees
//!
//! - Everything that is wrong with flags, environment and file is reported at once; if each value is valid by itself,
//!   everything that is wrong with them together (unknown controllers, limits that let nothing pass). Nothing
//!   has been started then, and the process ends with code 1.
//! - An API server that cannot be reached or used is reported in one sentence, and the process ends with code 2.
//! - With leader election, no write is sent while another process may lead. A lost lease ends the process with code 3,
//!   unless `--exit-on-lost-lease=false`.
//! - The HTTPS port is bound before anything else, and closed last.
//! - A controller that fails is started again; under `--exit-on-controller-failure` the process ends with code 4.
//! - SIGTERM or SIGINT lets every reconcile that is being processed finish; a second one ends at once. The code is 0
//!   then.
//!
//! # What it does not do yet
//!
//! Settings of controllers that are not built yet are read and checked. Their help says that they have no effect, and a
//! warning names those that are given.

mod command_line;
mod heartbeat;
mod host;
mod identities;
mod leader_election;
mod logs;
#[cfg(feature = "pprof")]
mod pprof;
mod reload;
mod runtime;
mod settings;

#[cfg(all(test, feature = "builtin"))]
mod tests;

use std::process::ExitCode;

pub use command_line::exit::Exit;
pub use command_line::subcommand::{Action, Failure, Invocation, Subcommand};
pub use host::Host;
pub use runtime::https_port::HttpsPort;
pub use settings::table;
pub use settings::upstream::{UPSTREAM, UpstreamController, UpstreamStart};

/// Runs the linked controllers with this process's command line until a signal ends it: the `main` of a host without
/// sub-commands of its own.
#[must_use]
pub fn main() -> ExitCode {
    Host::default().main()
}
