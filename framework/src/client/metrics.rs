//! What is counted about requests.

use std::time::Duration;

/// Takes what clients measure; does nothing unless implemented.
///
/// # Upstream
/// `rest_client_requests_total`, `rest_client_request_duration_seconds`,
/// `rest_client_rate_limiter_duration_seconds`.
pub trait ClientMetrics: Send + Sync + 'static {
    /// A request was answered with `code`, or ended without an answer.
    fn request(&self, method: &str, code: Option<u16>, latency: Duration) {
        let _ = (method, code, latency);
    }

    /// A request had waited for the token bucket of its client.
    fn throttled(&self, method: &str, waited: Duration) {
        let _ = (method, waited);
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl ClientMetrics for NoMetrics {}
