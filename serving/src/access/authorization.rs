//! Authorization: which requests a user may send.

use std::sync::Arc;
use std::time::Duration;

use super::review_cache::{ReviewCache, key};
use super::reviewer::{AccessQuestion, AccessReviewStatus, Reviewer};
use super::user::User;

/// The group whose members may do everything.
///
/// # Upstream
/// `SystemPrivilegedGroup` in `apiserver/pkg/authentication/user`.
const MASTERS: &str = "system:masters";

/// Largest number of responses in the cache.
const MOST_ANSWERS: usize = 4096;

/// The settings of authorization.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizationOptions {
    /// The kubeconfig of the user who creates `SubjectAccessReviews`.
    pub(crate) kubeconfig: Option<std::path::PathBuf>,
    /// The paths that need no authorization.
    pub(crate) always_allow: AllowedPaths,
    /// Time for which a response that allows is cached.
    pub(crate) allowed_ttl: Duration,
    /// Time for which a response that denies is cached.
    pub(crate) denied_ttl: Duration,
}

/// The paths that need no authorization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedPaths {
    exact: Vec<String>,
    prefixes: Vec<String>,
}

impl AllowedPaths {
    /// Reads paths. A path that ends in `*` stands for all paths with its prefix.
    ///
    /// # Errors
    /// The paths with a `*` elsewhere.
    ///
    /// # Upstream
    /// `NewAuthorizer` in `apiserver/pkg/authorization/path`.
    pub(crate) fn read(paths: &[String]) -> Result<Self, Vec<String>> {
        let mut read = Self::default();
        let mut wrong = Vec::new();
        for path in paths {
            let stripped = path.strip_prefix('/').unwrap_or(path);
            match stripped.strip_suffix('*') {
                Some(prefix) if !prefix.contains('*') => read.prefixes.push(prefix.to_owned()),
                None if !stripped.contains('*') => read.exact.push(stripped.to_owned()),
                Some(_) | None => wrong.push(path.clone()),
            }
        }
        if wrong.is_empty() { Ok(read) } else { Err(wrong) }
    }

    /// Returns `true` if every path is one of them.
    pub(crate) fn are_all(&self) -> bool {
        self.prefixes.iter().any(String::is_empty)
    }

    fn contain(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.exact.iter().any(|exact| exact == path) || self.prefixes.iter().any(|prefix| path.starts_with(prefix))
    }
}

/// The decision on the request of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// With the reason, which may be empty.
    Denied(String),
    /// No authorizer allows it or denies it; with the reason, which may be empty.
    NoOpinion(String),
    /// The API server did not say.
    Unknown(String),
}

impl Verdict {
    /// The label `result` in metrics.
    pub(super) const fn result(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied(_) => "denied",
            Self::NoOpinion(_) => "no-opinion",
            Self::Unknown(_) => "error",
        }
    }
}

/// Decides which requests users may send.
pub(super) struct Authorization {
    options: AuthorizationOptions,
    /// `None` without an API server to ask.
    reviewer: Option<Arc<Reviewer>>,
    answers: ReviewCache<AccessReviewStatus>,
}

impl Authorization {
    pub(super) fn new(options: AuthorizationOptions, reviewer: Option<Arc<Reviewer>>) -> Self {
        Self { options, reviewer, answers: ReviewCache::new(MOST_ANSWERS) }
    }

    /// Decides if `user` may send a request of `verb`, a method in lower case, to `path`.
    pub(super) async fn authorize(&self, user: &User, path: &str, verb: &str) -> Verdict {
        if needs_no_review(user, path, &self.options.always_allow) {
            return Verdict::Allowed;
        }
        let Some(reviewer) = &self.reviewer else { return Verdict::NoOpinion(String::new()) };
        let question = AccessQuestion::new(user, path, verb);
        let hash = match serde_json::to_vec(&question) {
            Ok(json) => key(&json),
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        let (allowed, denied) = (self.options.allowed_ttl, self.options.denied_ttl);
        let ttl = |answer: &AccessReviewStatus| if answer.allowed { allowed } else { denied };
        verdict(self.answers.get(hash, ttl, reviewer.review_access(&question)).await)
    }
}

fn needs_no_review(user: &User, path: &str, always_allow: &AllowedPaths) -> bool {
    user.is_in(MASTERS) || always_allow.contain(path)
}

/// # Upstream
/// `Authorize` in `apiserver/plugin/pkg/authorizer/webhook`.
fn verdict(answer: Result<AccessReviewStatus, String>) -> Verdict {
    match answer {
        Err(error) => Verdict::Unknown(error),
        Ok(AccessReviewStatus { allowed: true, denied: true, .. }) => {
            Verdict::Unknown("webhook subject access review returned both allow and deny response".to_owned())
        }
        Ok(AccessReviewStatus { allowed: true, .. }) => Verdict::Allowed,
        Ok(AccessReviewStatus { allowed: false, denied: true, reason }) => Verdict::Denied(reason),
        Ok(AccessReviewStatus { allowed: false, denied: false, reason }) => Verdict::NoOpinion(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(items: &[&str]) -> Vec<String> {
        items.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_are_exact_unless_they_end_in_a_star() {
        let paths = AllowedPaths::read(&strings(&["/healthz", "readyz", "/debug/*", "/"])).expect("they are paths");
        for (path, contained) in [
            ("/healthz", true),
            ("/healthz/", false),
            ("/healthz/ping", false),
            ("/readyz", true),
            ("/debug/", true),
            ("/debug/queues", true),
            ("/debug", false),
            ("/", true),
            ("/metrics", false),
        ] {
            assert_eq!(paths.contain(path), contained, "{path}");
        }
        assert!(AllowedPaths::read(&strings(&["*"])).expect("it is a path").contain("/metrics"));
        assert_eq!(AllowedPaths::read(&strings(&["/a*b", "/ok", "/*/*"])), Err(strings(&["/a*b", "/*/*"])));
    }

    #[test]
    fn masters_and_open_paths_need_no_review() {
        let open = AllowedPaths::read(&strings(&["/healthz"])).expect("it is a path");
        let master = User { name: "root".to_owned(), groups: strings(&["dev", MASTERS]), ..User::default() };
        assert!(needs_no_review(&master, "/metrics", &open));
        assert!(needs_no_review(&User::anonymous(), "/healthz", &open));
        assert!(!needs_no_review(&User::anonymous(), "/metrics", &open));
    }

    #[test]
    fn a_verdict_has_upstreams_result() {
        let reason = String::new;
        let verdicts =
            [Verdict::Allowed, Verdict::Denied(reason()), Verdict::NoOpinion(reason()), Verdict::Unknown(reason())];
        assert_eq!(verdicts.map(|verdict| verdict.result()), ["allowed", "denied", "no-opinion", "error"]);
    }

    #[test]
    fn an_answer_is_a_verdict() {
        let status = |allowed, denied| AccessReviewStatus { allowed, denied, reason: "because".to_owned() };
        assert_eq!(verdict(Ok(status(true, false))), Verdict::Allowed);
        assert_eq!(verdict(Ok(status(false, false))), Verdict::NoOpinion("because".to_owned()));
        assert_eq!(verdict(Ok(status(false, true))), Verdict::Denied("because".to_owned()));
        assert!(matches!(verdict(Ok(status(true, true))), Verdict::Unknown(_)));
        assert!(matches!(verdict(Err("gone".to_owned())), Verdict::Unknown(_)));
    }
}
