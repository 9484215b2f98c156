//! The bearer token of a request. Pure.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Returns the token in the header `Authorization`, or `None` if there is none.
///
/// # Upstream
/// `bearertoken` in `apiserver/pkg/authentication/request`: the token ends at the first space, and a second space
/// before it makes it empty.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = value.splitn(3, ' ');
    let is_bearer = parts.next()?.eq_ignore_ascii_case("bearer");
    parts.next().filter(|token| is_bearer && !token.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_token_is_read_as_upstream_reads_it() {
        for (value, token) in [
            (Some("Bearer a-token"), Some("a-token")),
            (Some("  bEARER a-token "), Some("a-token")),
            (Some("Bearer a-token more"), Some("a-token")),
            (Some("Bearer  a-token"), None),
            (Some("Bearer "), None),
            (Some("Bearer"), None),
            (Some("Basic a-token"), None),
            (Some("a-token"), None),
            (Some(""), None),
            (None, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            }
            assert_eq!(bearer_token(&headers), token, "{value:?}");
        }
    }
}
