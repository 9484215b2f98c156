//! The tests of the host from outside, in one program: linking takes longer than most of them.
//!
//! These tests have programs of their own: `lease` and `pprof`, because other tests beside them would change the times that
//! they measure; `hosts`, because it starts itself; `documentation` and `english`, because pages name their commands.

#[cfg(all(feature = "builtin", feature = "sandbox"))]
#[path = "../subcommand/mod.rs"]
mod subcommand;
#[path = "../support/mod.rs"]
mod support;

#[cfg(all(feature = "builtin", feature = "sandbox"))]
mod browser;
mod imports;

mod api_server;
mod architecture;
mod bad_files;
mod command_line;
mod config_command;
mod dependencies;
mod deploy;
mod logs;
mod manifests;
mod parity;
mod reload;
mod sandbox;
mod serving;
mod settings;
mod signals;
mod status_page;
mod wrong_command_lines;
