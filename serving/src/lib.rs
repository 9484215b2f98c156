//! The HTTPS port: health, metrics, configuration and state, for authorized users.
//!
//! ```text
//! client ──TCP──▶ thread ──▶ connection ──TLS, HTTP──▶ answers ──▶ access ──▶ routes/*.rs
//!                              │                        (one request)  (user, permission)
//!                              └─▶ connection_limit
//! ```
//!
//! # Guarantees
//! - The port is bound before anything else starts, and served until everything else has stopped.
//! - It is served by a thread and a runtime of its own: no request waits for a reconcile, and no reconcile for a
//!   request.
//! - Memory is bounded whatever clients do: `docs/serving.md` has the figures, and the constants that they follow from
//!   are in `connection.rs`, `connection_limit.rs`, `response_limits.rs` and `thread.rs`.
//! - The newest connection is always accepted, and displaces a connection of the address with the most, so that no client
//!   keeps a probe out.
//! - A panic ends its request, or its task starts again: nothing else ends.
//! - A file that cannot be used leaves the certificates as they are.
//!
//! # Routes
//! Each file of `routes/` has one function `routes`, which returns a router; `routes/mod.rs` joins them. What a handler
//! shows comes from the [`ServingState`]. The port knows neither leases nor profiles: the host passes both as values.
//!
//! # Upstream
//! `apiserver/pkg/server` as `cmd/kube-controller-manager` uses it.

mod access;
mod answers;
mod connection;
mod connection_limit;
mod cut;
pub mod debug;
mod health;
mod held_body;
mod listener;
mod names;
mod options;
mod peer;
mod percent;
mod profiler;
mod reloading;
mod response_limits;
mod revocation;
mod routes;
mod state;
mod supervised;
mod thread;
mod tls;
mod ui;

pub use access::{BundleError, LookupError, SetupError, TrustError};
pub use health::Check;
pub use options::ServingOptions;
pub use profiler::{ProfileError, Profiler};
pub use state::ServingState;
pub use thread::{Bound, Serving, ServingError};
pub use tls::{PairError, TlsError};

#[cfg(test)]
mod tests;
