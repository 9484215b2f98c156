//! Requests to the API server: the connection, the identity behind each request, and what a failure means.

mod answer;
mod api_client;
mod error;
mod head;
mod identity;
mod kubeconfig;
mod metrics;
mod open_stream;
mod payload;
mod probe;
mod proxy;
mod rate_limiter;
mod read_ahead;
mod stack;
mod status;
mod target;
mod warnings;

pub use answer::{Deleted, Page, Written};
pub use api_client::{ApiClient, REQUEST_TIMEOUT};
pub use error::{ApiError, Cause, ErrorClass};
pub use identity::{ClientBuilder, UserAgent};
pub use kubeconfig::{LoadError, load_config};
pub use metrics::{ClientMetrics, NoMetrics};
pub use payload::{DeleteOptions, DeletionPropagation, ListOptions, Patch, Payload, Subresource};
pub use probe::{CertificateFault, Unreachable, wait_for_api_server};
pub(crate) use rate_limiter::TokenBucket;
pub use rate_limiter::{Limits, RateLimiter};
pub use stack::{StackError, connect};
pub use status::{Status, StatusCause};
pub use warnings::Warnings;
