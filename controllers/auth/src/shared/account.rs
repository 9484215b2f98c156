//! The view of service accounts, and the selector of their tokens.

use kcm_framework::api::{InternedStr, Resource};

/// The field selector of secrets that hold a token of a service account.
pub(crate) const TOKEN_SECRET_FIELDS: &str = "type=kubernetes.io/service-account-token";

kcm_framework::api::view! {
    /// A service account.
    pub(crate) struct ServiceAccount {
        resource: Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");

        /// The secrets that the account references.
        pub(crate) secrets: Vec<SecretReference> = "secrets";
    }
}

kcm_framework::api::message! {
    /// A reference to a secret of the account's namespace.
    pub(crate) struct SecretReference {
        /// The name of the secret.
        pub(crate) name: InternedStr = "name";
    }
}

impl ServiceAccount {
    /// Whether the account references the secret of that name.
    pub(crate) fn references(&self, secret: &str) -> bool {
        self.secrets.iter().any(|reference| &*reference.name == secret)
    }
}
