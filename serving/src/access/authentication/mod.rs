//! Whose request it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use kcm_framework::clock::Clock;
use kcm_framework::x509::validity;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::time::Instant;

use super::authorities::user_of;
use super::bearer_token::bearer_token;
use super::metrics::AccessMetrics;
use super::request_header::HeaderNames;
use super::review_cache::{ReviewCache, key};
use super::reviewer::{Reviewer, TokenReviewStatus};
use super::trust::{Trust, Trusted};
use super::user::User;

/// Largest number of responses in the cache.
const MOST_ANSWERS: usize = 4096;

/// The settings of authentication.
#[derive(Debug, Clone)]
pub(crate) struct AuthenticationOptions {
    /// The kubeconfig of the user who creates `TokenReviews` and reads the cluster's settings.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The CAs of clients.
    pub(crate) client_ca: Option<PathBuf>,
    /// The CAs of front proxies.
    pub(crate) request_header_ca: Option<PathBuf>,
    /// Headers of front proxies, if a flag names the file with their CAs.
    pub(crate) headers: HeaderNames,
    /// Whether nothing is read from the cluster.
    pub(crate) skip_lookup: bool,
    /// Whether the program runs though the cluster's settings cannot be read.
    pub(crate) tolerate_lookup_failure: bool,
    /// Time for which the response of a `TokenReview` is cached.
    pub(crate) token_ttl: Duration,
}

/// Finds the users who send requests.
pub(super) struct Authentication {
    trust: Arc<Trust>,
    clock: Arc<dyn Clock>,
    /// `None` without an API server to ask. Tokens do not count then.
    reviewer: Option<Arc<Reviewer>>,
    token_ttl: Duration,
    tokens: ReviewCache<TokenReviewStatus>,
    metrics: AccessMetrics,
}

/// Whose request it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identified {
    /// The user, who may be anonymous.
    User(User),
    /// Credentials were presented, but are invalid. With the reasons.
    Invalid(Vec<String>),
}

impl Authentication {
    pub(super) fn new(
        trust: Arc<Trust>,
        clock: Arc<dyn Clock>,
        reviewer: Option<Arc<Reviewer>>,
        token_ttl: Duration,
        metrics: AccessMetrics,
    ) -> Self {
        Self { trust, clock, reviewer, token_ttl, tokens: ReviewCache::new(MOST_ANSWERS), metrics }
    }

    /// The user of a request: whom a front proxy names, then the certificate, then the token, whichever is the first that
    /// is valid. A request without credentials is anonymous.
    ///
    /// # Upstream
    /// `DelegatingAuthenticatorConfig` in `apiserver/pkg/authentication/authenticatorfactory`.
    pub(super) async fn identify(&self, headers: &HeaderMap, certificates: &[CertificateDer<'_>]) -> Identified {
        let now = Duration::try_from(self.clock.now().as_duration()).unwrap_or_default();
        let mut reasons = Vec::new();
        let trusted = self.trust.now();
        if trusted.clients.is_some()
            && let Some(validity) = certificates.first().and_then(|certificate| validity(certificate))
        {
            let remaining = validity.not_after.duration_since(self.clock.now());
            self.metrics.certificate_presented(remaining.as_secs_f64());
        }
        let certified = by_certificate(&trusted, headers, certificates, UnixTime::since_unix_epoch(now), &mut reasons);
        if let Some(user) = certified {
            return Identified::User(user.authenticated());
        }
        if let (Some(reviewer), Some(token)) = (&self.reviewer, bearer_token(headers)) {
            match self.review(reviewer, token).await {
                Ok(TokenReviewStatus { authenticated: true, user, .. }) => {
                    return Identified::User(user.authenticated());
                }
                Ok(TokenReviewStatus { authenticated: false, error, .. }) if error.is_empty() => {
                    reasons.push("invalid bearer token".to_owned());
                }
                Ok(TokenReviewStatus { error, .. }) => reasons.push(error),
                Err(error) => {
                    tracing::warn!(error, "Cannot review a token");
                    reasons.push(error);
                }
            }
        }
        if reasons.is_empty() { Identified::User(User::anonymous()) } else { Identified::Invalid(reasons) }
    }

    /// Reviews a token, or returns a cached review.
    async fn review(&self, reviewer: &Reviewer, token: &str) -> Result<TokenReviewStatus, String> {
        let (key, started) = (key(token.as_bytes()), Instant::now());
        if let Some(known) = self.tokens.known(&key) {
            self.metrics.token_looked_up(true, started.elapsed());
            return Ok(known);
        }
        let _waits = self.metrics.waits_for_review();
        let review = async {
            let _in_flight = self.metrics.reviews_token();
            let answer = reviewer.review_token(token).await;
            // As upstream: a response that says why a token is invalid counts as an error.
            self.metrics.token_reviewed(answer.as_ref().is_ok_and(|status| status.error.is_empty()));
            answer
        };
        let answer = self.tokens.get(key, |_| self.token_ttl, review).await;
        self.metrics.token_looked_up(false, started.elapsed());
        answer
    }
}

/// Returns the user that the certificates of a client prove, and adds errors to `reasons`.
fn by_certificate(
    trusted: &Trusted,
    headers: &HeaderMap,
    certificates: &[CertificateDer<'_>],
    now: UnixTime,
    reasons: &mut Vec<String>,
) -> Option<User> {
    let certificate = certificates.first()?;
    if let Some((authorities, names)) = &trusted.proxies {
        match authorities.verify(certificates, now) {
            Ok(subject) if !names.allow(&subject.common_name) => {
                reasons.push(format!("the certificate of {} may not name users", subject.common_name));
            }
            Ok(_) => {
                if let Some(user) = names.user(headers) {
                    return Some(user);
                }
            }
            Err(reason) => reasons.push(reason),
        }
    }
    let authorities = trusted.clients.as_ref()?;
    match authorities.verify(certificates, now).and_then(|subject| user_of(subject, certificate)) {
        Ok(user) => user,
        Err(reason) => {
            reasons.push(reason);
            None
        }
    }
}

#[cfg(test)]
mod tests;
