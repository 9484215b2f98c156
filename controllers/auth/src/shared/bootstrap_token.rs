//! The view of bootstrap tokens, which never shows the value of one.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kcm_framework::Source;
use kcm_framework::api::Resource;
use kcm_framework::informers::ListOptions;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use zeroize::Zeroizing;

use super::go_time::parse_rfc3339;

/// The field selector of Secrets that hold a bootstrap token.
const BOOTSTRAP_TOKEN_FIELDS: &str = "type=bootstrap.kubernetes.io/token";

/// The bootstrap tokens: Secrets of their type in `kube-system`. No other Secret enters the process.
pub(crate) fn bootstrap_tokens() -> Source<BootstrapToken> {
    let field_selector = Some(BOOTSTRAP_TOKEN_FIELDS.to_owned());
    Source::known().list_options(ListOptions { field_selector, ..ListOptions::namespace("kube-system") })
}

kcm_framework::api::view! {
    /// A Secret with a bootstrap token.
    pub(crate) struct BootstrapToken {
        resource: Resource::namespaced("", "v1", "secrets", "Secret");

        /// `data`
        pub(crate) data: TokenData = "data";
    }
}

impl BootstrapToken {
    /// Returns the id in the name of the Secret, `bootstrap-token-ID`; `None` for another name.
    pub(crate) fn id_of(name: &str) -> Option<&str> {
        let id = name.strip_prefix("bootstrap-token-")?;
        let is_id = id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        is_id.then_some(id)
    }

    /// Returns the end of the token's life.
    pub(crate) fn expiry(&self) -> Expiry {
        match &*self.data.expiration {
            "" => Expiry::Never,
            text => parse_rfc3339(text).map_or(Expiry::Unreadable, Expiry::At),
        }
    }
}

/// The end of a token's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The token has no expiration.
    Never,
    /// The time of its expiration.
    At(Timestamp),
    /// The expiration is no time. The token counts as expired.
    Unreadable,
}

impl Expiry {
    /// Returns `true` if the token has expired at `now`.
    pub(crate) fn has_passed(self, now: Timestamp) -> bool {
        match self {
            Self::Never => false,
            Self::At(at) => at <= now,
            Self::Unreadable => true,
        }
    }
}

/// The data of a bootstrap token.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TokenData {
    /// `token-id`; empty if it is absent.
    pub(crate) id: Box<str>,
    /// `token-secret`; empty if it is absent.
    pub(crate) secret: SecretValue,
    /// `expiration`; empty if it is absent.
    pub(crate) expiration: Box<str>,
    /// Whether `usage-bootstrap-signing` is `true`.
    pub(crate) signs: bool,
}

/// A secret value, which is wiped when it is dropped, and never printed.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// Returns the value.
    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

impl<'de> Deserialize<'de> for TokenData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Data;
        impl<'de> Visitor<'de> for Data {
            type Value = TokenData;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the data of a Secret")
            }

            fn visit_unit<E>(self) -> Result<TokenData, E> {
                Ok(TokenData::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TokenData, A::Error> {
                let mut data = TokenData::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "token-id" => data.id = map.next_value::<SecretValue>()?.text(),
                        "token-secret" => data.secret = map.next_value()?,
                        "expiration" => data.expiration = map.next_value::<SecretValue>()?.text(),
                        "usage-bootstrap-signing" => data.signs = map.next_value::<SecretValue>()?.expose() == b"true",
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(data)
            }
        }
        deserializer.deserialize_any(Data)
    }
}

impl SecretValue {
    /// Returns the text of a value that is no secret. Bytes that are no text are in neither an id nor a time.
    fn text(&self) -> Box<str> {
        String::from_utf8_lossy(&self.0).into()
    }
}

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Encoded;
        impl Visitor<'_> for Encoded {
            type Value = SecretValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string in base64")
            }

            fn visit_unit<E>(self) -> Result<SecretValue, E> {
                Ok(SecretValue::default())
            }

            fn visit_str<E: Error>(self, encoded: &str) -> Result<SecretValue, E> {
                // The error of the decoder would show a byte of the value.
                let value = STANDARD.decode(encoded).map_err(|_| E::custom("a value is not base64"))?;
                Ok(SecretValue(Zeroizing::new(value)))
            }
        }
        deserializer.deserialize_any(Encoded)
    }
}

#[cfg(test)]
mod tests {
    use kcm_framework::api::View as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn d13_the_value_of_a_token_is_neither_printed_nor_in_errors() {
        let secret = json!({
            "metadata": { "name": "bootstrap-token-abc123", "namespace": "kube-system" },
            "data": { "token-id": "YWJjMTIz", "token-secret": "dG9rZW5TZWNyZXQ=", "expiration": null },
        });
        let token = BootstrapToken::decode(&secret.to_string()).unwrap();
        assert_eq!((token.data.secret.expose(), &*token.data.id), (&b"tokenSecret"[..], "abc123"));
        let printed = format!("{token:?}");
        assert!(!printed.contains("tokenSecret") && !printed.contains("dG9rZW5TZWNyZXQ"), "{printed}");
        let broken = secret.to_string().replace("dG9rZW5TZWNyZXQ=", "dG9rZ!");
        let error = BootstrapToken::decode(&broken).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("dG9rZ"), "{error}");
    }

    #[test]
    fn only_a_secret_with_the_name_of_a_token_has_an_id() {
        for (name, id) in [
            ("bootstrap-token-abc123", Some("abc123")),
            ("abc123", None),
            ("bootstrap-token-abc12", None),
            ("bootstrap-token-abc1234", None),
            ("bootstrap-token-ABC123", None),
            ("bootstrap-token-abc-12", None),
        ] {
            assert_eq!(BootstrapToken::id_of(name), id, "{name}");
        }
    }
}
