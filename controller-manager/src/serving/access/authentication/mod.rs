//! Whose request it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use kcm_framework::clock::Clock;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::authorities::user_of;
use super::bearer_token::bearer_token;
use super::request_header::HeaderNames;
use super::review_cache::{ReviewCache, key};
use super::reviewer::{Reviewer, TokenReviewStatus};
use super::trust::{Trust, Trusted};
use super::user::User;

/// How many answers are kept.
const MOST_ANSWERS: usize = 4096;

/// The settings of authentication.
#[derive(Debug, Clone)]
pub(crate) struct AuthenticationOptions {
    /// The kubeconfig of the user who creates `TokenReviews` and reads the cluster's settings.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The authorities of clients.
    pub(crate) client_ca: Option<PathBuf>,
    /// The authorities of front proxies.
    pub(crate) request_header_ca: Option<PathBuf>,
    /// The headers of front proxies, where their authorities are in a file.
    pub(crate) headers: HeaderNames,
    /// Whether nothing is read from the cluster.
    pub(crate) skip_lookup: bool,
    /// Whether the program runs though the cluster's settings cannot be read.
    pub(crate) tolerate_lookup_failure: bool,
    /// How long the answer of a `TokenReview` counts.
    pub(crate) token_ttl: Duration,
}

/// Whose requests are.
pub(super) struct Authentication {
    trust: Arc<Trust>,
    clock: Arc<dyn Clock>,
    /// Absent where there is no API server to ask: tokens do not count then.
    reviewer: Option<Arc<Reviewer>>,
    token_ttl: Duration,
    tokens: ReviewCache<TokenReviewStatus>,
}

/// Whose request it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identified {
    /// The user, who may be anonymous.
    User(User),
    /// Credentials were presented, and none is valid. With the reasons.
    Invalid(Vec<String>),
}

impl Authentication {
    pub(super) fn new(
        trust: Arc<Trust>,
        clock: Arc<dyn Clock>,
        reviewer: Option<Arc<Reviewer>>,
        token_ttl: Duration,
    ) -> Self {
        Self { trust, clock, reviewer, token_ttl, tokens: ReviewCache::new(MOST_ANSWERS) }
    }

    /// The user of a request: whom a front proxy names, then the certificate, then the token, whichever is the first that
    /// is valid. A request without credentials is anonymous.
    ///
    /// # Upstream
    /// `DelegatingAuthenticatorConfig` in `apiserver/pkg/authentication/authenticatorfactory`.
    pub(super) async fn identify(&self, headers: &HeaderMap, certificates: &[CertificateDer<'_>]) -> Identified {
        let now = Duration::try_from(self.clock.now().as_duration()).unwrap_or_default();
        let mut reasons = Vec::new();
        let certified =
            by_certificate(&self.trust.now(), headers, certificates, UnixTime::since_unix_epoch(now), &mut reasons);
        if let Some(user) = certified {
            return Identified::User(user.authenticated());
        }
        if let (Some(reviewer), Some(token)) = (&self.reviewer, bearer_token(headers)) {
            let reviewed =
                self.tokens.get(key(token.as_bytes()), |_| self.token_ttl, reviewer.review_token(token)).await;
            match reviewed {
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
}

/// The user that the certificates of a client prove; what is wrong with them is added to `reasons`.
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
