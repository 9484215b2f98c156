//! The token that the sandbox requires.

use http::{HeaderMap, header};
use rustls::crypto::SecureRandom;
use subtle::ConstantTimeEq as _;

/// A bearer token. It has no `Debug`, so that it gets into no log.
pub(crate) struct Token(String);

/// The credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// No credentials, or no bearer token, which upstream treats alike.
    None,
    Right,
    Wrong,
}

impl Token {
    /// A token that cannot be guessed; `None` without randomness.
    pub(crate) fn random(source: &dyn SecureRandom) -> Option<Self> {
        random(source).map(Self)
    }

    /// Returns a chosen token; `None` if a header or a kubeconfig cannot carry it.
    pub(crate) fn chosen(text: String) -> Option<Self> {
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then_some(Self(text))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Checks a request. The time depends on the length of the presented token, not on the place of a difference.
    pub(crate) fn judge(&self, headers: &HeaderMap) -> Credentials {
        let presented = headers.get(header::AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
        let mut parts = presented.splitn(2, |byte| *byte == b' ');
        let is_bearer = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"));
        let Some(token) = parts.next().filter(|_| is_bearer).map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
        else {
            return Credentials::None;
        };
        if bool::from(token.ct_eq(self.0.as_bytes())) { Credentials::Right } else { Credentials::Wrong }
    }
}

/// Text that cannot be guessed; `None` without randomness.
pub(crate) fn random(source: &dyn SecureRandom) -> Option<String> {
    let mut bytes = [0; 16];
    source.fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(authorization: Option<&'static str>) -> Credentials {
        let token = Token::chosen("a-token".to_owned()).expect("the token is fine");
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, http::HeaderValue::from_static(value));
        }
        token.judge(&headers)
    }

    #[test]
    fn tells_the_right_token_from_a_wrong_one_and_from_none() {
        let rows = [
            (Some("Bearer a-token"), Credentials::Right),
            (Some("bearer  a-token "), Credentials::Right),
            (Some("Bearer a-toke"), Credentials::Wrong),
            (Some("Bearer a-token-and-more"), Credentials::Wrong),
            (Some("Bearer A-TOKEN"), Credentials::Wrong),
            (Some("Bearer "), Credentials::None),
            (Some("Bearer"), Credentials::None),
            (Some("Basic a-token"), Credentials::None),
            (Some("a-token"), Credentials::None),
            (Some(""), Credentials::None),
            (None, Credentials::None),
        ];
        for (authorization, expected) in rows {
            assert_eq!(judged(authorization), expected, "{authorization:?}");
        }
    }

    #[test]
    fn random_tokens_are_long_and_differ() {
        let source = rustls::crypto::aws_lc_rs::default_provider().secure_random;
        let token = || Token::random(source).expect("there is randomness");
        assert_eq!(token().reveal().len(), 32);
        assert_ne!(token().reveal(), token().reveal());
    }

    #[test]
    fn takes_no_token_that_a_header_cannot_carry() {
        for text in ["", "two words", "a\nline", "é"] {
            assert!(Token::chosen(text.to_owned()).is_none(), "{text:?}");
        }
    }
}
