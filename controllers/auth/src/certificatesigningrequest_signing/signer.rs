//! The signers and their rules. Pure.

use crate::shared::kubelet::{Violation, validate_api_client, validate_client, validate_serving};
use crate::shared::x509::CertificateRequest;

/// A signer that issues certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signer {
    /// Serving certificates of kubelets.
    KubeletServing,
    /// Client certificates of kubelets.
    KubeletClient,
    /// Client certificates of the API server.
    ApiClient,
    /// Certificates of requests from before there were signers.
    LegacyUnknown,
}

impl Signer {
    /// All, in the order of upstream.
    pub(super) const ALL: [Self; 4] = [Self::KubeletServing, Self::KubeletClient, Self::ApiClient, Self::LegacyUnknown];

    /// Returns the name in `spec.signerName`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KubeletServing => "kubernetes.io/kubelet-serving",
            Self::KubeletClient => "kubernetes.io/kube-apiserver-client-kubelet",
            Self::ApiClient => "kubernetes.io/kube-apiserver-client",
            Self::LegacyUnknown => "kubernetes.io/legacy-unknown",
        }
    }

    /// Checks the rules of the signer.
    ///
    /// # Errors
    /// The first rule that the request violates.
    pub(super) fn validate(self, request: &CertificateRequest, usages: &[impl AsRef<str>]) -> Result<(), Violation> {
        match self {
            Self::KubeletServing => validate_serving(request, usages),
            Self::KubeletClient => validate_client(request, usages),
            Self::ApiClient => validate_api_client(usages),
            Self::LegacyUnknown => Ok(()),
        }
    }
}
