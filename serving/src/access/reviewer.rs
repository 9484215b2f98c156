//! Sends reviews to the API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_framework::client::{ApiClient, ApiError, ErrorClass, Payload, Written};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::metrics::AccessMetrics;
use super::user::User;

const TOKEN_REVIEWS: Resource = Resource::cluster_scoped("authentication.k8s.io", "v1", "tokenreviews", "TokenReview");
const ACCESS_REVIEWS: Resource =
    Resource::cluster_scoped("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview");

/// Longest time for a review, including repetitions and the wait for other reviews.
///
/// # Upstream
/// `TokenRequestTimeout` and `ClientTimeout` in `apiserver/pkg/server/options`.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest number of reviews at a time; further ones wait.
const MOST_REVIEWS: usize = 32;

/// The code of the response to a creation.
const CREATED: u16 = 201;

/// The pauses between attempts.
///
/// # Upstream
/// `DefaultAuthWebhookRetryBackoff` in `apiserver/pkg/server/options`: five attempts.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_millis(750), Duration::from_millis(1125), Duration::from_millis(1690)];

/// Response to a `TokenReview`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct TokenReviewStatus {
    pub(super) authenticated: bool,
    pub(super) user: User,
    pub(super) error: String,
}

/// Response to a `SubjectAccessReview`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct AccessReviewStatus {
    pub(super) allowed: bool,
    pub(super) denied: bool,
    pub(super) reason: String,
}

/// The question of a `SubjectAccessReview`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccessQuestion<'a> {
    non_resource_attributes: NonResource<'a>,
    user: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Serialize)]
struct NonResource<'a> {
    path: &'a str,
    verb: &'a str,
}

impl<'a> AccessQuestion<'a> {
    /// Asks if `user` may send a request of `verb` to `path`.
    pub(super) fn new(user: &'a User, path: &'a str, verb: &'a str) -> Self {
        let non_resource_attributes = NonResource { path, verb };
        Self { non_resource_attributes, user: &user.name, groups: &user.groups, uid: &user.uid, extra: &user.extra }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a, S> {
    api_version: &'static str,
    kind: &'static str,
    spec: &'a S,
}

/// A client that creates reviews.
pub(super) struct Reviewer {
    api: ApiClient,
    metrics: AccessMetrics,
    under_way: Semaphore,
}

/// The clients that create reviews; `None` without an API server to ask.
#[derive(Clone, Default)]
pub(super) struct Reviewers {
    pub(super) tokens: Option<Arc<Reviewer>>,
    pub(super) access: Option<Arc<Reviewer>>,
}

impl Reviewer {
    pub(super) fn new(api: ApiClient, metrics: AccessMetrics) -> Self {
        Self { api, metrics, under_way: Semaphore::new(MOST_REVIEWS) }
    }

    pub(super) const fn api(&self) -> &ApiClient {
        &self.api
    }

    /// Asks the API server for the user of a token.
    ///
    /// # Errors
    /// If the API server does not say.
    pub(super) async fn review_token(&self, token: &str) -> Result<TokenReviewStatus, String> {
        #[derive(Serialize)]
        struct Spec<'a> {
            token: &'a str,
        }
        let answered = |code, since| self.metrics.token_reviews.answered(code, since);
        self.review(&TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", &Spec { token }, answered).await
    }

    /// Asks if a user may send a request.
    ///
    /// # Errors
    /// If the API server does not decide.
    pub(super) async fn review_access(&self, question: &AccessQuestion<'_>) -> Result<AccessReviewStatus, String> {
        let answered = |code, since| self.metrics.access_reviews.answered(code, since);
        self.review(&ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", question, answered).await
    }

    async fn review<S: Serialize, A: for<'de> Deserialize<'de>>(
        &self,
        resource: &Resource,
        api_version: &'static str,
        kind: &'static str,
        spec: &S,
        answered: impl Fn(Option<u16>, Instant),
    ) -> Result<A, String> {
        #[derive(Deserialize)]
        struct ReviewStatus<A> {
            status: A,
        }
        let reviewed = timeout(TIMEOUT, async {
            let _permit = self.under_way.acquire().await;
            // Made after the wait, so that reviews that wait cost no copy of what clients send.
            let payload = Payload::json(&Review { api_version, kind, spec });
            // Boxed, so that reviews that wait have no room for it.
            Box::pin(self.send(resource, payload, answered)).await
        });
        let written = match reviewed.await {
            Ok(Ok(written)) => written,
            Ok(Err(error)) => return Err(kcm_framework::error_chain(&error)),
            Err(_) => return Err(format!("the {kind} was not answered within {}s", TIMEOUT.as_secs())),
        };
        let answer = serde_json::from_slice::<ReviewStatus<A>>(&written.body);
        answer.map(|answer| answer.status).map_err(|error| format!("the answer is no {kind}: {error}"))
    }

    /// Sends a review, repeatedly if that may help.
    async fn send(
        &self,
        resource: &Resource,
        payload: Payload,
        answered: impl Fn(Option<u16>, Instant),
    ) -> Result<Written, ApiError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let since = Instant::now();
            match self.api.create(resource, None, payload.clone()).await {
                Ok(written) => {
                    answered(Some(CREATED), since);
                    return Ok(written);
                }
                Err(error) => {
                    answered(error.status().map(|status| status.code), since);
                    match pauses.next().filter(|_| may_pass(&error)) {
                        Some(pause) => sleep(pause).await,
                        None => return Err(error),
                    }
                }
            }
        }
    }
}

/// Returns `true` if a failed review may succeed soon.
fn may_pass(error: &ApiError) -> bool {
    matches!(error.class(), ErrorClass::Transient | ErrorClass::Unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_the_fields_of_a_review() {
        let user = User {
            name: "jane".to_owned(),
            groups: vec!["dev".to_owned()],
            extra: [("scopes".to_owned(), vec!["one".to_owned()])].into(),
            ..User::default()
        };
        let expected = serde_json::json!({
            "nonResourceAttributes": { "path": "/metrics", "verb": "get" },
            "user": "jane", "groups": ["dev"], "extra": { "scopes": ["one"] },
        });
        let question = AccessQuestion::new(&user, "/metrics", "get");
        assert_eq!(serde_json::to_value(&question).expect("it is data"), expected);
    }
}
