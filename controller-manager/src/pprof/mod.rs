//! Profiles of this process in pprof's format: use of CPU time, and holders of memory.
//!
//! ```text
//! route ──▶ helper.rs ──starts──▶ the same program as `pprof-helper`, a child that traces its parent
//!              ▲                     sampler.rs   stacks of the threads that run, a hundred times a second
//!              │                     heap_dump.rs jemalloc's samples (jemalloc.rs writes them in the parent)
//!              └────gzip─────────────symbols.rs   addresses to names; profile.rs encodes
//! ```
//!
//! # Guarantees
//! - The manager itself runs no handler of signals, keeps no samples and reads no symbols: a profile takes memory of
//!   the child only, which is freed with it.
//! - A thread is stopped only while it runs, for as long as its stack is read. If the child dies, no thread stays
//!   stopped.
//! - One profile is made at a time.
//!
//! # Upstream
//! Go's `net/http/pprof`: paths, parameters, and the types of samples are the same.

mod heap_dump;
mod helper;
#[cfg(feature = "jemalloc")]
mod jemalloc;
mod maps;
mod profile;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod sampler;
mod subcommand;
mod symbols;

pub(crate) use helper::Helper;
pub(crate) use subcommand::HELPER;
