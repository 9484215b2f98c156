//! The claims of a token.

use kcm_framework::api::{ObjectKey, Uid};
use serde::Serialize;

/// The issuer of tokens in secrets.
const ISSUER: &str = "kubernetes/serviceaccount";

/// The claims of a token in a secret, in the order of their names, as upstream writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Claims<'a> {
    iss: &'static str,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    namespace: &'a str,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: &'a str,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    account: &'a str,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    uid: &'a Uid,
    sub: String,
}

impl<'a> Claims<'a> {
    /// The claims of a token of `account`, with that uid, in the secret of that name.
    pub(super) fn of(account: &'a ObjectKey, uid: &'a Uid, secret: &'a str) -> Self {
        let (namespace, name) = (account.namespace().unwrap_or_default(), account.name());
        let sub = format!("system:serviceaccount:{namespace}:{name}");
        Self { iss: ISSUER, namespace, secret, account: name, uid, sub }
    }
}
