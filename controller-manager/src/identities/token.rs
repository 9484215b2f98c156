//! The token of one service account, and when it is renewed. Pure.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The namespace of the service accounts of controllers.
pub(super) const NAMESPACE: &str = "kube-system";

/// Requested life of a token, in seconds.
const EXPIRATION_SECONDS: i64 = 3600;

/// The share of its life, in percent, at whose begin a token is renewed.
const LEEWAY_PERCENT: u32 = 20;

/// The least life that is assumed: less than that is taken for a clock that is wrong.
const LEAST_LIFE: Duration = Duration::from_mins(10);

/// Request and response of `TokenRequest`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenRequest {
    api_version: String,
    kind: String,
    spec: Spec,
    #[serde(skip_serializing, default)]
    status: Option<Status>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    expiration_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    audiences: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: String,
    expiration_timestamp: Timestamp,
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Status").field("expiration_timestamp", &self.expiration_timestamp).finish_non_exhaustive()
    }
}

/// A token, and when it is renewed.
#[derive(Clone)]
pub(crate) struct Token {
    /// The value of the header `Authorization`.
    pub(crate) header: http::HeaderValue,
    /// Time at which the next token is requested.
    pub(crate) renew_at: Instant,
    /// Time until which the token is used if there is no newer token.
    pub(crate) expires_at: Instant,
}

impl TokenRequest {
    /// A request for a token of the API server's own audience.
    pub(crate) fn new() -> Self {
        let spec = Spec { expiration_seconds: Some(EXPIRATION_SECONDS), audiences: Vec::new() };
        Self { api_version: "authentication.k8s.io/v1".to_owned(), kind: "TokenRequest".to_owned(), spec, status: None }
    }

    /// The token of the response, which was received at `now`; absent if the response has none.
    pub(crate) fn token(&self, now: Instant, wall: Timestamp) -> Option<Token> {
        let Status { token, expiration_timestamp } = self.status.as_ref()?;
        let mut header = http::HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        header.set_sensitive(true);
        let life = Duration::try_from(expiration_timestamp.duration_since(wall)).unwrap_or_default().max(LEAST_LIFE);
        Some(Token { header, renew_at: now + life - life * LEEWAY_PERCENT / 100, expires_at: now + life })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(expires: &str) -> TokenRequest {
        let json = serde_json::json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 3600 },
            "status": { "token": "abc", "expirationTimestamp": expires },
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_token_is_renewed_when_a_fifth_of_its_life_is_left_and_a_wrong_clock_does_not_renew_it_at_once() {
        let (now, wall) = (Instant::now(), "2030-01-01T00:00:00Z".parse().unwrap());
        for (expires, renewed_after) in [
            ("2030-01-01T01:00:00Z", Duration::from_mins(48)),
            ("2030-01-01T00:10:00Z", Duration::from_mins(8)),
            ("2030-01-01T00:00:01Z", Duration::from_mins(8)),
            ("2029-01-01T00:00:00Z", Duration::from_mins(8)),
        ] {
            let token = response(expires).token(now, wall).unwrap();
            assert_eq!(token.renew_at - now, renewed_after, "{expires}");
            assert_eq!(token.header, "Bearer abc");
        }
    }

    #[test]
    fn a_token_is_never_printed() {
        let response = response("2030-01-01T01:00:00Z");
        let token = response.token(Instant::now(), Timestamp::UNIX_EPOCH).unwrap();
        assert!(!format!("{response:?} {:?}", token.header).contains("abc"));
    }

    #[test]
    fn the_request_names_only_the_life_of_the_token() {
        let json = serde_json::to_value(TokenRequest::new()).unwrap();
        let expected = serde_json::json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 3600 },
        });
        assert_eq!(json, expected);
    }
}
