//! The controller manager: command line and configuration file in, running controllers out.
//!
//! The binary `kube-controller-manager` is [`main`] with the built-in controllers. A host of one's own names the crates
//! of its controllers and calls [`main`] too; with `default-features = false` it has those alone:
//!
//! ```no_run
//! // use my_controller as _;
//!
//! fn main() -> std::process::ExitCode {
//!     kcm_controller_manager::main()
//! }
//! ```
//!
//! # Guarantees
//!
//! - Everything that is wrong with flags, environment and file is reported at once; once each value is right in itself,
//!   everything that is wrong with them together (controllers that nobody knows, limits that let nothing pass). Nothing
//!   has been started then, and the process ends with code 1.
//! - An API server that cannot be reached or used is reported in one sentence, and the process ends with code 2.
//! - SIGTERM or SIGINT lets every reconcile in hand finish; a second one ends at once. The code is 0 then.
//!
//! # What it does not do yet
//!
//! There is no lease: `--leader-elect=true` is refused, and without the flag a warning says that only one replica may
//! run. There is no HTTP server.

mod command;
mod exit;
mod logs;
mod moderation;
mod run;
#[cfg(feature = "sandbox")]
mod sandbox;
mod signals;
mod upstream;

// Naming the crate links it, and with it the built-in controllers.
#[cfg(feature = "builtin")]
use kcm_controllers as _;

use std::process::ExitCode;

use kcm_framework::Extensions;

pub use exit::Exit;
#[cfg(feature = "sandbox")]
pub use sandbox::ROWS as SANDBOX_ROWS;
pub use upstream::UPSTREAM;

/// Runs the controllers that are linked, as the command line says, until a signal.
#[must_use]
pub fn main() -> ExitCode {
    main_with(Extensions::default())
}

/// As [`main`], and hands `extensions` to the controllers of the host that know them.
///
/// A controller finds a value by its type:
/// [`ControllerContext::extension`](kcm_framework::ControllerContext::extension).
#[must_use]
pub fn main_with(extensions: Extensions) -> ExitCode {
    command::execute(std::env::args_os(), extensions).into()
}
