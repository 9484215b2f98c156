//! Requests to the API server: the connection, the identity behind each request, and what a failure means.
//!
//! `transport` makes connections, `request` holds the parts of requests and responses; neither knows the other, nor the
//! clients above them.

mod api_client;
mod client_builder;
mod client_identity;
mod metrics;
mod probe;
mod rate_limiter;
mod request;
mod transport;
mod warnings;

pub use api_client::{ApiClient, REQUEST_TIMEOUT};
pub use client_builder::ClientBuilder;
pub use client_identity::UserAgent;
pub use metrics::{ClientMetrics, NoMetrics};
pub use probe::{CertificateFault, Unreachable, wait_for_api_server};
pub(crate) use rate_limiter::TokenBucket;
pub use rate_limiter::{Limits, RateLimiter};
pub use request::{
    ApiError, Cause, DeleteOptions, Deleted, DeletionPropagation, ErrorClass, ListOptions, Page, Patch, Payload,
    Subresource, Written,
};
pub use transport::{LoadError, StackError, connect, load_config};
pub use warnings::Warnings;
