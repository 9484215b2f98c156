//! The client of the API server: connections, client identities, requests and their errors.
//!
//! `transport` makes connections, `request` has the types of requests and responses; neither depends on the other, nor
//! on the clients above them.

mod api_client;
mod client_builder;
mod client_identity;
mod client_limits;
mod client_provider;
mod counted_body;
mod fence;
mod metrics;
mod probe;
mod rate_limiter;
mod request;
mod transport;
mod warnings;

pub use api_client::{ApiClient, REQUEST_TIMEOUT};
pub use client_builder::ClientBuilder;
pub use client_identity::UserAgent;
pub use client_limits::ClientLimits;
pub use client_provider::{ClientProvider, CredentialsError};
pub use fence::{Fence, Fenced};
pub use metrics::{ClientMetrics, NoMetrics};
pub use probe::{CertificateFault, Unreachable, wait_for_api_server};
pub(crate) use rate_limiter::TokenBucket;
pub use rate_limiter::{Limits, RateLimiter};
pub use request::{
    ApiError, Cause, DeleteOptions, Deleted, DeletionPropagation, ErrorClass, ListOptions, Page, Patch, Payload,
    ResponseExt, Scale, Subresource, Written,
};
pub(crate) use request::{Attempts, Call, Outcome};
pub use transport::{
    ClientAuthority, ExecPluginMetrics, LoadError, StackError, connect, connect_with_metrics, load_config,
};
pub use warnings::Warnings;
