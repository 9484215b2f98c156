//! The client of the API server: connections, credentials, client identities, requests and their errors.
//!
//! [`load_config`] reads a kubeconfig, [`connect`] makes a connection pool from it, and a [`ClientBuilder`] returns an
//! [`ApiClient`] for each client identity over that pool. Each client has a User-Agent and a [`RateLimiter`]; writes pass
//! a [`Fence`].
//!
//! ```text
//! load_config ──▶ connect ──▶ ClientBuilder ──client_for──▶ ApiClient ──▶ rate limiter ──▶ fence ──▶ connection pool
//! ```
//!
//! `transport` makes connections, `request` has the types of requests and responses; neither depends on the other, nor
//! on the clients above them.
//!
//! # Guarantees
//!
//! - **Only the [`ApiClient`] repeats a request.** Layers of the connection send a request once. What each response means
//!   and whether its request is repeated is one table, in `request/answer.rs`.
//! - **No write passes a closed fence,** even after a wait; see [`Fence`].
//! - **A rate limit is kept exactly,** and requests are sent in the order in which they began to wait.
//! - **A broken connection is found.** A server that hangs without closing its connection is given up after twenty seconds.
//!
//! The crate knows no loops and no controllers, and caches nothing: lists and watches of caches are in [`kcm_informers`].

mod api_client;
mod client_builder;
mod client_identity;
mod client_limits;
mod client_provider;
pub mod clock;
mod counted_body;
mod elapsed;
mod error;
mod fence;
mod metrics;
mod probe;
mod rate_limiter;
mod request;
mod request_origin;
mod response_wait;
mod transport;
mod warnings;
pub mod x509;

pub use api_client::{ApiClient, REQUEST_TIMEOUT};
pub use client_builder::ClientBuilder;
pub use client_identity::UserAgent;
pub use client_limits::ClientLimits;
pub use client_provider::{ClientProvider, CredentialsError};
pub use elapsed::{BootClock, ElapsedClock, Mark, SimulatedElapsed};
pub use error::{BoxError, error_chain};
pub use fence::{Fence, Fenced};
pub use metrics::{ClientMetrics, NoMetrics};
pub use probe::{CertificateFault, Unreachable, wait_for_api_server};
pub use rate_limiter::{Limits, RateLimiter, TokenBucket};
pub use request::{
    ApiError, Attempts, Call, Cause, DeleteOptions, Deleted, DeletionPropagation, ErrorClass, ListQuery, Page, Patch,
    Payload, ResponseExt, Scale, Subresource, Unversioned, WriteOutcome, WriteRecord, Written, WrittenTo,
};
pub use request_origin::RequestOrigin;
pub use transport::{
    ClientAuthority, ExecPluginMetrics, LoadError, StackError, connect, connect_seeded, connect_with_metrics,
    load_config,
};
pub use warnings::Warnings;
