//! What a secret lacks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::secret::TokenSecret;

/// The root CA, as the data of secrets has it.
#[derive(Debug, Clone, Default)]
pub(super) struct RootCa(String);

impl RootCa {
    /// The CA with that PEM; an empty one stands for none.
    pub(super) fn new(pem: impl AsRef<[u8]>) -> Self {
        Self(STANDARD.encode(pem))
    }

    /// In base64.
    pub(super) fn base64(&self) -> &str {
        &self.0
    }
}

/// What is written into a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    /// `ca.crt`: it is not the root CA, and there is one.
    pub(super) ca: bool,
    /// `namespace`: there is none.
    pub(super) namespace: bool,
    /// `token`: there is none.
    pub(super) token: bool,
}

/// What a secret lacks; `None` where it has everything.
pub(super) fn plan(secret: &TokenSecret, root_ca: &RootCa) -> Option<Missing> {
    let data = &secret.data;
    let missing = Missing {
        ca: !root_ca.base64().is_empty() && data.ca != root_ca.base64(),
        namespace: !data.has_namespace,
        token: !data.has_token,
    };
    (missing.ca || missing.namespace || missing.token).then_some(missing)
}
