//! The metrics of requests.

use std::time::Duration;

/// The metrics of clients; every method does nothing unless it is implemented.
///
/// # Upstream
/// `rest_client_requests_total`, `rest_client_request_duration_seconds`, `rest_client_request_retries_total`,
/// `rest_client_rate_limiter_duration_seconds`, `rest_client_request_size_bytes`, `rest_client_response_size_bytes`.
pub trait ClientMetrics: Send + Sync + 'static {
    /// A request got a response with `code`, or failed without a response.
    fn request(&self, method: &str, code: Option<u16>, latency: Duration) {
        let _ = (method, code, latency);
    }

    /// The request that was counted last repeats a failed request: every attempt of a request but the first.
    fn repetition(&self, method: &str, code: Option<u16>) {
        let _ = (method, code);
    }

    /// A write that was sent was given up without a response, because the fence closed.
    fn given_up(&self) {}

    /// A request with a body of that many bytes was sent; watches are not counted.
    fn request_size(&self, method: &str, bytes: u64) {
        let _ = (method, bytes);
    }

    /// The body of a response ended after that many bytes; watches are not counted.
    fn response_size(&self, method: &str, bytes: u64) {
        let _ = (method, bytes);
    }

    /// A request waited for the rate limiter of its client.
    fn throttled(&self, method: &str, waited: Duration) {
        let _ = (method, waited);
    }
}

/// Metrics that are not recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl ClientMetrics for NoMetrics {}
