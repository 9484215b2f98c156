//! The view of secrets that hold a token of a service account: which fields there are, without the token.

use std::fmt;

use kcm_framework::api::{InternedStr, Resource, Uid};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// The annotation with the name of the account.
pub(super) const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// The annotation with the uid of the account.
pub(super) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// The key of the root CA in the data.
pub(super) const CA_KEY: &str = "ca.crt";

/// The key of the namespace in the data.
pub(super) const NAMESPACE_KEY: &str = "namespace";

/// The key of the token in the data.
pub(super) const TOKEN_KEY: &str = "token";

kcm_framework::api::view! {
    /// A secret with a token.
    pub(super) struct TokenSecret {
        resource: Resource::namespaced("", "v1", "secrets", "Secret");
        annotations: ["kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"];

        /// `data`
        pub(super) data: TokenData = "data";
    }
}

impl TokenSecret {
    /// The name of the account; empty if the secret names none.
    pub(super) fn account(&self) -> InternedStr {
        self.metadata.annotations.get_shared(ACCOUNT_NAME).cloned().unwrap_or_default()
    }

    /// The uid of the account; unset if the secret names none.
    pub(super) fn account_uid(&self) -> Uid {
        Uid::from(self.metadata.annotations.get(ACCOUNT_UID).unwrap_or_default())
    }
}

/// The data of a secret.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TokenData {
    /// The root CA in base64, which all secrets share; empty if there is none.
    pub(super) ca: InternedStr,
    pub(super) has_namespace: bool,
    pub(super) has_token: bool,
}

impl<'de> Deserialize<'de> for TokenData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Data;
        impl<'de> Visitor<'de> for Data {
            type Value = TokenData;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the data of a secret")
            }

            fn visit_unit<E>(self) -> Result<TokenData, E> {
                Ok(TokenData::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TokenData, A::Error> {
                let mut data = TokenData::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        CA_KEY => data.ca = map.next_value::<Option<InternedStr>>()?.unwrap_or_default(),
                        NAMESPACE_KEY => data.has_namespace = map.next_value::<IsSet>()?.0,
                        TOKEN_KEY => data.has_token = map.next_value::<IsSet>()?.0,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(data)
            }
        }
        deserializer.deserialize_any(Data)
    }
}

/// Whether a string is there and not empty. Its value is not kept.
struct IsSet(bool);

impl<'de> Deserialize<'de> for IsSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        impl Visitor<'_> for Value {
            type Value = IsSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_unit<E>(self) -> Result<IsSet, E> {
                Ok(IsSet(false))
            }

            fn visit_str<E>(self, value: &str) -> Result<IsSet, E> {
                Ok(IsSet(!value.is_empty()))
            }
        }
        deserializer.deserialize_any(Value)
    }
}
