//! Authentication and authorization of requests.
//!
//! ```text
//! request ──▶ authentication ──User──▶ authorization ──▶ Decision
//!              │ certificates, headers,   │ groups, paths,
//!              │ `TokenReview`              │ `SubjectAccessReview`
//!              └───────────┬──────────────┘
//!                     review_cache, reviewer
//! ```
//!
//! # Guarantees
//! - A request costs at most one `TokenReview` and one `SubjectAccessReview`. Equal reviews at a time are sent once. A
//!   request without valid credentials costs at most one review of each kind.
//! - The cache of responses is bounded, and so is the number of concurrent reviews.
//!
//! # Upstream
//! `DelegatingAuthenticationOptions` and `DelegatingAuthorizationOptions` in `apiserver/pkg/server/options`. It does
//! not keep the answer for a wrong token; here that counts for as long as the answer for a right one. It sends the
//! attributes of a resource for paths beneath `/api` and `/apis`, which are not served: here they are paths like
//! others.

mod authentication;
mod authorities;
mod authorization;
mod bearer_token;
mod cluster_config;
mod metrics;
mod request_header;
mod review_cache;
mod reviewer;
mod setup;
mod trust;
mod user;

use http::request::Parts;
use rustls::pki_types::CertificateDer;
use tokio::time::Instant;

pub(crate) use authentication::AuthenticationOptions;
use authentication::{Authentication, Identified};
pub use authorities::BundleError;
pub(crate) use authorization::{AllowedPaths, AuthorizationOptions};
use authorization::{Authorization, Verdict};
pub use cluster_config::LookupError;
use metrics::AccessMetrics;
pub(crate) use request_header::HeaderNames;
pub(super) use setup::Setup;
pub use setup::SetupError;
pub(super) use trust::Trust;
pub use trust::TrustError;
pub(super) use user::User;

/// Authenticates and authorizes requests.
pub(super) struct Access {
    authentication: Authentication,
    authorization: Authorization,
    metrics: AccessMetrics,
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The request is served to this user.
    Allowed(User),
    /// Its credentials are not valid.
    Unauthorized,
    /// The user may not send it. The reason may be empty.
    Forbidden {
        /// The user who is refused.
        user: User,
        /// The reason of the API server.
        reason: String,
    },
    /// An error prevented the decision.
    Failed {
        /// The user who has sent the request.
        user: User,
        /// The error of the review.
        error: String,
    },
}

impl Access {
    const fn new(authentication: Authentication, authorization: Authorization, metrics: AccessMetrics) -> Self {
        Self { authentication, authorization, metrics }
    }

    /// Decides about a request from a client with these certificates, whose decoded path is `path`.
    pub(super) async fn decide(&self, request: &Parts, path: &str, certificates: &[CertificateDer<'_>]) -> Decision {
        let since = Instant::now();
        let user = match self.authentication.identify(&request.headers, certificates).await {
            Identified::User(user) => {
                self.metrics.authenticated(Some(&user.name), since);
                user
            }
            Identified::Invalid(reasons) => {
                self.metrics.authenticated(None, since);
                tracing::debug!(path, reasons = reasons.join("; "), "Unable to authenticate the request");
                return Decision::Unauthorized;
            }
        };
        let verb = request.method.as_str().to_ascii_lowercase();
        let since = Instant::now();
        let verdict = self.authorization.authorize(&user, path, &verb).await;
        self.metrics.authorized(verdict.result(), since);
        match verdict {
            Verdict::Allowed => Decision::Allowed(user),
            Verdict::Denied(reason) | Verdict::NoOpinion(reason) => {
                tracing::debug!(path, user = user.name, reason, "Forbidden");
                Decision::Forbidden { user, reason }
            }
            Verdict::Unknown(error) => {
                tracing::warn!(path, user = user.name, error, "Cannot authorize a request");
                Decision::Failed { user, error }
            }
        }
    }
}

#[cfg(test)]
mod tests;
