//! A client identity: its User-Agent, its rate limit, and the metrics of its requests.

use std::sync::Arc;

use http::header::{HeaderMap, USER_AGENT};
use http::{HeaderValue, Response};
use kcm_informers::{Connection, may_be_outage};
use tokio::time::Instant;

use super::fence::Fence;
use super::metrics::ClientMetrics;
use super::rate_limiter::RateLimiter;
use super::request::{Cause, WriteRecord};
use super::warnings::Warnings;

/// The User-Agent of the manager, to which each identity appends its name.
///
/// The API server derives field managers from the part before the first slash.
///
/// # Upstream
/// client-go's default and `rest.AddUserAgent`:
/// `kube-controller-manager/v1.37.2 (linux/amd64) kubernetes/0123456/replicaset-controller`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAgent(String);

impl UserAgent {
    /// The User-Agent of a program, from its version (`v1.37.2`) and the commit that it was built from.
    #[must_use]
    pub fn new(program: &str, version: &str, commit: &str) -> Self {
        let known = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        let version = known(version.split('-').next().unwrap_or_default());
        let commit = known(&commit.chars().take(7).collect::<String>());
        Self(format!("{program}/{version} ({}/{}) kubernetes/{commit}", go_os(), go_arch()))
    }

    /// The User-Agent of one identity.
    #[must_use]
    pub fn of(&self, identity: &str) -> String {
        format!("{}/{identity}", self.0)
    }
}

fn go_os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// A client identity: its User-Agent, its rate limiter, the fence of its writes, the connection, the metrics of its
/// requests, and the log of warnings.
pub(crate) struct ClientIdentity {
    pub(super) user_agent: HeaderValue,
    pub(super) rate_limiter: RateLimiter,
    pub(super) fence: Fence,
    pub(super) writes: WriteRecord,
    pub(super) connection: Connection,
    pub(super) warnings: Arc<Warnings>,
    pub(super) metrics: Arc<dyn ClientMetrics>,
}

impl ClientIdentity {
    /// Waits for the rate limiter.
    pub(crate) async fn wait(&self, method: &str) {
        const LOGGED_FROM: std::time::Duration = std::time::Duration::from_secs(1);
        let waited = self.rate_limiter.acquire().await;
        self.metrics.throttled(method, waited);
        if waited > LOGGED_FROM {
            tracing::info!(v = 2, ?waited, method, "Waited for the client-side rate limit");
        }
    }

    pub(crate) fn sign(&self, headers: &mut HeaderMap) {
        headers.insert(USER_AGENT, self.user_agent.clone());
    }

    /// Returns `true` if an outage may have caused the failure of a request. The API server is then probed.
    pub(crate) fn failed(&self, cause: &Cause) -> bool {
        let is_suspicious = match cause {
            Cause::Transport(_) | Cause::NotSent(_) | Cause::Timeout(_) | Cause::GivenUp(_) => true,
            Cause::Status(status) => may_be_outage(status),
            Cause::Fenced(_)
            | Cause::Undeclared { .. }
            | Cause::Decode(_)
            | Cause::TooLarge { .. }
            | Cause::Encode(_) => false,
        };
        if matches!(cause, Cause::GivenUp(_)) {
            self.metrics.given_up();
        }
        if is_suspicious {
            self.connection.suspect(cause);
        }
        is_suspicious
    }

    /// Counts the bytes of the body of a request that is about to be sent.
    pub(crate) fn sending(&self, method: &str, body: &impl http_body::Body) {
        if let Some(bytes) = body.size_hint().exact() {
            self.metrics.request_size(method, bytes);
        }
    }

    /// Counts an attempt of a request and logs the warnings of its response.
    pub(crate) fn observe<B>(&self, method: &str, started: Instant, answer: Option<&Response<B>>, is_repetition: bool) {
        let code = answer.map(|answer| answer.status().as_u16());
        self.metrics.request(method, code, started.elapsed());
        if is_repetition {
            self.metrics.repetition(method, code);
        }
        if let Some(answer) = answer {
            self.warnings.log(answer.headers());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_is_client_gos() {
        let agent = UserAgent::new("kube-controller-manager", "v1.37.2-alpha.1", "0123456789abcdef");
        let of = agent.of("replicaset-controller");
        assert!(of.starts_with("kube-controller-manager/v1.37.2 ("), "{of}");
        assert!(of.ends_with(") kubernetes/0123456/replicaset-controller"), "{of}");
        assert!(UserAgent::new("a", "", "").0.ends_with(" kubernetes/unknown"));
    }
}
