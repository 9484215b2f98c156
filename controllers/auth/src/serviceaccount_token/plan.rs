//! The plan for a secret: the fields that it lacks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::secret::TokenSecret;

/// The root CA in base64, as in the data of secrets.
#[derive(Debug, Clone, Default)]
pub(super) struct RootCa(String);

impl RootCa {
    /// An empty `pem` stands for no CA.
    pub(super) fn new(pem: impl AsRef<[u8]>) -> Self {
        Self(STANDARD.encode(pem))
    }

    pub(super) fn base64(&self) -> &str {
        &self.0
    }
}

/// The fields that are written into a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    /// `ca.crt`: there is a root CA, and the secret has another.
    pub(super) ca: bool,
    pub(super) namespace: bool,
    pub(super) token: bool,
}

/// Returns the fields that a secret lacks; `None` if it has all.
pub(super) fn plan(secret: &TokenSecret, root_ca: &RootCa) -> Option<Missing> {
    let data = &secret.data;
    let missing = Missing {
        ca: !root_ca.base64().is_empty() && data.ca != root_ca.base64(),
        namespace: !data.has_namespace,
        token: !data.has_token,
    };
    (missing.ca || missing.namespace || missing.token).then_some(missing)
}
