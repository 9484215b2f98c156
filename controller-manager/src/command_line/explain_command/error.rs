//! The error of an explanation.

use kcm_framework::BoxError;

/// An error that prevents an explanation.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExplainError {
    #[error("--server is {0:?}, expected the address of the manager's port, such as https://127.0.0.1:10257")]
    Server(String),
    #[error("cannot read the certificate of --certificate-authority={file}")]
    Authority {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the certificates in --certificate-authority={0} are not PEM")]
    Pem(String),
    #[error(transparent)]
    Credentials(kcm_framework::client::LoadError),
    #[error("cannot create a client for {server}")]
    Client {
        server: String,
        #[source]
        source: kcm_framework::client::StackError,
    },
    #[error(
        "cannot reach {server}: check that a manager with that --secure-port runs there, and that --server is its address"
    )]
    Unreachable {
        server: String,
        #[source]
        source: BoxError,
    },
    #[error(
        "the certificate of {server} is not trusted: give --certificate-authority=FILE, or --insecure-skip-tls-verify if \
         no other server can be there"
    )]
    Certificate {
        server: String,
        #[source]
        source: BoxError,
    },
    #[error("{server} rejects the credentials (401): give another --token or --kubeconfig")]
    Unauthorized { server: String },
    #[error(
        "{server} forbids get of {path} (403: {message}): give a --token or --kubeconfig of a user whose ClusterRole \
         allows get of the nonResourceURLs /debug/*"
    )]
    Forbidden { path: String, server: String, message: String },
    #[error("{server} cannot serve {path} ({code}: {message})")]
    Refused { path: String, server: String, code: u16, message: String },
    #[error("the response of {server} to {path} does not fit this version of the controller manager")]
    Response {
        path: String,
        server: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("no controller of {server} reconciles {resource:?}; running controllers reconcile: {known}")]
    UnknownResource { server: String, resource: String, known: String },
}
