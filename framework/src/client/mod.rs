//! Requests to the API server: the connection, the identity behind each request, and what a failure means.

mod answer;
mod api_client;
mod bucket;
mod error;
mod identity;
mod metrics;
mod open_stream;
mod payload;
mod stack;
mod target;
mod warnings;

pub use answer::{Deleted, Page, Written};
pub use api_client::{ApiClient, REQUEST_TIMEOUT};
pub use bucket::{Bucket, Limits};
pub use error::{ApiError, Cause, ErrorClass, Status, StatusCause};
pub use identity::{ClientBuilder, UserAgent};
pub use metrics::{ClientMetrics, NoMetrics};
pub use payload::{DeleteOptions, ListOptions, Part, Patch, Payload, Propagation};
pub use stack::{StackError, connect};
pub use warnings::Warnings;
