//! The client of the API server: connections, client identities, requests and their errors.
//!
//! `transport` makes connections, `request` has the types of requests and responses; neither depends on the other, nor
//! on the clients above them.

mod api_client;
mod client_builder;
mod client_identity;
mod client_limits;
mod client_provider;
pub mod clock;
mod counted_body;
mod error;
mod fence;
mod metrics;
mod probe;
mod rate_limiter;
mod request;
mod transport;
mod warnings;
pub mod x509;

pub use api_client::{ApiClient, REQUEST_TIMEOUT};
pub use client_builder::ClientBuilder;
pub use client_identity::UserAgent;
pub use client_limits::ClientLimits;
pub use client_provider::{ClientProvider, CredentialsError};
pub use error::{BoxError, error_chain};
pub use fence::{Fence, Fenced};
pub use metrics::{ClientMetrics, NoMetrics};
pub use probe::{CertificateFault, Unreachable, wait_for_api_server};
pub use rate_limiter::{Limits, RateLimiter, TokenBucket};
pub use request::{
    ApiError, Attempts, Call, Cause, DeleteOptions, Deleted, DeletionPropagation, ErrorClass, ListOptions, Outcome,
    Page, Patch, Payload, Scale, Subresource, Written,
};
pub use transport::{
    ClientAuthority, ExecPluginMetrics, LoadError, StackError, connect, connect_with_metrics, load_config,
};
pub use warnings::Warnings;
