//! The connection of each client identity.

use crate::error::BoxError;

/// A provider of the kube client that each identity sends through, with the credentials of that identity.
///
/// A [`kube::Client`] is a provider too: all identities share its credentials. A provider with credentials for each
/// identity returns clients that add them, over one connection pool.
///
/// # Upstream
/// `SimpleControllerClientBuilder` shares credentials; `DynamicClientBuilder` requests a token for each service account.
pub trait ClientProvider: Send + Sync + 'static {
    /// The client of an identity; called once for each client that is built.
    fn client_for(&self, identity: &str) -> kube::Client;

    /// Returns `true` if the identity does not send over the connections of the manager. Its connections may lead to another
    /// API server behind a load balancer, so that they have a state of their own.
    fn is_separate(&self, identity: &str) -> bool {
        let _ = identity;
        false
    }

    /// The client that probes the separate connections. `None` if there are none.
    fn separate_probe(&self) -> Option<kube::Client> {
        None
    }
}

impl ClientProvider for kube::Client {
    fn client_for(&self, _identity: &str) -> kube::Client {
        self.clone()
    }
}

/// The error of a client that has no credentials for its identity: its request is not sent.
///
/// A [`ClientProvider`]'s clients fail with it, so that the outcome of the request is known.
#[derive(Debug, thiserror::Error)]
#[error("there are no credentials")]
pub struct CredentialsError(#[source] BoxError);

impl CredentialsError {
    /// The error with its cause.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(cause.into())
    }
}
